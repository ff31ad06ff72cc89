//! Sampling a real MariaDB's own counters: true, and out of nobody's way when the server dies or hangs.

#[path = "../../../load/tests/all/support/mariadb.rs"]
#[allow(dead_code)] // the load engine's tests use more of it
mod mariadb;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::eventually::eventually;
use crate::stream;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;
use fairtrial_load::Client;
use fairtrial_protocol::load::{Endpoint, Sql};
use fairtrial_protocol::sample::{Sample, SampledServer, Source};
use fairtrial_sample::{SHORTEST_SERVER_INTERVAL_MS, SampleError, Sampler, SamplerEnd};
use serde_json::json;
use tempfile::TempDir;

const INTERVAL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_mins(2);

/// The server's own words, by variable.
type Status = BTreeMap<String, u64>;
/// Samples by column.
type Columns = BTreeMap<String, Vec<Option<u64>>>;

fn parameters(endpoint: Endpoint, output: &Path) -> Sample {
    Sample {
        interval_ms: 100,
        sources: vec![Source::Cpu],
        processes: BTreeMap::new(),
        process_trees: BTreeMap::new(),
        server: Some(SampledServer {
            endpoint,
            interval_ms: SHORTEST_SERVER_INTERVAL_MS,
            lock_waits: true,
        }),
        exporters: vec![],
        commands: vec![],
        shown: vec![],
        output_directory: output.to_string_lossy().into(),
    }
}

fn open(endpoint: Endpoint) -> (TempDir, Sampler) {
    let output = tempfile::tempdir().expect("a directory");
    let sampler = Sampler::open(Path::new("/proc"), &parameters(endpoint, output.path()));
    (output, sampler.expect("it opens"))
}

/// Opens until the first tick is answered, which a server that has just started on a crowded machine may fail to do.
fn open_answered(endpoint: &Endpoint) -> (TempDir, Sampler) {
    eventually("the server answers a first tick", || {
        let (output, sampler) = open(endpoint.clone());
        if sampler.names().contains(&"server") {
            return Some((output, sampler));
        }
        sampler.finish().expect("it ends");
        None
    })
}

/// Whether a warning tells of an answer that came too late.
fn is_late(warning: &str) -> bool {
    let late = [
        "the server gave no sample for",
        "lock waits could not be asked for",
    ];
    late.iter().any(|words| warning.starts_with(words))
}

fn columns(output: &TempDir) -> Columns {
    stream::columns(&output.path().join("telemetry-server.arrows"))
}

/// The server's whole status, as it says it now.
fn status(endpoint: &Endpoint) -> Status {
    let answers = fairtrial_load::sql(&Sql {
        endpoint: endpoint.clone(),
        statements: vec!["SHOW GLOBAL STATUS".into()],
        connect_timeout_ms: 0,
    });
    let rows = answers.expect("it answers").remove(0).rows;
    rows.into_iter()
        .filter_map(|row| Some((row[0].clone()?, row[1].as_ref()?.parse().ok()?)))
        .collect()
}

fn run(endpoint: &Endpoint, statements: &[&str]) {
    let query = Sql {
        endpoint: endpoint.clone(),
        statements: statements.iter().map(|sql| (*sql).to_owned()).collect(),
        connect_timeout_ms: 0,
    };
    fairtrial_load::sql(&query).expect("the statements run");
}

