//! The same on a real, private MariaDB; skipped, and said so, where none is installed.

use std::thread;
use std::time::Duration;

use crate::support::mariadb::{Server, shared};
use crate::support::under_way::begin;
use crate::support::{
    assert_consistent, completed, drive, effects, load, number, parameters, sql, sqlite,
};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql};

#[test]
fn content_is_the_same_on_both_systems_and_for_any_number_of_threads() {
    let Some(server) = shared() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = load(sqlite(&directory.path().join("t.db")), 1, 1);
    let endpoint = server.endpoint("content");
    for threads in [1, 3] {
        let loaded = load(endpoint.clone(), 1, threads);
        assert_eq!(loaded, embedded, "{threads} threads");
    }
    sql(&endpoint, &["SET GLOBAL local_infile = 0"]);
    assert_eq!(
        load(endpoint.clone(), 1, 2),
        embedded,
        "a server without LOAD DATA LOCAL"
    );
    sql(&endpoint, &["SET GLOBAL local_infile = 1"]);
    let read_back = fairtrial_load::content_sha256(&endpoint, 1).expect("the content can be read");
    assert_eq!(
        read_back, embedded.content_sha256,
        "and it is what the tables hold"
    );
    let indexes = "SELECT COUNT(DISTINCT table_name, index_name) FROM information_schema.statistics WHERE table_schema = 'content'";
    assert_eq!(
        number(&endpoint, indexes),
        10,
        "eight primary keys and two indexes"
    );
    sql(&endpoint, &["DROP DATABASE content"]);
}

#[test]
fn all_conditions_hold_and_all_columns_change_when_eight_users_drive() {
    let Some(server) = shared() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("driven");
    load(endpoint.clone(), 2, 2);
    assert_consistent(&endpoint);
    let before = effects::look(&endpoint);
    let mut asked = parameters(endpoint.clone(), directory.path());
    (asked.drive.virtual_users, asked.drive.transactions) = (1, Some(300));
    effects::assert_counts(&endpoint, &before, &drive(&asked));
    (asked.drive.virtual_users, asked.drive.transactions) = (8, Some(2_000));
    let driven = drive(&asked);
    let failed: u64 = driven
        .transactions
        .values()
        .map(|outcomes| outcomes.failed)
        .sum();
    assert_eq!(completed(&driven) + failed, 2_000);
    let kinds: Vec<&str> = driven
        .errors
        .iter()
        .map(|error| error.kind.as_str())
        .collect();
    assert!(
        kinds.iter().all(|kind| *kind == "deadlock"),
        "{:?}",
        driven.errors
    );
    assert!(
        driven.effective.contains_key("tx_isolation"),
        "{:?}",
        driven.effective
    );
    assert_consistent(&endpoint);
    effects::assert_changed(&endpoint, &before);
    corrupted_rows_are_named(&endpoint);
    sql(&endpoint, &["DROP DATABASE driven"]);
}

fn corrupted_rows_are_named(endpoint: &Endpoint) {
    sql(
        endpoint,
        &[
            "UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 5 AND no_o_id = 2900",
        ],
    );
    let checked = crate::support::check(endpoint);
    let violated = checked
        .conditions
        .iter()
        .filter(|condition| condition.violations > 0);
    let clauses: Vec<_> = violated
        .map(|condition| condition.clause.trim_start_matches("3.3.2."))
        .collect();
    assert_eq!(clauses, ["3", "5", "10", "11", "12"]);
    let tenth = &checked.conditions[9].examples[0];
    assert!(tenth.starts_with("c_w_id=2 c_d_id=3 c_id=8 "), "{tenth}");
}

#[test]
fn a_server_killed_and_restarted_costs_counted_errors_and_no_hang() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("killed");
    load(endpoint.clone(), 1, 2);
    let mut asked = parameters(endpoint.clone(), directory.path());
    (asked.warehouses, asked.drive.virtual_users) = (1, 4);
    (asked.drive.transactions, asked.drive.duration_s) = (None, Some(30.0));
    let driving = begin(move |progress| fairtrial_load::drive(&asked, progress));
    thread::sleep(Duration::from_secs(1));
    server.kill();
    thread::sleep(Duration::from_secs(1));
    server.restart();
    let committed_at_restart = number(&endpoint, "SELECT COUNT(*) FROM history");
    let driven = driving.end().expect("the drive ends at its deadline");
    assert_eq!(
        driven.window.end_ns - driven.window.start_ns,
        30_000_000_000
    );
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
    let committed = number(&endpoint, "SELECT COUNT(*) FROM history");
    assert!(
        committed > committed_at_restart,
        "users went on after the restart"
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
    a_server_that_stops_answering_ends_a_drive_that_waits_for_transactions(
        &server,
        directory.path(),
    );
}

fn a_server_that_stops_answering_ends_a_drive_that_waits_for_transactions(
    server: &Server,
    directory: &std::path::Path,
) {
    let mut asked = parameters(server.endpoint("killed"), directory);
    (asked.warehouses, asked.drive.virtual_users) = (1, 4);
    asked.drive.transactions = Some(1_000_000_000);
    let driving = begin(move |progress| fairtrial_load::drive(&asked, progress));
    server.freeze();
    let stalled = driving.end().expect_err("it cannot end well");
    assert!(
        matches!(
            stalled,
            LoadError::Stalled {
                asked: 1_000_000_000,
                ..
            }
        ),
        "{stalled:?}"
    );
    let result =
        std::fs::read(directory.join("result.json")).expect("what was measured is written");
    let driven: fairtrial_protocol::load::Driven =
        serde_json::from_slice(&result).expect("a result");
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

#[test]
fn statements_give_columns_and_text_with_null_kept() {
    let Some(server) = shared() else { return };
    let rows = sql(
        &server.endpoint("mysql"),
        &["SELECT 1 AS one, NULL AS nothing, 1.50 AS money", "DO 0"],
    );
    assert_eq!(rows[0].columns, ["one", "nothing", "money"]);
    assert_eq!(
        rows[0].rows,
        [[Some("1".into()), None, Some("1.50".into())]]
    );
    assert!(rows[1].columns.is_empty() && rows[1].rows.is_empty());
}
