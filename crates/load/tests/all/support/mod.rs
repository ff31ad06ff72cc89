//! Databases for tests: loaded once, copied for each test.

pub mod apart;
pub mod certificates;
pub mod contents;
pub mod effects;
mod eventually;
pub mod histograms;
pub mod mariadb;
pub mod oltp;
pub mod pipelining;
pub mod postgres;
pub mod proxy;
pub mod scene;
pub mod script;
pub mod small_disk;
pub mod sysbench;
pub mod system;
pub mod together;
pub mod under_way;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use fairtrial_load::Client;
use fairtrial_protocol::load::{
    Arrivals, Checked, Drive, Driven, Endpoint, Loaded, Rows, Sql, TpccCheck, TpccDrive, TpccLoad,
};
use tempfile::TempDir;

pub use eventually::eventually;

pub const SEED: u64 = 7;

/// SQLite with a write-ahead log, so that readers and the writer do not shut each other out.
pub fn sqlite(path: &Path) -> Endpoint {
    let pragmas = [("journal_mode", "wal"), ("synchronous", "off")];
    Endpoint::Sqlite {
        path: path.to_string_lossy().into_owned(),
        pragmas: pragmas
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        busy_timeout_ms: 10_000,
    }
}

pub fn load(endpoint: Endpoint, warehouses: u32, threads: u32) -> Loaded {
    let parameters = TpccLoad {
        endpoint,
        warehouses,
        seed: SEED,
        threads,
    };
    fairtrial_load::load(&parameters, &mut Vec::new()).expect("the tables load")
}

/// A database of two warehouses in a directory of the test's own.
pub struct Copy {
    pub directory: TempDir,
    pub endpoint: Endpoint,
}

/// Copies the database that this binary has loaded once: a file without a name, which goes with the process.
pub fn sqlite_copy() -> Copy {
    static LOADED: OnceLock<File> = OnceLock::new();
    let original = LOADED.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("original.db");
        // Without a write-ahead log one file is the whole database.
        let endpoint = Endpoint::Sqlite {
            path: path.to_string_lossy().into(),
            pragmas: BTreeMap::new(),
            busy_timeout_ms: 1_000,
        };
        load(endpoint, 2, 1);
        File::open(path).expect("it was loaded")
    });
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("copy.db");
    let original = format!("/proc/self/fd/{}", original.as_raw_fd());
    std::fs::copy(original, &path).expect("space for a copy");
    let endpoint = sqlite(&path);
    Copy {
        directory,
        endpoint,
    }
}

/// What a load of one warehouse into SQLite says, which every other system must say too.
pub fn embedded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    LOADED.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        load(sqlite(&directory.path().join("t.db")), 1, 1)
    })
}

/// A drive of so many transactions by one user, who does not think.
pub fn alone(endpoint: Endpoint, directory: &Path, transactions: u64) -> Drive {
    Drive {
        endpoint,
        virtual_users: 1,
        seed: 11,
        ramp_up_s: 0.0,
        ramp_up_transactions: None,
        duration_s: None,
        transactions: Some(transactions),
        arrivals: Arrivals::default(),
        queue_timeout_s: None,
        retries: 20,
        interval_ms: 100,
        output_directory: directory.to_string_lossy().into_owned(),
        fleet: None,
    }
}

/// Parameters of a drive of 400 transactions by three users.
pub fn parameters(endpoint: Endpoint, directory: &Path) -> TpccDrive {
    TpccDrive {
        drive: Drive {
            virtual_users: 3,
            ..alone(endpoint, directory, 400)
        },
        warehouses: 2,
        load_seed: SEED,
        think_time_scale: 0.0,
        procedures: false,
        all_warehouses: true,
    }
}

/// What a drive has written.
pub fn result(directory: &Path) -> Driven {
    let text = std::fs::read(directory.join("result.json")).expect("result.json is there");
    serde_json::from_slice(&text).expect("it is a Driven")
}

pub fn drive(parameters: &TpccDrive) -> Driven {
    fairtrial_load::drive(parameters, &mut Vec::new()).expect("the drive ends")
}

pub fn check(endpoint: &Endpoint) -> Checked {
    fairtrial_load::check(&TpccCheck {
        endpoint: endpoint.clone(),
        warehouses: 2,
    })
    .expect("the conditions can be checked")
}

/// Fails, naming the conditions, unless all twelve hold.
pub fn assert_consistent(endpoint: &Endpoint) {
    let checked = check(endpoint);
    assert_eq!(checked.conditions.len(), 12);
    let violated: Vec<_> = checked
        .conditions
        .iter()
        .filter(|condition| condition.violations > 0)
        .collect();
    assert!(violated.is_empty(), "{violated:#?}");
}

/// Runs statements; a server that recovers or has no room left is waited for.
pub fn sql(endpoint: &Endpoint, statements: &[&str]) -> Vec<Rows> {
    let statements = statements.iter().map(ToString::to_string).collect();
    let request = Sql {
        endpoint: endpoint.clone(),
        statements,
        connect_timeout_ms: 60_000,
    };
    fairtrial_load::sql(&request).expect("the statements run")
}

/// The one number a query gives.
pub fn number(endpoint: &Endpoint, query: &str) -> i64 {
    numbers(endpoint, query)[0]
}

/// The numbers in the one row a query gives.
pub fn numbers(endpoint: &Endpoint, query: &str) -> Vec<i64> {
    let answer = &sql(endpoint, &[query])[0];
    let number = |cell: &Option<String>| {
        let text = cell.as_deref().unwrap_or("0");
        text.parse()
            .unwrap_or_else(|_| panic!("{query} gave {text}"))
    };
    answer.rows[0].iter().map(number).collect()
}

/// Runs statements on a connection that stays open, with the locks they take, until what this gives is dropped.
pub fn hold(endpoint: &Endpoint, statements: &[&str]) -> Client {
    let mut client = Client::open(endpoint).expect("a thread");
    for statement in statements {
        let answer = client.ask(statement, Duration::from_mins(2));
        answer.expect("the statements run");
    }
    client
}

/// Waits until something holds, for as long as a machine that others load may take.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Committed and rolled-back transactions of all types.
pub fn completed(driven: &Driven) -> u64 {
    driven
        .transactions
        .values()
        .map(|outcomes| outcomes.committed + outcomes.rolled_back)
        .sum()
}

/// Errors of a drive by their codes.
pub fn codes(driven: &Driven) -> BTreeMap<&str, u64> {
    let mut codes = BTreeMap::new();
    for error in &driven.errors {
        *codes.entry(error.code.as_str()).or_default() += error.count;
    }
    codes
}
