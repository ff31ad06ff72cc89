//! A load that is killed and started again: it goes on where it was, and what it leaves is what an uninterrupted one
//! leaves. The killed loads are processes of their own: this very test binary, told by the environment what to load.

use std::io::{BufRead as _, BufReader, Result as IoResult, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::mariadb::Server;
use crate::support::postgres::Server as PostgresServer;
use crate::support::system::System;
use crate::support::{SEED, embedded, hold, number, sql, sqlite, wait_until};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Loaded, Progress, TpccLoad};
use rustix::process::{Signal, getpid, kill_process};

/// Units of 41 that are in when a server is killed: more than the items, which are shared and weigh nothing.
const ENOUGH: i64 = 20;

const TRUST: &str = "local all all trust\n";
const LOCAL_ONLY: [&str; 2] = ["-c", "listen_addresses="];

/// InnoDB shows what it showed before to who asks for its transactions within 100 ms.
const SEEN_ANEW: Duration = Duration::from_millis(150);

/// How long an answer may take on a machine that others load too.
const LIMIT: Duration = Duration::from_mins(2);

const PARAMETERS: &str = "FAIRTRIAL_TEST_LOAD";
const KILLED_AT: &str = "FAIRTRIAL_TEST_KILLED_AT";

/// Loads until it is killed when it is a child; as a test of its own it has nothing to do.
#[test]
fn child() {
    let Ok(text) = std::env::var(PARAMETERS) else {
        return;
    };
    let parameters: TpccLoad = serde_json::from_str(&text).expect("parameters from the parent");
    let enough = std::env::var(KILLED_AT).expect("from the parent, too");
    let mut killing = Killing(enough.parse().expect("a number"));
    fairtrial_load::load(&parameters, &mut killing).expect("the load ends");
}

/// Says how far a load is, and kills this process once that is enough: a parent that stands still would come too late.
struct Killing(f64);

