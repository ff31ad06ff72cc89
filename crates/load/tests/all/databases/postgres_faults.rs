//! What goes wrong while users drive a real PostgreSQL is counted by its code, and users go on; skipped, and said so,
//! where none is installed.

use std::thread;
use std::time::Duration;

use crate::support::apart::{self, AnyDrive};
use crate::support::oltp::{SPECIAL, loading};
use crate::support::postgres::{Server, give};
use crate::support::small_disk::SmallDisk;
use crate::support::{codes, embedded, load, number, parameters, sql, wait_until};
use fairtrial_protocol::load::{Arrivals, Driven, Endpoint, TpccCheck};
use fairtrial_protocol::oltp::{OltpDrive, Profile};

const TRUST: &str = "local all all trust\n";
const LOCAL_ONLY: [&str; 2] = ["-c", "listen_addresses="];

/// Of users that meet at every row.
const TRANSACTIONS: u64 = 300;

const HISTORY: &str = "SELECT COUNT(*) FROM history";
const COMMITTED: &str = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'crowded'";
const BACKENDS: &str = "FROM pg_stat_activity WHERE datname = 'killed' AND usename = 'driver'";

/// The endpoint as an ordinary user, whom limits bind.
fn as_driver(endpoint: Endpoint) -> Endpoint {
    let Endpoint::Postgres {
        socket_directory,
        database,
        ..
    } = endpoint
    else {
        panic!("a PostgreSQL endpoint")
    };
    Endpoint::Postgres {
        socket_directory,
        host: None,
        port: None,
        user: "driver".into(),
        password: String::new(),
        tls: None,
        database,
    }
}

#[test]
fn ended_backends_a_crash_and_a_restart_are_counted_by_code_and_users_come_back() {
    let Some(mut server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("killed");
    assert_eq!(&load(endpoint.clone(), 1, 1), embedded(), "one thread");
    sql(
        &endpoint,
        &[
            "CREATE ROLE driver LOGIN",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO driver",
        ],
    );
    let mut request = parameters(as_driver(endpoint.clone()), directory.path());
    (request.warehouses, request.drive.virtual_users) = (1, 4);
    apart::endless(&mut request.drive);
    let mut driving = apart::begin(&AnyDrive::Tpcc(request));
    driving.wait_for_rate();
    let ended = break_everything(&mut server, &endpoint);
    let driven = driving.result();
    let is_known = |kind: &str| ["connection", "deadlock"].contains(&kind);
    assert!(
        driven.errors.iter().all(|error| is_known(&error.kind)),
        "{:?}",
        driven.errors
    );
    let codes = codes(&driven);
    let ended = u64::try_from(ended).expect("a count");
    assert!(
        ended == 4 && codes["57P01"] >= ended,
        "each was told: {codes:?}"
    );
    assert!(codes["53300"] >= ended, "and refused meanwhile: {codes:?}");
    // Of the others each is told if it is not just connecting, and if its message leaves before its process ends.
    assert!(
        codes["57P02"] >= 1,
        "others than the one that crashed were told: {codes:?}"
    );
    assert!(
        codes["connection_lost"] >= 1,
        "a crashed backend says nothing: {codes:?}"
    );
    let checked = fairtrial_load::check(&TpccCheck {
        endpoint,
        warehouses: 1,
    });
    let conditions = checked.expect("it can be checked").conditions;
    assert!(conditions.iter().all(|condition| condition.violations == 0));
}

/// Ends all backends, crashes one, and crashes the server, waiting each time until users go on; returns how many
/// backends were ended.
fn break_everything(server: &mut Server, endpoint: &Endpoint) -> i64 {
    // No room to come back to until all have had time to try.
    sql(endpoint, &["ALTER DATABASE killed CONNECTION LIMIT 0"]);
    let terminate = format!("SELECT COUNT(pg_terminate_backend(pid)) {BACKENDS}");
    let ended = number(endpoint, &terminate);
    let refused = || {
        server
            .log()
            .matches("too many connections for database")
            .count()
    };
    wait_until("eight were refused", || refused() >= 8);
    sql(endpoint, &["ALTER DATABASE killed CONNECTION LIMIT -1"]);
    let before = wait_for_more(endpoint, 0);

    // One backend crashes: the server ends all others and recovers.
    let pid = number(endpoint, &format!("SELECT MIN(pid) {BACKENDS}"));
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("a process id"));
    rustix::process::kill_process(pid.expect("not 0"), rustix::process::Signal::KILL)
        .expect("a child of our server");
    wait_until("the server noticed", || {
        let log = server.log();
        log.contains("terminating any other active server processes")
    });
    let before = wait_for_more(endpoint, before);

    server.crash();
    thread::sleep(Duration::from_millis(500));
    server.restart();
    wait_for_more(endpoint, before);
    ended
}

/// Waits until users commit more than before, so that they have all come through; gives what there is then.
fn wait_for_more(endpoint: &Endpoint, before: i64) -> i64 {
    let start = number(endpoint, HISTORY).max(before);
    let connected = format!("SELECT COUNT(*) {BACKENDS}");
    wait_until("all users go on", || {
        number(endpoint, HISTORY) > start + 20 && number(endpoint, &connected) == 4
    });
    number(endpoint, HISTORY)
}

