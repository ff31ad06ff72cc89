//! The no-operation server: real clients take it for a server, and thousands of connections are nothing to it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::support::apart::is_apart;
use crate::support::mariadb::skips::lacks;
use fairtrial_load::{LoadError, NoopServer};
use fairtrial_protocol::load::{Ceiling, Endpoint, Noop, Sql};
use rustix::process::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;

const CONNECTIONS: usize = 2000;

/// A server in a thread of this process; ends when dropped.
pub struct NoopThread {
    directory: TempDir,
    end: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), LoadError>>>,
}

impl NoopThread {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (end, theirs) = UnixStream::pair().expect("a pair of sockets");
        let socket = directory.path().join("socket");
        let parameters = Noop {
            socket: socket.to_string_lossy().into(),
        };
        let server = NoopServer::bind(&parameters).expect("a free name");
        let thread = thread::spawn(move || server.serve(theirs));
        Self {
            directory,
            end: Some(end),
            thread: Some(thread),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn stop(&mut self) -> Result<(), LoadError> {
        drop(self.end.take());
        let thread = self.thread.take().expect("stopped once");
        thread.join().expect("the server does not panic")
    }
}

impl Drop for NoopThread {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop().expect("the server ends well");
        }
    }
}

#[test]
fn the_engines_own_driver_logs_in_and_asks() {
    let server = NoopThread::start();
    let request = Sql {
        endpoint: Endpoint::Mysql {
            socket: Some(server.socket().to_string_lossy().into()),
            host: None,
            port: None,
            user: "anyone".into(),
            password: "anything".into(),
            tls: None,
            database: "any".into(),
        },
        statements: vec!["SELECT a, b FROM t".into(), "UPDATE t SET a = 1".into()],
        connect_timeout_ms: 10_000,
    };
    let rows = fairtrial_load::sql(&request).expect("both are answered");
    assert_eq!((rows[0].rows.len(), rows[0].columns.len()), (1, 2));
    assert!(rows[1].rows.is_empty());
}

#[test]
fn the_mariadb_client_takes_it_for_a_server() {
    let server = NoopThread::start();
    let client = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--user=anyone",
            "--batch",
            "--skip-column-names",
        ])
        .arg(format!("--socket={}", server.socket().display()))
        .arg("--execute=SELECT a, b FROM t; INSERT INTO t VALUES (1)")
        .output();
    let Ok(output) = client else {
        lacks("mariadb-client");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"1\t1\n");
}

#[test]
fn two_thousand_clients_are_answered_at_once() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit may be raised to the hard one");
    let server = NoopThread::start();
    let mut clients: Vec<UnixStream> = (0..CONNECTIONS).map(|_| log_in(&server.socket())).collect();
    for client in &mut clients {
        client.write_all(b"\x09\0\0\0\x03SELECT 1").expect("sent");
    }
    for client in &mut clients {
        assert_eq!(receive(client), [1], "one column");
    }
}

#[test]
fn its_socket_is_gone_when_it_has_ended() {
    let mut server = NoopThread::start();
    server.stop().expect("the server ends well");
    assert!(!server.socket().exists());
}

#[test]
fn a_client_that_comes_before_the_server_serves_is_not_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("socket");
    let parameters = Noop {
        socket: socket.to_string_lossy().into(),
    };
    let server = NoopServer::bind(&parameters).expect("a free name");
    let early = UnixStream::connect(&socket).expect("the socket listens");
    let (end, theirs) = UnixStream::pair().expect("a pair of sockets");
    let thread = thread::spawn(move || server.serve(theirs));
    greeted(early);
    drop(end);
    let ended = thread.join().expect("the server does not panic");
    ended.expect("the server ends well");
}

#[test]
fn a_socket_that_is_in_use_is_refused_and_left_alone() {
    let server = NoopThread::start();
    let parameters = Noop {
        socket: server.socket().to_string_lossy().into(),
    };
    let refused = NoopServer::bind(&parameters).err().expect("it is taken");
    assert!(matches!(refused, LoadError::Output { .. }), "{refused}");
    assert!(server.socket().exists());
}

fn log_in(socket: &Path) -> UnixStream {
    greeted(UnixStream::connect(socket).expect("accepted"))
}

fn greeted(mut client: UnixStream) -> UnixStream {
    assert_eq!(receive(&mut client)[0], 10, "the protocol's version");
    client.write_all(b"\x01\0\0\x01x").expect("sent");
    assert_eq!(receive(&mut client)[0], 0, "well");
    client
}

fn receive(client: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 4];
    client.read_exact(&mut header).expect("a header");
    let mut payload = vec![0; usize::from(header[0]) + 256 * usize::from(header[1])];
    client.read_exact(&mut payload).expect("a payload");
    payload
}

#[test]
fn the_engines_ceiling_is_measured_once_and_kept() {
    // The kernel counts the processor time of a process, whose other threads run other tests.
    if !is_apart("noop::the_engines_ceiling_is_measured_once_and_kept") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let work = directory.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    let kept = directory.path().join("ceiling.json");
    let request = Ceiling {
        directory: work.to_string_lossy().into(),
        kept: kept.to_string_lossy().into(),
    };
    let measured = fairtrial_load::ceiling(&request).expect("measured");
    // More than any server here answers, less than any processor could.
    assert!(
        (1e4..1e8).contains(&measured.operations_per_core_s),
        "{measured:?}"
    );
    let mut other = measured;
    other.operations_per_core_s = 1.0;
    std::fs::write(&kept, serde_json::to_vec(&other).expect("JSON")).expect("written");
    assert_eq!(fairtrial_load::ceiling(&request).expect("kept"), other);
}