impl Write for Killing {
    fn write(&mut self, line: &[u8]) -> IoResult<usize> {
        let mut said = std::io::stdout();
        said.write_all(line)?;
        said.flush()?;
        if work(&String::from_utf8_lossy(line)).is_some_and(|done| done >= self.0) {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

fn parameters(endpoint: Endpoint, seed: u64) -> TpccLoad {
    TpccLoad {
        endpoint,
        warehouses: 1,
        seed,
        threads: 2,
    }
}

/// Begins a load in a process of its own, which is killed once this much is done; what it had said by then.
fn load_and_kill(parameters: &TpccLoad, enough: f64) -> f64 {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "resume::child", "--nocapture"])
        .env(PARAMETERS, serde_json::to_string(parameters).expect("JSON"))
        .env(KILLED_AT, enough.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let said = lines
        .filter_map(|line| work(&line.expect("UTF-8")))
        .last()
        .expect("it says how far it is");
    assert!(!child.wait().expect("it is gone").success());
    assert!(said >= enough, "{said}");
    said
}

/// Work done, in a line of progress.
fn work(line: &str) -> Option<f64> {
    match serde_json::from_str(line) {
        Ok(Progress::Loading { done, .. }) => Some(done),
        _ => None,
    }
}

/// Loads to the end; also the work that was done when it first said so.
fn load(parameters: &TpccLoad) -> (Result<Loaded, LoadError>, Option<f64>) {
    let mut said = Vec::new();
    let loaded = fairtrial_load::load(parameters, &mut said);
    let said = String::from_utf8(said).expect("UTF-8");
    (loaded, said.lines().find_map(work))
}

/// Begins a load on a thread of its own, which waits with its first word until the sender is dropped: all units may be in
/// by then, and it has not ended.
fn begin(parameters: &TpccLoad) -> (JoinHandle<Result<Loaded, LoadError>>, Sender<()>) {
    let (let_go, held) = channel();
    let parameters = parameters.clone();
    let loading = thread::spawn(move || fairtrial_load::load(&parameters, &mut Holding(held)));
    (loading, let_go)
}

/// Takes nothing that is said until nobody holds it up any more.
struct Holding(Receiver<()>);

impl Write for Holding {
    fn write(&mut self, line: &[u8]) -> IoResult<usize> {
        let _ = self.0.recv();
        Ok(line.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

/// Fails unless a load said, and its tables hold, what one that nobody interrupted leaves.
fn assert_whole(loaded: &Loaded, endpoint: &Endpoint) {
    assert_eq!(loaded, embedded());
    let read_back = fairtrial_load::content_sha256(endpoint, 1).expect("it can be read");
    assert_eq!(read_back, loaded.content_sha256, "this is in the tables");
}

/// Kills a load twice, lets the third finish, and looks at what is there then.
fn goes_on_after_kills(endpoint: &Endpoint) {
    let request = parameters(endpoint.clone(), SEED);
    let first = load_and_kill(&request, 0.3);
    let second = load_and_kill(&request, first + 0.2);
    assert!(second > first, "the second goes on");
    let (loaded, said) = load(&request);
    let said = said.expect("it says how far it is");
    assert!(said > second, "the third too: {second} done, then {said}");
    assert_whole(&loaded.expect("it loads"), endpoint);
}

#[test]
fn a_killed_load_goes_on_in_sqlite() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("t.db"));
    goes_on_after_kills(&endpoint);
    let names = "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'fairtrial%'";
    assert_eq!(number(&endpoint, names), 0, "nothing of ours stays");
}

crate::on_both_systems!(a_killed_load_goes_on);

fn a_killed_load_goes_on<S: System>(server: &S) {
    let endpoint = server.at("resumed");
    goes_on_after_kills(&endpoint);
    let names = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'fairtrial%' \
        AND 'resumed' IN (table_catalog, table_schema)";
    assert_eq!(number(&endpoint, names), 0, "nothing of ours stays");
    server.assert_indexed("resumed");
    if matches!(endpoint, Endpoint::Postgres { .. }) {
        let unlogged = "SELECT COUNT(*) FROM pg_class WHERE relpersistence <> 'p' AND relnamespace = 'public'::regnamespace";
        assert_eq!(number(&endpoint, unlogged), 0, "a crash would empty them");
    }
    server.forget("resumed");
}

/// What a server gives up for another's transaction takes the unit's entry in the journal with it: rows sent again
/// without it would stay unknown, and be loaded once more by whoever resumes.
#[test]
fn a_unit_that_was_given_up_for_another_transaction_is_begun_anew() {
    let Some(server) = Server::common() else {
        return;
    };
    let endpoint = server.at("given_up");
    let request = TpccLoad {
        threads: 1,
        ..parameters(endpoint.clone(), SEED)
    };
    load_and_kill(&request, 0.3);
    // A row of the last unit; and what makes this transaction the heavier one, which a deadlock spares.
    let mut other = hold(
        &endpoint,
        &[
            "CREATE TABLE heavy (a INTEGER PRIMARY KEY) ENGINE = InnoDB",
            "BEGIN",
            "INSERT INTO heavy SELECT seq FROM seq_1_to_1000",
            "INSERT INTO orders VALUES (1, 10, 1, 1, NOW(), NULL, 5, 1)",
        ],
    );
    let loading = thread::spawn(move || load(&request).0);
    let waits_to = |what: &str| {
        let query = format!(
            "SELECT COUNT(*) FROM information_schema.innodb_trx, information_schema.processlist \
             WHERE id = trx_mysql_thread_id AND trx_state = 'LOCK WAIT' AND db = 'given_up' AND info LIKE '{what}%'"
        );
        wait_until(what, || {
            thread::sleep(SEEN_ANEW);
            number(&endpoint, &query) == 1
        });
    };
    waits_to("LOAD DATA % INTO TABLE orders");
    let last = "SELECT COUNT(*) FROM fairtrial_load WHERE unit = 40 FOR UPDATE";
    let counted = other.ask(last, LIMIT).expect("the loader gives way");
    assert_eq!(counted.rows[0][0].as_deref(), Some("0"));
    waits_to("INSERT INTO fairtrial_load");
    other.ask("ROLLBACK", LIMIT).expect("it is ours");
    let loaded = loading.join().expect("no panic").expect("it loads");
    assert_whole(&loaded, &endpoint);
    server.forget("given_up");
}

#[test]
fn a_load_whose_postgres_crashed_goes_on_once_it_is_back() {
    let Some(mut server) = PostgresServer::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let request = parameters(server.endpoint("crashed"), SEED);
    let (loading, let_go) = begin(&request);
    let crashed = server.endpoint("crashed");
    let postgres = server.endpoint("postgres");
    let there = "SELECT COUNT(*) FROM pg_database WHERE datname = 'crashed'";
    let journalled = "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'fairtrial_load'";
    let in_it = "SELECT COUNT(*) FROM fairtrial_load";
    while number(&postgres, there) == 0
        || number(&crashed, journalled) == 0
        || number(&crashed, in_it) < ENOUGH
    {
        assert!(!loading.is_finished(), "it failed");
    }
    // A load does not wait for the log; the commit of a session that does writes all that came before it.
    sql(&postgres, &["CREATE TABLE mark (a INTEGER)"]);
    server.crash();
    drop(let_go);
    let lost = loading
        .join()
        .expect("no panic")
        .expect_err("its server is gone");
    assert!(matches!(lost, LoadError::Statement { .. }), "{lost:?}");
    server.restart();
    assert!(
        number(&crashed, in_it) >= ENOUGH,
        "what was committed is still there"
    );
    let (loaded, said) = load(&request);
    assert_whole(&loaded.expect("it loads"), &crashed);
    let said = said.expect("it says how far it is");
    assert!(
        said > 0.2,
        "a load from the beginning says 0.1 first: {said}"
    );
}

#[test]
fn another_population_and_a_finished_one_are_loaded_from_the_beginning() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("t.db"));
    let done = load_and_kill(&parameters(endpoint.clone(), SEED + 1), 0.5);
    let other = parameters(endpoint.clone(), SEED);
    let (loaded, said) = load(&other);
    assert!(
        said.expect("it says how far it is") < done,
        "from the beginning"
    );
    assert_eq!(&loaded.expect("it loads"), embedded());
    sql(&endpoint, &["DELETE FROM history"]);
    assert_eq!(&load(&other).0.expect("it loads"), embedded(), "replaced");
}

#[test]
fn a_load_into_tables_without_transactions_begins_anew() {
    let Some(server) = Server::common() else {
        return;
    };
    let request = parameters(server.at("untransactional"), SEED);
    let done = load_and_kill(&request, 0.3);
    sql(&request.endpoint, &["ALTER TABLE history ENGINE = Aria"]);
    let (loaded, said) = load(&request);
    assert!(
        said.expect("it says how far it is") < done,
        "from the beginning"
    );
    assert_whole(&loaded.expect("it loads"), &request.endpoint);
    server.forget("untransactional");
}

#[test]
fn a_load_whose_server_was_killed_goes_on_once_it_is_back() {
    // A commit is in the kernel's hands when it returns, so a kill of the server cannot take it back.
    let options = ["--skip-networking", "--innodb-flush-log-at-trx-commit=2"];
    let Some(mut server) = Server::start_with(|_| options.map(Into::into).into()) else {
        return;
    };
    let request = parameters(server.endpoint("killed"), SEED);
    let (loading, let_go) = begin(&request);
    let journalled =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'fairtrial_load'";
    let in_it = "SELECT COUNT(*) FROM killed.fairtrial_load";
    let mysql = server.endpoint("mysql");
    while number(&mysql, journalled) == 0 || number(&mysql, in_it) < ENOUGH {
        assert!(!loading.is_finished(), "it failed");
    }
    server.kill();
    drop(let_go);
    let lost = loading
        .join()
        .expect("no panic")
        .expect_err("its server is gone");
    assert!(matches!(lost, LoadError::Statement { .. }), "{lost:?}");
    server.restart();
    let units = number(&mysql, in_it);
    // A commit can be seen a moment before its log is written: one of each of the two threads.
    assert!(
        units + 2 >= ENOUGH,
        "what was committed is still there: {units}"
    );
    let (loaded, said) = load(&request);
    assert_whole(&loaded.expect("it loads"), &request.endpoint);
    let said = said.expect("it says how far it is");
    assert!(
        said > 0.2,
        "a load from the beginning says 0.1 first: {said}"
    );
}
