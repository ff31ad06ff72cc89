//! A private PostgreSQL server in a temporary directory, where one is installed.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fairtrial_protocol::load::{Endpoint, Sql};
use tempfile::TempDir;

/// How long a fresh server may take to answer.
const START_LIMIT_MS: u32 = 60_000;

/// The server refuses to run as root; `nobody` then owns it.
const NOBODY: u32 = 65_534;

/// The superuser of the test's server.
pub const USER: &str = "tester";

/// A server of the test's own; ended by its process id when dropped.
pub struct Server {
    directory: TempDir,
    process: Child,
}

impl Server {
    /// Starts a server with these lines in its `pg_hba.conf` and options on its command line; `None`, said on standard
    /// error, where none is installed.
    pub fn start(hba: &str, options: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: postgres and initdb are not installed (apt install postgresql)");
            return None;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        if rustix::process::geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        }
        let data = directory.path().join("data");
        let created = command(&programs.join("initdb"))
            .args(["--no-sync", "--locale=C", "--encoding=UTF8", "--auth=trust"])
            .arg(format!("--username={USER}"))
            .arg(format!("--pgdata={}", data.display()))
            .output()
            .expect("initdb runs");
        let words = String::from_utf8_lossy(&created.stderr);
        assert!(created.status.success(), "{words}");
        std::fs::write(data.join("pg_hba.conf"), hba).expect("our own file");
        let log = std::fs::File::create(directory.path().join("log")).expect("a log file");
        let process = command(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory.path())
            .args(["-c", "fsync=off", "-c", "shared_buffers=128MB"])
            .args(options)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let server = Self { directory, process };
        server.wait();
        Some(server)
    }

    /// The server's endpoint for one database.
    pub fn endpoint(&self, database: &str) -> Endpoint {
        Endpoint::Postgres {
            socket_directory: Some(self.directory.path().to_string_lossy().into()),
            host: None,
            port: None,
            user: USER.into(),
            password: String::new(),
            tls: None,
            database: database.into(),
        }
    }

    fn wait(&self) {
        let asked = Sql {
            endpoint: self.endpoint("postgres"),
            statements: vec!["SELECT 1".into()],
            connect_timeout_ms: START_LIMIT_MS,
        };
        if let Err(error) = fairtrial_load::sql(&asked) {
            let log =
                std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            panic!("the server does not answer: {error:?}\n{log}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        // Immediate shutdown: the server ends its own children, which a kill would leave behind.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// A program that ends with the thread that started it, as an unprivileged user.
fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args([
            format!("--reuid={NOBODY}"),
            format!("--regid={NOBODY}"),
            "--clear-groups".into(),
        ]);
    }
    command.arg("--pdeathsig=QUIT").arg(program);
    command
}

/// The directory of the programs: on PATH, or the newest of Debian's.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let debian = std::fs::read_dir("/usr/lib/postgresql").ok();
    let mut versions: Vec<_> = debian
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    places.extend(versions.into_iter().rev());
    let has_both = |place: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|name| place.join(name).is_file())
    };
    places.into_iter().find(has_both)
}