/// What was sampled while rows were inserted, between the server's own words; nothing where an answer came late, since
/// the last sample may then be from before the insert.
fn sampled(endpoint: &Endpoint) -> Option<(Status, Columns, Status)> {
    let before = status(endpoint);
    let (output, sampler) = open_answered(endpoint);
    run(
        endpoint,
        &[
            "CREATE OR REPLACE DATABASE test",
            "CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB",
            "INSERT INTO test.t VALUES (1), (2)",
        ],
    );
    thread::sleep(3 * INTERVAL);
    let SamplerEnd {
        missed_server: missed,
        warnings,
        ..
    } = sampler.finish().expect("it ends");
    assert!(
        warnings.iter().all(|warning| is_late(warning)),
        "{warnings:?}"
    );
    let after = status(endpoint);
    let telemetry = columns(&output);
    let missed_samples = telemetry["missed_samples"].last().copied().flatten();
    assert!(
        missed_samples == Some(missed) || missed_samples < Some(missed) && !warnings.is_empty(),
        "{missed_samples:?} of {missed}: {warnings:?}"
    );
    warnings.is_empty().then_some((before, telemetry, after))
}

#[test]
fn counters_agree_with_the_server_s_own_status_before_and_after() {
    let Some(server) = mariadb::Server::start() else {
        return;
    };
    let endpoint = server.endpoint("mysql");
    let (before, telemetry, after) = eventually("all is answered in time", || sampled(&endpoint));
    for (column, variable) in [
        ("questions", "Questions"),
        ("com_insert", "Com_insert"),
        ("lsn_current", "Innodb_lsn_current"),
        ("lsn_checkpoint", "Innodb_lsn_last_checkpoint"),
        (
            "buffer_pool_read_requests",
            "Innodb_buffer_pool_read_requests",
        ),
        ("buffer_pool_reads", "Innodb_buffer_pool_reads"),
        ("row_lock_waits", "Innodb_row_lock_waits"),
        ("deadlocks", "Innodb_deadlocks"),
        ("buffer_pool_pages_total", "Innodb_buffer_pool_pages_total"),
        ("checkpoint_age_max_bytes", "Innodb_checkpoint_max_age"),
        ("uptime_s", "Uptime"),
    ] {
        for value in &telemetry[column] {
            let value = value.unwrap_or_else(|| panic!("{column} has nothing"));
            let range = before[variable]..=after[variable];
            assert!(
                range.contains(&value),
                "{column}: {value} is outside {range:?}"
            );
        }
    }
    // The last sample came after the insert and nothing else wrote: what does not grow by asking is equal.
    let last = |column: &str| telemetry[column].last().copied().flatten();
    assert_eq!(last("com_insert"), Some(after["Com_insert"]));
    assert_eq!(last("com_insert"), Some(before["Com_insert"] + 1));
    assert!(last("history_list_length").is_some() && last("checkpoint_age_bytes").is_some());
    assert_eq!(
        last("waiting_io"),
        None,
        "a counter of another server is nothing here, not zero"
    );
    assert!(last("answer_ns").is_some_and(|took_ns| took_ns > 0));
}

#[test]
fn purge_is_counted_where_the_server_counts_it() {
    let Some(server) = mariadb::Server::start() else {
        return;
    };
    let endpoint = server.endpoint("mysql");
    let (output, sampler) = open_answered(&endpoint);
    sampler.finish().expect("it ends");
    assert!(
        columns(&output)["purge_invoked"]
            .iter()
            .all(Option::is_none)
    );
    run(
        &endpoint,
        &["SET GLOBAL innodb_monitor_enable = module_purge"],
    );
    let (output, sampler) = open_answered(&endpoint);
    sampler.finish().expect("it ends");
    let telemetry = columns(&output);
    assert!(telemetry["purge_invoked"].iter().all(Option::is_some));
    assert!(
        telemetry["lsn_current"].iter().all(Option::is_some),
        "the status is read with it"
    );
}

