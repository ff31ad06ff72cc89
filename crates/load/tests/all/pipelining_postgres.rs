//! Statements sent together to a real, private PostgreSQL: the same work as one by one, and nothing half done, whatever
//! breaks. Skipped, and said so, where no PostgreSQL is installed.

use std::thread;
use std::time::Duration;

use crate::support::oltp::{drive, load, loading, parameters};
use crate::support::pipelining::{
    STATEMENTS, assert_same_cost, assert_whole, make, outcomes, run, transfer, transfers,
};
use crate::support::postgres::Server;
use crate::support::script::{driving, statement};
use crate::support::sysbench::Counts;
use crate::support::under_way::begin;
use crate::support::{codes, number, sql};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::Profile;
use fairtrial_protocol::script::Scope;

const TRUST: &str = "local all all trust\n";
const LOCAL_ONLY: [&str; 2] = ["-c", "listen_addresses="];

/// Statements of each kind, and rows by what was done to them.
const COUNTERS: &str = "SELECT split_part(query, ' ', 1) || what, SUM(count) FROM pg_stat_statements, \
    LATERAL (VALUES (' calls', calls), (' rows', rows)) AS counted (what, count) \
    WHERE query ~ '^(DELETE|INSERT|SELECT|UPDATE) ' AND query ~ 'sbtest' GROUP BY 1 \
    UNION ALL SELECT 'transactions', xact_commit FROM pg_stat_database WHERE datname = 'same' \
    UNION ALL SELECT 'rolled back', xact_rollback FROM pg_stat_database WHERE datname = 'same'";

fn counters(endpoint: &Endpoint, maintenance: &Endpoint) -> Counts {
    // A connection adds its own to some counters at its end.
    let left = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'same'";
    while number(maintenance, left) > 0 {
        thread::sleep(Duration::from_millis(10));
    }
    let rows = &sql(endpoint, &[COUNTERS])[0].rows;
    let count = |row: &Vec<Option<String>>| {
        let (name, value) = (row[0].clone()?, row[1].clone()?);
        Some((name, value.parse().ok()?))
    };
    rows.iter().filter_map(count).collect()
}

#[test]
fn the_server_does_the_same_work_as_for_statements_one_by_one() {
    let options = [
        "listen_addresses=",
        "autovacuum=off",
        "shared_preload_libraries=pg_stat_statements",
    ];
    let options: Vec<_> = options.iter().flat_map(|option| ["-c", option]).collect();
    let Some(server) = Server::start(TRUST, &options) else {
        return;
    };
    let (endpoint, maintenance) = (server.endpoint("same"), server.endpoint("postgres"));
    sql(&maintenance, &["CREATE DATABASE same"]);
    sql(&endpoint, &["CREATE EXTENSION pg_stat_statements"]);
    for profile in [
        Profile::ReadOnly,
        Profile::ReadWrite,
        Profile::WriteOnly,
        Profile::UpdateIndex,
    ] {
        let counters = || counters(&endpoint, &maintenance);
        assert_same_cost(&endpoint, profile, &counters);
    }
}

#[test]
fn more_than_a_socket_takes_goes_out_in_parts_and_answers_of_any_length_come_back() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let endpoint = server.endpoint("many");
    load(&loading(
        endpoint.clone(),
        Profile::ReadOnly,
        crate::support::oltp::SPECIAL,
    ));
    let directory = tempfile::tempdir().expect("a temporary directory");
    for skip_transactions in [false, true] {
        let mut asked = parameters(endpoint.clone(), directory.path(), Profile::ReadOnly, 3);
        (asked.pipelining, asked.skip_transactions) = (true, skip_transactions);
        (asked.mix.point_selects, asked.mix.simple_ranges) = (2_000, 200);
        asked.mix.range_size = 1_000;
        let driven = drive(&asked);
        let outcomes = driven.transactions["read_only"];
        let frame = if skip_transactions { 0 } else { 2 };
        assert_eq!(
            (outcomes.committed, outcomes.statements),
            (3, 3 * (2_000 + 200 + 3 + frame)),
            "{:?}",
            driven.errors
        );
    }
}

