//! Statements sent together to a real, private PostgreSQL: the same work as one by one, and nothing half done, whatever
//! breaks. Skipped, and said so, where no PostgreSQL is installed.

use std::thread;
use std::time::Duration;

use crate::support::apart::{self, AnyDrive};
use crate::support::pipelining::{
    STATEMENTS, assert_same_cost, assert_whole, make, outcomes, run, transfers,
};
use crate::support::postgres::Server;
use crate::support::script::statement;
use crate::support::sysbench::Counts;
use crate::support::{codes, hold, number, sql, wait_until};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::Profile;

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
    let mut request = transfers(endpoint.clone(), directory.path());
    request.drive.transactions = Some(600);
    // Long enough between two locks for others to come in between.
    let pause = statement("SELECT pg_sleep(0.002)", &[]);
    request.transactions[0].statements.insert(2, pause);
    let driven = run(&request);
    assert!(codes(&driven)["40P01"] > 0, "{:?}", driven.errors);
    let outcomes = outcomes(&driven);
    assert_eq!((outcomes.committed, outcomes.failed), (600, 0));
    assert_eq!(
        outcomes.statements,
        (STATEMENTS + 1) * (600 + outcomes.retried)
    );
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
    apart::endless(&mut request.drive);
    let mut driving = apart::begin(&AnyDrive::Script(request));
    driving.wait_for_rate();
    let lock = "SELECT * FROM account WHERE id = 7 FOR UPDATE";
    let held = hold(&endpoint, &["SET lock_timeout = 0", "BEGIN", lock]);
    let cancelled = "canceling statement due to lock timeout";
    wait_until("one waits too long", || server.log().contains(cancelled));
    drop(held);
    let end = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = 'broken' AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    for _ in 0..3 {
        // All may be waiting to connect again.
        wait_until("one is ended", || number(&endpoint, end) > 0);
        thread::sleep(Duration::from_millis(250));
    }
    let noted = || number(&endpoint, "SELECT COUNT(*) FROM transfer");
    let before = noted();
    wait_until("users go on", || noted() > before + 20);
    let driven = driving.result();
    let known = ["40P01", "55P03", "57P01", "connection_lost"];
    let codes = codes(&driven);
    assert!(codes.keys().all(|code| known.contains(code)), "{codes:?}");
    assert!(codes["55P03"] > 0 && codes["57P01"] > 0, "{codes:?}");
    assert_whole(&endpoint);
}
