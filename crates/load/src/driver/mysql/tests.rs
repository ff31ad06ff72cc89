use std::io;

use super::*;
use crate::reactor::Address;
use crate::tests::mariadb::Server;

mod exchanges;
mod values;

fn driver(server: &Server, database: &str) -> Mysql {
    let fairtrial_protocol::load::Endpoint::Mysql {
        socket: Some(socket),
        ..
    } = server.endpoint(database)
    else {
        panic!("a socket")
    };
    Mysql(RemoteServer {
        address: Address::Socket(socket.into()),
        user: "root".into(),
        password: String::new(),
        database: database.into(),
        tls: None,
    })
}

#[test]
fn errors_are_classified_by_what_the_workload_can_do_about_them() {
    let kind = |code| {
        let error = classify_server(code, String::new());
        (error.kind, error.retryable)
    };
    assert_eq!(kind(1213), (ErrorKind::Deadlock, true));
    assert_eq!(kind(1205), (ErrorKind::LockTimeout, true));
    assert_eq!(kind(1020), (ErrorKind::Other, true));
    assert_eq!(kind(1040), (ErrorKind::Connection, false));
    assert_eq!(kind(1062), (ErrorKind::Other, false));
    let lost = lost(io::ErrorKind::BrokenPipe.into());
    assert_eq!(
        (lost.kind, lost.code.as_str()),
        (ErrorKind::Connection, "connection_lost")
    );
}
