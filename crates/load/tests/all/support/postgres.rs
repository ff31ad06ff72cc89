//! A private PostgreSQL server in a temporary directory, where one is installed.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use fairtrial_protocol::load::{Endpoint, Sql};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::mariadb::skips::lacks;
use super::mariadb::{copy, remove_after_this_process};

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
    options: Vec<String>,
}

impl Server {
    /// Starts a server with these lines in its `pg_hba.conf` and options on its command line; `None`, said on standard
    /// error, where none is installed.
    pub fn start(hba: &str, options: &[&str]) -> Option<Self> {
        let options = options.iter().map(ToString::to_string).collect();
        Self::start_with(hba, |_| options)
    }

    /// The same with options that need files: given the server's directory, to put them in.
    pub fn start_with(hba: &str, options: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let Some(programs) = programs() else {
            lacks("postgresql-15");
            return None;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        give(directory.path());
        let data = directory.path().join("data");
        copy(created(&programs), &data);
        std::fs::write(data.join("pg_hba.conf"), hba).expect("our own file");
        let options = options(directory.path());
        let process = spawn(directory.path(), &options);
        let server = Self {
            directory,
            process,
            options,
        };
        server.wait();
        Some(server)
    }

    /// Removes its directory with this process: for a server that is never dropped.
    fn leave(&self) {
        remove_after_this_process(self.directory.path());
    }

    /// What it has written to its log since it started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Ends the server as a crash would: nothing is written back, and clients are told.
    pub fn crash(&mut self) {
        self.signal(Signal::QUIT);
        self.process.wait().expect("it is gone");
    }

    /// Starts it again on the same data.
    pub fn restart(&mut self) {
        self.process = spawn(self.directory.path(), &self.options);
        self.wait();
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.process), signal);
    }

    /// The server's endpoint for one database.
    pub fn endpoint(&self, database: &str) -> Endpoint {
        Endpoint::Postgres {
            socket_directory: Some(self.directory.path().to_string_lossy().into()),
            host: None,
            port: self.port(),
            user: USER.into(),
            password: String::new(),
            tls: None,
            database: database.into(),
        }
    }

    /// The port that the options give: the name of the socket holds it.
    fn port(&self) -> Option<u16> {
        let answer = self
            .options
            .iter()
            .find_map(|option| option.strip_prefix("port="))?;
        Some(answer.parse().expect("a number"))
    }

    fn wait(&self) {
        let request = Sql {
            endpoint: self.endpoint("postgres"),
            statements: vec!["SELECT 1".into()],
            connect_timeout_ms: START_LIMIT_MS,
        };
        if let Err(error) = fairtrial_load::sql(&request) {
            panic!("the server does not answer: {error:?}\n{}", self.log());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Immediate shutdown: the server ends its own children, which a kill would leave behind.
        self.signal(Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// A server that is never dropped; what is vacuumed and analysed is its clients' doing.
pub fn start_common() -> Option<Server> {
    let options = ["-c", "listen_addresses=", "-c", "autovacuum=off"];
    let server = Server::start("local all all trust\n", &options)?;
    server.leave();
    Some(server)
}

/// Data of a server that has never run, made once.
fn created(programs: &Path) -> &'static Path {
    static CREATED: OnceLock<PathBuf> = OnceLock::new();
    CREATED.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory").keep();
        remove_after_this_process(&directory);
        give(&directory);
        let data = directory.join("data");
        let created = command(&programs.join("initdb"))
            .args(["--no-sync", "--locale=C", "--encoding=UTF8", "--auth=trust"])
            .arg(format!("--username={USER}"))
            .arg(format!("--pgdata={}", data.display()))
            .output()
            .expect("initdb runs");
        let words = String::from_utf8_lossy(&created.stderr);
        assert!(created.status.success(), "{words}");
        data
    })
}

/// Makes a file or directory the server's.
pub fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
}

fn spawn(directory: &Path, options: &[String]) -> Child {
    let log = std::fs::File::create(directory.join("log")).expect("a log file");
    let programs = programs().expect("it was found before");
    command(&programs.join("postgres"))
        .arg("-D")
        .arg(directory.join("data"))
        .arg("-k")
        .arg(directory)
        .args(["-c", "fsync=off", "-c", "shared_buffers=128MB"])
        .args(options)
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .expect("the server starts")
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