#[test]
fn a_user_without_the_privilege_process_reads_the_status_alone() {
    let Some(server) = mariadb::Server::start() else {
        return;
    };
    run(
        &server.endpoint("mysql"),
        &[
            "CREATE DATABASE bench",
            "CREATE USER bench@localhost",
            "GRANT ALL ON bench.* TO bench@localhost",
        ],
    );
    let mut endpoint = server.endpoint("bench");
    if let Endpoint::Mysql { user, .. } = &mut endpoint {
        *user = "bench".into();
    }
    let (output, sampler) = open_answered(&endpoint);
    let SamplerEnd { warnings, .. } = sampler.finish().expect("it ends");
    assert!(
        warnings.iter().any(|warning| warning
            .starts_with("only status variables of the server are sampled: ")
            && warning.contains("PROCESS")),
        "{warnings:?}"
    );
    let telemetry = columns(&output);
    assert!(telemetry["lsn_current"].iter().all(Option::is_some));
    assert!(telemetry["purge_invoked"].iter().all(Option::is_none));
}

/// Lets the place's ticks pass until the server's thread says something.
fn wait_for_warning(sampler: &mut Sampler, part: &str) -> usize {
    let mut ticks = 0;
    while ticks < PATIENCE.as_millis() / INTERVAL.as_millis() {
        sampler
            .tick()
            .expect("the place is found whatever its server does");
        ticks += 1;
        let said = sampler.take_warnings();
        if said.iter().any(|warning| warning.contains(part)) {
            return usize::try_from(ticks).expect("few");
        }
        thread::sleep(INTERVAL);
    }
    panic!("nobody said {part:?}");
}

#[test]
fn a_server_killed_and_started_again_leaves_a_gap_that_is_counted() {
    let Some(mut server) = mariadb::Server::start() else {
        return;
    };
    let (output, mut sampler) = open_answered(&server.endpoint("mysql"));
    thread::sleep(3 * INTERVAL);
    server.kill();
    sampler.take_warnings();
    for _ in 0..5 {
        sampler.tick().expect("the place is found on");
        thread::sleep(INTERVAL);
    }
    server.restart();
    let ticks = 5 + wait_for_warning(&mut sampler, "the server gave no sample for");
    sampler.finish().expect("it ends");
    let telemetry = columns(&output);
    assert_eq!(telemetry["connections_made"][0], Some(1));
    assert!(telemetry["connections_made"].last().copied().flatten() > Some(1));
    assert!(telemetry["missed_samples"].last().copied().flatten() > Some(0));
    assert!(
        telemetry["lock_waits_missed"].contains(&Some(0)),
        "asked for"
    );
    let cpu = stream::columns(&output.path().join("telemetry-cpu.arrows"));
    assert_eq!(
        cpu["user"].len(),
        ticks,
        "every tick of the place has its row"
    );
}

#[test]
fn a_server_that_hangs_is_waited_for_no_longer_than_a_tick_may_take() {
    let Some(server) = mariadb::Server::start() else {
        return;
    };
    let (output, mut sampler) = open_answered(&server.endpoint("mysql"));
    server.freeze();
    thread::sleep(12 * INTERVAL); // more than an answer's limit
    sampler.tick().expect("the place is found on");
    let SamplerEnd {
        missed_server: missed,
        warnings,
        ..
    } = sampler
        .finish()
        .expect("it ends though the server never answers");
    assert!(missed > 0);
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("no answer within")),
        "{warnings:?}"
    );
    assert!(
        !columns(&output)["lsn_current"].is_empty(),
        "what was read before is kept"
    );
}

#[test]
fn a_server_that_is_not_there_is_a_warning_and_no_file() {
    let nowhere = tempfile::tempdir().expect("a directory");
    let socket = nowhere.path().join("socket");
    let endpoint = json!({"kind": "mysql", "socket": socket, "user": "root", "database": "mysql"});
    let endpoint: Endpoint = serde_json::from_value(endpoint).expect("an endpoint");
    let (output, mut sampler) = open(endpoint);
    assert_eq!(sampler.names(), ["cpu"]);
    sampler.tick().expect("the place is found");
    let SamplerEnd {
        missed_server: missed,
        warnings,
        ..
    } = sampler.finish().expect("it ends");
    assert!(
        missed >= 2 && warnings.iter().any(|said| said.contains("cannot connect")),
        "{warnings:?}"
    );
    assert!(!output.path().join("telemetry-server.arrows").exists());
}