/// Tables so small that users meet, and a drive that writes them.
fn crowded(server: &Server, directory: &std::path::Path, settings: &[&str]) -> OltpDrive {
    let endpoint = server.endpoint("crowded");
    let others = server.endpoint("postgres");
    sql(&others, &["DROP DATABASE IF EXISTS crowded WITH (FORCE)"]);
    let mut tables = loading(endpoint.clone(), Profile::WriteOnly, SPECIAL);
    (tables.tables, tables.table_size) = (1, 20);
    crate::support::oltp::load(&tables);
    let settings: Vec<String> = settings
        .iter()
        .map(|setting| format!("ALTER DATABASE crowded SET {setting}"))
        .collect();
    sql(
        &endpoint,
        &settings.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let mut request =
        crate::support::oltp::parameters(endpoint, directory, Profile::WriteOnly, TRANSACTIONS);
    (request.tables, request.table_size) = (1, 20);
    (request.mix.index_updates, request.drive.virtual_users) = (4, 8);
    request
}

fn assert_retried(driven: &Driven, code: &str) {
    let codes = codes(driven);
    assert!(
        codes.get(code).is_some_and(|count| *count > 0),
        "{code}: {codes:?}"
    );
    let outcomes = &driven.transactions["write_only"];
    assert!(
        outcomes.retried > 0 && outcomes.committed > 0,
        "{outcomes:?}"
    );
}

#[test]
fn deadlocks_and_serialization_failures_are_counted_by_code_and_repeated() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let deadlocks = crowded(&server, directory.path(), &["deadlock_timeout = '2ms'"]);
    let driven = crate::support::oltp::drive(&deadlocks);
    assert_retried(&driven, "40P01");
    let outcomes = &driven.transactions["write_only"];
    assert_eq!(outcomes.committed + outcomes.failed, TRANSACTIONS);
    let deadlocks = driven
        .errors
        .iter()
        .filter(|error| error.kind == "deadlock");
    assert!(deadlocks.map(|error| error.code.as_str()).eq(["40P01"]));
    // Two users that replace one row: the second finds it gone, and its key there (nothing of that at MariaDB).
    let known = ["40P01", "23505"];
    assert!(
        codes(&driven).keys().all(|code| known.contains(code)),
        "{:?}",
        driven.errors
    );

    let isolation = [
        "default_transaction_isolation = 'repeatable read'",
        "deadlock_timeout = '2ms'",
    ];
    let driven = crate::support::oltp::drive(&crowded(&server, directory.path(), &isolation));
    assert_retried(&driven, "40001");
    assert_eq!(
        driven.effective["default_transaction_isolation"],
        "repeatable read"
    );
}

#[test]
fn statements_and_locks_that_take_too_long_are_counted_by_code_and_repeated() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    for (setting, code, timeout) in [
        ("lock_timeout = '300ms'", "55P03", "lock timeout"),
        // It binds what a drive asks before its window too.
        ("statement_timeout = '2s'", "57014", "statement timeout"),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let settings = [setting, "deadlock_timeout = '2ms'"];
        let mut request = crowded(&server, directory.path(), &settings);
        apart::endless(&mut request.drive);
        // Enough to outlast the lock: back-off grows to a tenth of a second.
        request.drive.retries = 1_000;
        let endpoint = request.drive.endpoint.clone();
        let mut driving = apart::begin(&AnyDrive::Oltp(request));
        driving.wait_for_rate();
        let statements = [
            "SET statement_timeout = 0",
            "SET lock_timeout = 0",
            "BEGIN",
            "LOCK TABLE sbtest1 IN ACCESS EXCLUSIVE MODE",
        ];
        let held = crate::support::hold(&endpoint, &statements);
        let words = format!("canceling statement due to {timeout}");
        wait_until("one waits too long", || server.log().contains(&words));
        drop(held);
        let committed = || number(&server.endpoint("postgres"), COMMITTED);
        let before = committed();
        wait_until("users go on", || committed() > before + 20);
        let driven = driving.result();
        assert_retried(&driven, code);
        let timeouts = driven.errors.iter().filter(|error| error.code == code);
        assert!(
            timeouts
                .map(|error| error.kind.as_str())
                .all(|kind| kind == "lock_timeout")
        );
    }
}

/// Rows of a table on a small disk. The log is elsewhere: a server that cannot write its log panics, which is a crash.
#[test]
fn a_full_disk_is_counted_and_inserts_go_on_once_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let on_it = disk.directory().join("tables");
    std::fs::create_dir(&on_it).expect("there is room");
    give(&on_it);
    let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", on_it.display());
    sql(
        &server.endpoint("postgres"),
        &[&tablespace, "CREATE DATABASE full_disk TABLESPACE small"],
    );
    let endpoint = server.endpoint("full_disk");
    crate::support::oltp::load(&loading(endpoint.clone(), Profile::Insert, SPECIAL));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request =
        crate::support::oltp::parameters(endpoint.clone(), directory.path(), Profile::Insert, 1);
    (request.tables, request.drive.virtual_users) = (1, 2);
    apart::endless(&mut request.drive);
    request.drive.arrivals = Arrivals::default(); // room is taken by the megabyte
    let mut driving = apart::begin(&AnyDrive::Oltp(request));
    driving.wait_for_rate();
    let driven = disk.fill_and_free(driving, &endpoint, "53100");
    let codes = codes(&driven);
    assert_eq!(
        codes.len(),
        1,
        "nothing else went wrong: {:?}",
        driven.errors
    );
    let failed: u64 = driven.transactions.values().map(|one| one.failed).sum();
    assert_eq!(failed, codes["53100"], "none was repeated");
}
