//! A private MariaDB server in a temporary directory, where one is installed.

#[path = "skips.rs"]
pub mod skips;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fairtrial_protocol::load::{Endpoint, Sql};
use tempfile::TempDir;

/// How long a fresh server may take to answer.
const START_LIMIT_MS: u32 = 60_000;

/// A server of the test's own; killed by its process id when dropped.
pub struct Server {
    directory: TempDir,
    process: Child,
    options: Vec<String>,
}

impl Server {
    /// Starts a server; `None`, said on standard error, where none is installed.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| vec!["--skip-networking".into()])
    }

    /// The same with options of the test's own, given the server's directory.
    pub fn start_with(options: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        if !is_installed() {
            skips::lacks("mariadb-server");
            return None;
        }
        Self::start_in(tempfile::tempdir().expect("a temporary directory"), options)
    }

    /// The same in a directory that the test has prepared.
    pub fn start_in(
        directory: TempDir,
        options: impl FnOnce(&Path) -> Vec<String>,
    ) -> Option<Self> {
        let (Some(server), Some(install)) = (find("mariadbd"), find("mariadb-install-db")) else {
            return None;
        };
        copy(installed(&install), &directory.path().join("data"));
        let options = options(directory.path());
        let process = spawn(&server, directory.path(), &options);
        let server = Self {
            directory,
            process,
            options,
        };
        server.wait();
        Some(server)
    }

    /// The server's endpoint for one database.
    pub fn endpoint(&self, database: &str) -> Endpoint {
        Endpoint::mysql_at(&self.directory.path().join("socket"), "root", database)
    }

    /// The directory of its databases.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Kills the server without warning.
    pub fn kill(&mut self) {
        self.process.kill().expect("the server is ours to kill");
        self.process.wait().expect("it is gone");
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it is ours");
    }

    /// Stops the server's process where it is: its connections stay open and nothing answers.
    pub fn freeze(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is ours");
        // A thread on another processor goes on for a moment, and may answer.
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED)
            .expect("it is ours");
    }

    /// Starts it again on the same data.
    pub fn restart(&mut self) {
        self.process = spawn(
            &find("mariadbd").expect("it was found before"),
            self.directory.path(),
            &self.options,
        );
        self.wait();
    }

    fn wait(&self) {
        let request = Sql {
            endpoint: self.endpoint("mysql"),
            statements: vec!["SELECT 1".into()],
            connect_timeout_ms: START_LIMIT_MS,
        };
        if let Err(error) = fairtrial_load::sql(&request) {
            let log =
                std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            panic!("the server does not answer: {error:?}\n{log}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Data of a server that has never run, made once: to make them takes longer than most tests.
fn installed(install: &Path) -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory").keep();
        remove_after_this_process(&directory);
        let data = directory.join("data");
        let installed = Command::new(install)
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", directory.display()))
            .arg(format!("--user={}", user()))
            .output()
            .expect("mariadb-install-db runs");
        let words = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "{words}");
        data
    })
}

/// Copies a file or directory with its owners, and no zeros of its logs.
pub fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .args(["--archive", "--sparse=always"])
        .args([from, to])
        .output()
        .expect("cp runs");
    let words = String::from_utf8_lossy(&copied.stderr);
    assert!(copied.status.success(), "{words}");
}

/// The one server that the tests of this binary share, one at a time.
pub fn shared() -> Option<MutexGuard<'static, Server>> {
    static SHARED: OnceLock<Option<Mutex<Server>>> = OnceLock::new();
    let server = SHARED
        .get_or_init(|| keep(start_shared).map(Mutex::new))
        .as_ref()?;
    Some(server.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A server that is never dropped: its directory goes with this process.
pub fn start_shared() -> Option<Server> {
    let server = Server::start()?;
    remove_after_this_process(server.directory.path());
    Some(server)
}

/// Removes a directory when this process has ended, in whatever way: a shell in a group of its own reads until the end
/// of its input, which only this process holds open.
pub fn remove_after_this_process(directory: &Path) {
    let remover = Command::new("sh")
        .args(["-c", "cat >/dev/null; rm -rf -- \"$1\"", "sh"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("a shell");
    std::mem::forget(remover);
}

/// Makes something on a thread that lives as long as this process.
pub fn keep<T: Send + 'static>(make: fn() -> T) -> T {
    let (said, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        said.send(make()).expect("someone waits");
        loop {
            std::thread::park();
        }
    });
    receive.recv().expect("the thread says why it failed")
}

fn spawn(server: &Path, directory: &Path, options: &[String]) -> Child {
    let log = std::fs::File::create(directory.join("log")).expect("a log file");
    // A shared server is never dropped, so the kernel ends it with the thread that started it. `setpriv` (util-linux)
    // becomes the server, with its process id.
    Command::new("setpriv")
        .arg("--pdeathsig=KILL")
        .arg(server)
        .arg("--no-defaults")
        .arg(format!("--datadir={}", directory.join("data").display()))
        .arg(format!("--socket={}", directory.join("socket").display()))
        .arg(format!("--pid-file={}", directory.join("pid").display()))
        // In a shared directory every start removes the temporary tables of the other servers of its user.
        .arg(format!("--tmpdir={}", directory.display()))
        .arg(format!("--user={}", user()))
        .args([
            "--innodb-flush-log-at-trx-commit=0",
            // A killed server loses nothing by it: only a machine that fails does.
            "--innodb-flush-method=nosync",
            "--innodb-buffer-pool-size=256M",
        ])
        .args(options)
        .stdout(Stdio::null())
        .stderr(log)
        // What stops the tests and lets them go on does neither to a server that a test froze.
        .process_group(0)
        .spawn()
        .expect("the server starts")
}

/// Whether there is a server to start.
pub fn is_installed() -> bool {
    find("mariadbd").is_some() && find("mariadb-install-db").is_some()
}

fn user() -> String {
    let name = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&name.stdout).trim().to_owned()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places
        .map(|place| place.join(program))
        .find(|candidate| candidate.is_file())
}
