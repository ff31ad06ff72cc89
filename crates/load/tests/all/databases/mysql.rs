//! A MySQL 8: its way to prove passwords, which MariaDB does not have, and TPC-C. Debian has no MySQL: these run where
//! `FAIRTRIAL_MYSQL` names an unpacked one (its directory with `bin` and `share`), and say so where they do not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::certificates::free_port;
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql, Tls};
use tempfile::TempDir;

const BASE: &str = "FAIRTRIAL_MYSQL";

const ACCOUNT: &str =
    "CREATE USER 'sha2'@'%' IDENTIFIED WITH caching_sha2_password BY 'open sesame'";

/// The server forgets the passwords it has seen.
const FORGET: &str = "FLUSH PRIVILEGES";

const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

const START_LIMIT_MS: u32 = 60_000;

/// A private server; it is killed and its files go when dropped.
struct MysqlServer {
    directory: TempDir,
    port: u16,
    process: Child,
}

impl MysqlServer {
    fn start() -> Option<Self> {
        let Some(base) = std::env::var_os(BASE).map(PathBuf::from) else {
            eprintln!("skipped: {BASE} names no unpacked MySQL 8");
            return None;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let made = mysqld(&base, directory.path())
            .arg("--initialize-insecure")
            .output()
            .expect("mysqld runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let port = free_port();
        let process = mysqld(&base, directory.path())
            .arg(format!("--port={port}"))
            .args(["--bind-address=127.0.0.1", "--mysqlx=OFF"])
            .stderr(Stdio::null())
            .spawn()
            .expect("mysqld starts");
        let server = Self {
            directory,
            port,
            process,
        };
        server.root(&["SELECT 1", ACCOUNT]);
        Some(server)
    }

    fn socket(&self) -> String {
        let path = self.directory.path().join("socket");
        path.to_string_lossy().into()
    }

    fn root(&self, statements: &[&str]) {
        let sql = Sql {
            endpoint: endpoint(Transport::Socket(self.socket()), "root", ""),
            statements: statements.iter().map(|sql| (*sql).to_owned()).collect(),
            connect_timeout_ms: START_LIMIT_MS,
        };
        fairtrial_load::sql(&sql).expect("root may");
    }

    fn ways(&self) -> [Transport; 3] {
        [
            Transport::Socket(self.socket()),
            Transport::Tcp(self.port),
            Transport::Tls(self.port),
        ]
    }
}

impl Drop for MysqlServer {
    fn drop(&mut self) {
        self.process.kill().expect("the server is ours to kill");
        self.process.wait().expect("it is gone");
    }
}

fn mysqld(base: &Path, directory: &Path) -> Command {
    let mut command = Command::new(base.join("bin/mysqld"));
    command
        .arg("--no-defaults")
        .arg(format!("--basedir={}", base.display()))
        .arg(format!("--datadir={}", directory.join("data").display()))
        .arg(format!("--socket={}", directory.join("socket").display()))
        // It refuses to be root without being told so; anybody else it takes as he is.
        .args(
            rustix::process::geteuid()
                .is_root()
                .then_some("--user=root"),
        );
    command
}

/// How the server is reached.
#[derive(Clone, Debug)]
enum Transport {
    Socket(String),
    Tcp(u16),
    Tls(u16),
}

fn endpoint(way: Transport, user: &str, password: &str) -> Endpoint {
    database(way, user, password, "information_schema")
}

fn database(way: Transport, user: &str, password: &str, database: &str) -> Endpoint {
    let (socket, port, tls) = match way {
        Transport::Socket(path) => (Some(path), None, None),
        Transport::Tcp(port) => (None, Some(port), None),
        Transport::Tls(port) => (None, Some(port), Some(Tls { authorities: None })),
    };
    Endpoint::Mysql {
        socket,
        host: Some("127.0.0.1".into()),
        port,
        user: user.into(),
        password: password.into(),
        tls,
        database: database.into(),
    }
}

fn cipher(way: &Transport, password: &str) -> Result<String, LoadError> {
    let sql = Sql {
        endpoint: endpoint(way.clone(), "sha2", password),
        statements: vec![CIPHER.into()],
        connect_timeout_ms: 0,
    };
    let answers = fairtrial_load::sql(&sql)?;
    Ok(answers[0].rows[0][1].clone().expect("a value"))
}

#[test]
fn a_password_is_proved_in_full_and_from_the_servers_memory_over_every_way() {
    let Some(server) = MysqlServer::start() else {
        return;
    };
    for way in server.ways() {
        server.root(&[FORGET]);
        let refused = cipher(&way, "wrong").expect_err("refused");
        assert!(format!("{refused:?}").contains("1045"), "{refused:?}");
        let in_full = cipher(&way, "open sesame").expect("in full");
        let remembered = cipher(&way, "open sesame").expect("remembered");
        assert_eq!(in_full, remembered);
        assert_eq!(
            in_full.starts_with("TLS_"),
            matches!(way, Transport::Tls(_))
        );
        let refused = cipher(&way, "wrong").expect_err("refused");
        assert!(format!("{refused:?}").contains("1045"), "{refused:?}");
    }
}

#[test]
fn tpc_c_runs_by_statements_and_by_procedures_and_stays_consistent() {
    let Some(server) = MysqlServer::start() else {
        return;
    };
    let endpoint = database(Transport::Socket(server.socket()), "root", "", "tpcc");
    crate::support::load(endpoint.clone(), 2, 2);
    let output = tempfile::tempdir().expect("a temporary directory");
    for procedures in [false, true] {
        let mut parameters = crate::support::parameters(endpoint.clone(), output.path());
        parameters.procedures = procedures;
        let driven = crate::support::drive(&parameters);
        assert_eq!(crate::support::completed(&driven), 400);
    }
    crate::support::assert_consistent(&endpoint);
}
