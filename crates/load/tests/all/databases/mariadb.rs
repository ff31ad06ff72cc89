//! What only MariaDB does or is put through; skipped, and said so, where none is installed.

use crate::support::apart::{self, AnyDrive};
use crate::support::mariadb::{Server, shared};
use crate::support::oltp::{self, SPECIAL};
use crate::support::{embedded, load, number, parameters, result, sql, wait_until};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql};
use fairtrial_protocol::oltp::Profile;

#[test]
fn a_server_without_load_data_local_is_given_the_same_rows() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("inserted");
    sql(&server.endpoint("mysql"), &["SET GLOBAL local_infile = 0"]);
    assert_eq!(&load(endpoint.clone(), 1, 2), embedded());
    sql(
        &endpoint,
        &["SET GLOBAL local_infile = 1", "DROP DATABASE inserted"],
    );
}

#[test]
fn a_server_killed_and_restarted_costs_counted_errors_and_no_hang() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("killed");
    assert_eq!(&load(endpoint.clone(), 1, 1), embedded(), "one thread");
    let mut request = parameters(endpoint.clone(), directory.path());
    (request.warehouses, request.drive.virtual_users) = (1, 4);
    apart::endless(&mut request.drive);
    let mut driving = apart::begin(&AnyDrive::Tpcc(request));
    driving.wait_for_rate();
    server.kill();
    driving.wait_for_errors(4);
    server.restart();
    let history = || number(&endpoint, "SELECT COUNT(*) FROM history");
    let committed_at_restart = history();
    wait_until("users go on", || history() > committed_at_restart);
    let driven = driving.result();
    let lost: u64 = driven
        .errors
        .iter()
        .filter(|error| error.kind == "connection")
        .map(|error| error.count)
        .sum();
    assert!(
        lost >= 4,
        "each of four users lost its connection: {:?}",
        driven.errors
    );
    assert!(
        driven
            .errors
            .iter()
            .all(|error| error.kind == "connection" || error.kind == "deadlock")
    );
    let checked = fairtrial_load::check(&fairtrial_protocol::load::TpccCheck {
        endpoint,
        warehouses: 1,
    });
    assert!(
        checked
            .expect("it can be checked")
            .conditions
            .iter()
            .all(|condition| condition.violations == 0)
    );
}

#[test]
fn a_server_that_stops_answering_ends_a_drive_that_waits_for_transactions() {
    let Some(server) = Server::start() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("frozen");
    oltp::load(&oltp::loading(
        endpoint.clone(),
        Profile::ReadWrite,
        SPECIAL,
    ));
    let mut request = oltp::parameters(
        endpoint,
        directory.path(),
        Profile::ReadWrite,
        1_000_000_000,
    );
    request.drive.virtual_users = 4;
    let mut driving = apart::begin_with(&AnyDrive::Oltp(request), &apart::IMPATIENT);
    driving.wait_for_window();
    server.freeze();
    let error = driving.error();
    assert!(
        error.starts_with("no transaction ended within 0.5 s")
            && error.ends_with(" of the 1000000000 asked for were still missing"),
        "{error}"
    );
    let driven = result(directory.path());
    assert!(driven.window.end_ns > driven.window.start_ns);
}

#[test]
fn refusals_name_the_endpoint_and_never_the_password() {
    let Some(server) = shared() else { return };
    let Endpoint::Mysql { socket, .. } = server.endpoint("mysql") else {
        panic!("a MySQL endpoint")
    };
    let ask = |user: &str, socket: Option<String>, statement: &str| {
        let endpoint = Endpoint::Mysql {
            socket,
            host: None,
            port: None,
            user: user.into(),
            password: "open sesame".into(),
            tls: None,
            database: "mysql".into(),
        };
        fairtrial_load::sql(&Sql {
            endpoint,
            statements: vec![statement.into()],
            connect_timeout_ms: 100,
        })
    };
    let wrong = ask("nobody", socket.clone(), "SELECT 1").expect_err("the password is wrong");
    let LoadError::Connect { endpoint, source } = &wrong else {
        panic!("{wrong:?}")
    };
    assert!(
        endpoint.starts_with("nobody@") && !format!("{wrong:?}").contains("sesame"),
        "{wrong:?}"
    );
    assert_eq!(source.code, "1045");
    let gone =
        ask("root", Some("/nowhere/socket".into()), "SELECT 1").expect_err("no server there");
    assert!(matches!(gone, LoadError::Connect { .. }), "{gone:?}");
}