#[test]
fn a_server_asked_too_often_is_refused() {
    let output = tempfile::tempdir().expect("a directory");
    let mut parameters = parameters(
        Endpoint::Sqlite {
            path: String::new(),
            pragmas: BTreeMap::new(),
            busy_timeout_ms: 0,
        },
        output.path(),
    );
    parameters.server.as_mut().expect("given").interval_ms = SHORTEST_SERVER_INTERVAL_MS - 1;
    let refused = Sampler::open(Path::new("/proc"), &parameters);
    assert!(matches!(
        refused,
        Err(SampleError::ServerInterval { given_ms: 99 })
    ));
}

/// Two connections, the second of which waits for the first's row until both are dropped.
struct LockWait {
    waiter: Client,
    holder: Client,
}

impl LockWait {
    fn begin(endpoint: &Endpoint) -> Self {
        run(
            endpoint,
            &[
                "CREATE DATABASE test",
                "CREATE TABLE test.held (a INT PRIMARY KEY, b INT) ENGINE=InnoDB",
                "INSERT INTO test.held VALUES (1, 1)",
            ],
        );
        let mut holder = Client::open(endpoint).expect("a thread");
        let waiter = Client::open(endpoint).expect("a thread");
        for statement in [
            "START TRANSACTION",
            "UPDATE test.held SET b = 2 WHERE a = 1",
        ] {
            holder.ask(statement, PATIENCE).expect("it runs");
        }
        Self { waiter, holder }
    }

    /// Numbers of the waiting and the holding connection, then the wait begins.
    fn wait(&mut self) -> (u64, u64) {
        let [waiting, holding] = [&mut self.waiter, &mut self.holder].map(|client| {
            let answer = client.ask("SELECT CONNECTION_ID()", PATIENCE);
            let rows = answer.expect("answered").rows;
            let text = rows[0][0].clone().expect("a number");
            text.parse().expect("a number")
        });
        let patient = "SET SESSION innodb_lock_wait_timeout = 600";
        self.waiter.ask(patient, PATIENCE).expect("it is its own");
        let blocked = self
            .waiter
            .ask("UPDATE test.held SET b = 3 WHERE a = 1", 2 * INTERVAL);
        assert!(blocked.is_err(), "it waits for the lock");
        (waiting, holding)
    }
}

/// The first batch of a stream that is being written, once it is there.
fn first_batch(path: &Path) -> Option<RecordBatch> {
    let file = File::open(path).ok()?;
    StreamReader::try_new(file, None).ok()?.next()?.ok()
}

#[test]
fn who_waits_for_whose_lock_is_told_pair_by_pair() {
    let Some(server) = mariadb::Server::start() else {
        return;
    };
    let endpoint = server.endpoint("mysql");
    let mut pair = LockWait::begin(&endpoint);
    let (waiting, holding) = pair.wait();
    let (output, sampler) = open_answered(&endpoint);
    let path = output.path().join("telemetry-lock_waits.arrows");
    let batch = eventually("a waiting pair is told", || first_batch(&path));
    sampler.finish().expect("it ends");
    assert_eq!(batch.num_rows(), 1);
    let column = |name: &str| batch.column_by_name(name).expect("a column of that name");
    let number = |name: &str| column(name).as_primitive::<UInt64Type>().value(0);
    let text = |name: &str| column(name).as_string::<i32>().value(0);
    assert_eq!(number("waiting_connection"), waiting);
    assert_eq!(number("blocking_connection"), holding);
    assert_eq!(
        text("waiting_statement"),
        "UPDATE test.held SET b = 3 WHERE a = 1"
    );
    assert!(text("locked").contains("held"), "{}", text("locked"));
    assert_eq!(text("mode"), "X");
    assert!(columns(&output)["row_lock_current_waits"].contains(&Some(1)));
}
