//! Corpora read again, and sessions recorded from real servers.
//!
//! `WRITE_CORPUS=1 cargo test -p fairtrial-load recorded_now -- --include-ignored` writes the sessions to the corpora.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};

use fairtrial_protocol::load::{Endpoint, Sql};

use super::*;
use crate::driver::dialect::Dialect;
use crate::driver::postgres::Postgres;
use crate::reactor::{Address, block_on};
use crate::tests::{mariadb, postgres as server_support};

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/tree.rs"]
mod tree;

#[test]
fn every_input_of_the_corpora_is_read_to_its_end() {
    corpus::each("mysql", mysql);
    corpus::each("postgres", postgres);
    corpus::each("postgres_login", postgres_login);
    corpus::each("noop", noop);
    let root = tempfile::tempdir().expect("a directory");
    corpus::each("kernel", |input| {
        tree::clear(root.path());
        tree::write(root.path(), tree::halves(input).0);
        file_counters(root.path());
    });
}

#[test]
fn a_session_of_mariadb_recorded_now_is_replayed_as_it_was() {
    let Some(server) = mariadb::shared() else {
        return;
    };
    prepare(
        [server.endpoint("mysql"), server.endpoint("recorded")],
        "CREATE OR REPLACE DATABASE recorded",
        Dialect::Mysql,
    );
    let Endpoint::Mysql {
        socket: Some(socket),
        ..
    } = server.endpoint("recorded")
    else {
        panic!("a socket")
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (address, said) = listen(&directory.path().join("tee"), &socket);
    let gave = block_on(async {
        let account = Account {
            user: "root",
            password: "",
            ..account(true)
        };
        let mut connection = MysqlConnection::open(&address, &account).await?;
        connection.prepare(&MYSQL.map(String::from)).await?;
        let gave = session(&mut connection).await;
        Ok::<_, DriverError>(gave)
    });
    let said = [b"L", &said.join().expect("recorded")[..]].concat();
    let gave = gave.expect("a loop").expect("a session");
    assert_eq!(now(replay_mysql(&said)), Ok(gave));
    keep("mysql/mariadb-session", &said);
}

#[test]
#[ignore = "long: its server is for it alone; its sibling is that of MariaDB"]
fn a_session_of_postgres_recorded_now_is_replayed_as_it_was() {
    let Some(server) = server_support::start_common() else {
        return;
    };
    prepare(
        [server.endpoint("postgres"), server.endpoint("recorded")],
        "CREATE DATABASE recorded",
        Dialect::Postgres,
    );
    let Endpoint::Postgres {
        socket_directory: Some(directory),
        port,
        ..
    } = server.endpoint("recorded")
    else {
        panic!("a socket")
    };
    let socket = Postgres::socket(&directory, port.unwrap_or(Postgres::DEFAULT_PORT));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (address, said) = listen(&directory.path().join("tee"), &socket.to_string());
    let gave = block_on(async {
        let account = Account {
            user: server_support::USER,
            ..account(true)
        };
        let mut connection = PostgresConnection::open(&address, &account).await?;
        connection.prepare(&POSTGRES.map(String::from)).await?;
        let gave = session(&mut connection).await;
        Ok::<_, DriverError>(gave)
    });
    let said = [b"L", &said.join().expect("recorded")[..]].concat();
    let gave = gave.expect("a loop").expect("a session");
    assert_eq!(now(replay_postgres(&said)), Ok(gave));
    keep("postgres/session", &said);
}

/// Makes the database that sessions use, with its table.
fn prepare([maintenance, recorded]: [Endpoint; 2], create: &str, dialect: Dialect) {
    let table = RECORDED.create(dialect);
    for (endpoint, statement) in [(maintenance, create), (recorded, &table)] {
        let request = Sql {
            endpoint,
            statements: vec![statement.into()],
            connect_timeout_ms: 0,
        };
        crate::sql(&request).expect("it answers");
    }
}

/// Passes one connection on to a server; gives all that the server said, once either has closed it.
fn listen(path: &Path, server: &str) -> (Address, JoinHandle<Vec<u8>>) {
    let listener = UnixListener::bind(path).expect("a free name");
    let mut to_server = UnixStream::connect(server).expect("it listens");
    let mut from_server = to_server.try_clone().expect("a handle");
    let said = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        let mut from_client = client.try_clone().expect("a handle");
        let forward = thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server); // until the session says good-bye
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let (mut said, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(length @ 1..) = from_server.read(&mut buffer) {
            said.extend_from_slice(&buffer[..length]);
            if client.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        forward.join().expect("it ended");
        said
    });
    (Address::Socket(path.to_owned()), said)
}

/// Writes an input where it is asked for.
fn keep(input: &str, bytes: &[u8]) {
    if std::env::var_os("WRITE_CORPUS").is_some() {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        fs::write(corpora.join(input), bytes).expect("written");
    }
}