#[test]
fn deadlocks_timeouts_and_ended_backends_leave_nothing_half_done() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let endpoint = server.endpoint("broken");
    make(&endpoint);
    let directory = tempfile::tempdir().expect("a temporary directory");
    sql(
        &endpoint,
        &["ALTER DATABASE broken SET deadlock_timeout = '2ms'"],
    );
    let mut asked = transfers(endpoint.clone(), directory.path());
    asked.drive.transactions = Some(600);
    // Long enough between two locks for others to come in between.
    let pause = statement("SELECT pg_sleep(0.002)", &[]);
    asked.transactions[0].statements.insert(2, pause);
    let driven = run(&asked);
    assert!(codes(&driven)["40P01"] > 0, "{:?}", driven.errors);
    let found = outcomes(&driven);
    assert_eq!((found.committed, found.failed), (600, 0));
    assert_eq!(found.statements, (STATEMENTS + 1) * (600 + found.retried));
    let before = assert_whole(&endpoint);
    assert!(before >= 600);

    sql(
        &endpoint,
        &["DELETE FROM transfer", "UPDATE account SET left_from = 0"],
    );
    sql(
        &endpoint,
        &["ALTER DATABASE broken SET lock_timeout = '50ms'"],
    );
    (asked.drive.transactions, asked.drive.duration_s) = (None, Some(10.0));
    let driving = begin(move |lines| fairtrial_load::drive_script(&asked, lines));
    sql(
        &endpoint,
        &[
            "SET lock_timeout = 0",
            "BEGIN",
            "SELECT * FROM account WHERE id = 7 FOR UPDATE",
            "SELECT pg_sleep(0.5)",
            "ROLLBACK",
        ],
    );
    let end = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = 'broken' AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    for _ in 0..3 {
        // All may be waiting to connect again.
        let has_ended = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            number(&endpoint, end) > 0
        });
        assert!(has_ended);
        thread::sleep(Duration::from_millis(250));
    }
    let before = number(&endpoint, "SELECT COUNT(*) FROM transfer");
    let driven = driving.end().expect("it ends at its deadline");
    let known = ["40P01", "55P03", "57P01", "connection_lost"];
    let found = codes(&driven);
    assert!(found.keys().all(|code| known.contains(code)), "{found:?}");
    assert!(found["55P03"] > 0 && found["57P01"] > 0, "{found:?}");
    let after = i64::try_from(assert_whole(&endpoint)).expect("a count");
    assert!(after > before, "users went on");
}

#[test]
fn rows_that_differ_and_keys_that_are_there_undo_what_was_sent_with_them() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let endpoint = server.endpoint("differing");
    make(&endpoint);
    sql(&endpoint, &["INSERT INTO transfer VALUES (-1, 0)"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut nobody = statement(
        "UPDATE account SET balance = 7 WHERE id = ? - 1000",
        &["from"],
    );
    nobody.rows = Some(1);
    let twice = statement("INSERT INTO transfer VALUES (-1, 1)", &[]);
    for (bad, code, attempts) in [(nobody, "rows_differ", 1), (twice, "23505", 3)] {
        let mut asked = transfers(endpoint.clone(), directory.path());
        asked.transactions[0].statements.insert(2, bad);
        (asked.drive.transactions, asked.drive.virtual_users) = (Some(10), 1);
        asked.drive.retries = 2;
        let driven = run(&asked);
        assert_eq!(codes(&driven), [(code, 10 * attempts)].into());
        assert_eq!(outcomes(&driven).failed, 10);
        assert_eq!(
            assert_whole(&endpoint),
            1,
            "none but the one that was there"
        );
    }
}

#[test]
fn statements_outside_transactions_each_commit_whatever_becomes_of_the_others() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let endpoint = server.endpoint("mixed");
    make(&endpoint);
    sql(&endpoint, &["INSERT INTO transfer VALUES (-1, 0)"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut alone = transfer(Scope::None);
    alone.name = "alone".into();
    let twice = statement("INSERT INTO transfer VALUES (-1, 1)", &[]);
    alone.statements.insert(1, twice);
    let both = vec![transfer(Scope::ReadWrite), alone];
    let mut asked = driving(endpoint.clone(), directory.path(), both);
    asked.pipelining = true;
    asked.drive.retries = 0;
    let driven = run(&asked);
    let (whole, alone) = (outcomes(&driven), driven.transactions["alone"]);
    assert_eq!(codes(&driven), [("23505", alone.failed)].into());
    assert!(whole.committed > 100 && alone.failed > 100 && whole.failed == 0);
    let kept = assert_whole(&endpoint);
    assert_eq!(kept, 1 + whole.committed + alone.failed);
}
