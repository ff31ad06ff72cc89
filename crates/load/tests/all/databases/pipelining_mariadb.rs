//! Statements sent together to a real, private MariaDB: the same work as one by one, and nothing half done, whatever
//! breaks. Skipped, and said so, where no MariaDB is installed.

use std::thread;
use std::time::Duration;

use crate::support::apart::{self, AnyDrive};
use crate::support::mariadb::{Server, shared};
use crate::support::oltp::{parameters, try_drive};
use crate::support::pipelining::{
    STATEMENTS, assert_same_cost, assert_whole, make, outcomes, run, transfer, transfers,
};
use crate::support::script::{driving, statement};
use crate::support::sysbench::counters;
use crate::support::{codes, hold, number, sql, sqlite, wait_until};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{Profile, Protocol};
use fairtrial_protocol::script::Scope;

/// Statements of each kind, and rows by what was done to them.
const COUNTERS: [&str; 15] = [
    "Com_begin",
    "Com_commit",
    "Com_delete",
    "Com_insert",
    "Com_rollback",
    "Com_select",
    "Com_update",
    "Handler_commit",
    "Handler_delete",
    "Handler_read_key",
    "Handler_read_next",
    "Handler_update",
    "Handler_write",
    "Rows_read",
    "Rows_sent",
];

#[test]
fn the_server_does_the_same_work_as_for_statements_one_by_one() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("same");
    let admin = server.endpoint("mysql");
    sql(&admin, &["SET GLOBAL innodb_stats_auto_recalc = 0"]);
    for profile in [
        Profile::ReadOnly,
        Profile::ReadWrite,
        Profile::WriteOnly,
        Profile::UpdateIndex,
    ] {
        assert_same_cost(&endpoint, profile, &|| counters(&admin, &COUNTERS));
    }
}

#[test]
fn a_deadlock_among_statements_sent_together_leaves_nothing_of_those_after_it() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("deadlocked");
    make(&endpoint);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = transfers(endpoint.clone(), directory.path());
    request.drive.transactions = Some(600);
    // Long enough between two locks for others to come in between.
    let pause = statement("SELECT SLEEP(0.002)", &[]);
    request.transactions[0].statements.insert(2, pause);
    let driven = run(&request);
    assert!(codes(&driven)["1213"] > 0, "{:?}", driven.errors);
    let outcomes = outcomes(&driven);
    assert_eq!((outcomes.committed, outcomes.failed), (600, 0));
    let attempts = outcomes.committed + outcomes.retried;
    assert_eq!(
        outcomes.statements,
        (STATEMENTS + 1) * attempts - outcomes.retried,
        "the commit of a failed one is never sent"
    );
    assert!(assert_whole(&endpoint) >= 600);
}

#[test]
fn lock_waits_that_time_out_and_killed_connections_leave_nothing_half_done() {
    let Some(server) = Server::start() else {
        return;
    };
    let endpoint = server.endpoint("broken");
    make(&endpoint);
    sql(&endpoint, &["SET GLOBAL innodb_lock_wait_timeout = 1"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = transfers(endpoint.clone(), directory.path());
    apart::endless(&mut request.drive);
    let mut driving = apart::begin(&AnyDrive::Script(request));
    driving.wait_for_rate();
    let patient = "SET SESSION innodb_lock_wait_timeout = 50";
    let lock = "SELECT * FROM account WHERE id = 7 FOR UPDATE";
    let held = hold(&endpoint, &[patient, "BEGIN", lock]);
    let timeouts =
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_timeouts'";
    wait_until("two wait too long", || number(&endpoint, timeouts) >= 2);
    drop(held);
    let users = "SELECT id FROM information_schema.processlist WHERE db = 'broken' AND id <> CONNECTION_ID()";
    for _ in 0..3 {
        for row in &sql(&endpoint, &[users])[0].rows {
            let id = row[0].as_deref().expect("a number");
            let kill = format!(
                "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; KILL {id}; END"
            );
            sql(&endpoint, &[&kill]);
        }
        thread::sleep(Duration::from_millis(300));
    }
    let before = transfers_noted(&endpoint);
    wait_until("users go on", || transfers_noted(&endpoint) > before + 20);
    let driven = driving.result();
    let kinds: Vec<&str> = driven
        .errors
        .iter()
        .map(|error| error.kind.as_str())
        .collect();
    assert!(codes(&driven)["1205"] > 0, "{:?}", driven.errors);
    assert!(kinds.contains(&"connection"), "{:?}", driven.errors);
    assert!(!kinds.contains(&"other"), "{:?}", driven.errors);
    assert_whole(&endpoint);
}

fn transfers_noted(endpoint: &Endpoint) -> i64 {
    number(endpoint, "SELECT COUNT(*) FROM transfer")
}

#[test]
fn a_server_that_hangs_is_left_when_users_should_have_finished() {
    let Some(server) = Server::start() else {
        return;
    };
    let endpoint = server.endpoint("hung");
    make(&endpoint);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = transfers(endpoint.clone(), directory.path());
    apart::endless(&mut request.drive);
    let mut driving = apart::begin_with(&AnyDrive::Script(request), &apart::IMPATIENT);
    driving.wait_for_rate();
    wait_until("users commit", || transfers_noted(&endpoint) > 20);
    server.freeze();
    assert!(outcomes(&driving.result()).committed > 0);
}

#[test]
fn what_cannot_be_pipelined_is_refused_before_anything_starts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let nowhere = Endpoint::Postgres {
        socket_directory: Some("/nonexistent".into()),
        host: None,
        port: None,
        user: String::new(),
        password: String::new(),
        tls: None,
        database: String::new(),
    };
    let refused = |error: LoadError, words: &str| {
        let LoadError::Parameter { field, problem } = error else {
            panic!("{error:?}")
        };
        assert_eq!(field, "pipelining");
        assert!(problem.contains(words), "{problem}");
    };
    let embedded = sqlite(&directory.path().join("t.db"));
    for (endpoint, profile, protocol, words) in [
        (&embedded, Profile::ReadOnly, Protocol::Prepared, "SQLite"),
        (&nowhere, Profile::ReadOnly, Protocol::Text, "text"),
        (
            &nowhere,
            Profile::Insert,
            Protocol::Prepared,
            "one statement",
        ),
        (
            &nowhere,
            Profile::PointSelect,
            Protocol::Prepared,
            "one statement",
        ),
    ] {
        let mut request = parameters(endpoint.clone(), directory.path(), profile, 1);
        (request.pipelining, request.protocol) = (true, protocol);
        refused(try_drive(&request).expect_err("refused"), words);
    }
    let script = |endpoint: &Endpoint, scope, statements: &[&str]| {
        let mut one = transfer(scope);
        one.statements = statements.iter().map(|sql| statement(sql, &[])).collect();
        let mut request = driving(endpoint.clone(), directory.path(), vec![one]);
        request.pipelining = true;
        fairtrial_load::drive_script(&request, &mut Vec::new()).expect_err("refused")
    };
    let two = ["SELECT 1", "SELECT 2"];
    refused(script(&embedded, Scope::ReadWrite, &two), "SQLite");
    refused(script(&nowhere, Scope::None, &two[..1]), "two statements");
    let procedures = ["CALL a()", "CALL b()"];
    refused(
        script(&nowhere, Scope::ReadWrite, &procedures),
        "two statements",
    );
}
