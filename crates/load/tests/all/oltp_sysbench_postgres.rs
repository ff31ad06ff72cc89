//! Ours and sysbench side by side on a private PostgreSQL, each on tables the other has loaded; the server's own counters
//! say who sent and touched what. Skipped, and said so, where sysbench or the server is not installed.

use std::thread;
use std::time::Duration;

use crate::support::oltp::{PROFILES, drive, load, loading, parameters, tables};
use crate::support::postgres::{Server, USER};
use crate::support::sysbench::{self, Counts, Tool, assert_alike, difference};
use crate::support::{number, sql};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{Profile, Protocol};

/// Events that a comparison is about: those of a long run less those of a short one, so that what a tool does once
/// does not count.
const FEW: u64 = 10;
const MANY: u64 = 210;

/// Statements by their kinds, and the rows they gave or changed. Those that begin and end transactions are counted by
/// what comes of them: the extension loses count of them once they are prepared, as sysbench prepares them.
const STATEMENTS: &str = "SELECT split_part(query, ' ', 1), SUM(calls), SUM(rows) FROM pg_stat_statements \
    WHERE query ~ '^(DELETE|INSERT|SELECT|UPDATE) ' AND query ~ 'sbtest' GROUP BY 1";

/// What was done to rows.
const ROWS: [&str; 7] = [
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "idx_tup_fetch",
    "n_tup_ins",
    "n_tup_upd",
    "n_tup_del",
];

struct Bench {
    endpoint: Endpoint,
    maintenance: Endpoint,
    profile: Profile,
    text: bool,
    extra: Vec<&'static str>,
}

impl Bench {
    fn new(server: &Server, profile: Profile) -> Self {
        Self {
            endpoint: server.endpoint("sbtest"),
            maintenance: server.endpoint("postgres"),
            profile,
            text: false,
            extra: Vec::new(),
        }
    }

    fn sysbench(&self, arguments: &[String]) {
        let Endpoint::Postgres {
            socket_directory, ..
        } = &self.endpoint
        else {
            panic!("a PostgreSQL endpoint")
        };
        let directory = socket_directory.as_deref().expect("a directory");
        let mut all = vec![
            "--db-driver=pgsql".into(),
            format!("--pgsql-host={directory}"),
            format!("--pgsql-user={USER}"),
            "--pgsql-db=sbtest".into(),
        ];
        if self.text {
            all.push("--db-ps-mode=disable".into());
        }
        all.extend(self.extra.iter().map(ToString::to_string));
        all.extend_from_slice(arguments);
        sysbench::run(self.profile, &all);
    }

    fn load(&self, tool: Tool) {
        let distribution = sysbench::distribution(self.profile);
        match tool {
            Tool::Ours => {
                load(&loading(self.endpoint.clone(), self.profile, distribution));
            }
            Tool::Sysbench => {
                for table in 1..=3 {
                    let drop = format!("DROP TABLE IF EXISTS sbtest{table}");
                    sql(&self.endpoint, &[&drop]);
                }
                self.sysbench(&["prepare".into()]);
                // Ours leaves this done; plans hang on it.
                sql(&self.endpoint, &["VACUUM (FREEZE, ANALYZE)"]);
            }
        }
    }

    fn run(&self, tool: Tool, events: u64) {
        match tool {
            Tool::Ours => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let endpoint = self.endpoint.clone();
                let mut asked = parameters(endpoint, directory.path(), self.profile, events);
                asked.distribution = sysbench::distribution(self.profile);
                asked.skip_transactions = self.extra.contains(&"--skip-trx=on");
                if self.profile == Profile::BulkInsert {
                    asked.tables = 1;
                }
                if self.text {
                    asked.protocol = Protocol::Text;
                }
                let driven = drive(&asked);
                assert_eq!(driven.errors, [], "{:?}", self.profile);
                assert_eq!(driven.drawn[self.profile.name()], events);
            }
            Tool::Sysbench => {
                self.sysbench(&[
                    format!("--events={events}"),
                    "--time=0".into(),
                    "run".into(),
                ]);
            }
        }
    }

    /// What this many events cost the server, on tables fresh from `loader`.
    fn cost(&self, loader: Tool, tool: Tool) -> Counts {
        let measured = |events| {
            self.load(loader);
            let before = self.counters();
            self.run(tool, events);
            difference(&self.counters(), &before)
        };
        let few = measured(FEW);
        let mut cost = difference(&measured(MANY), &few);
        cost.retain(|_, count| *count != 0);
        cost
    }

    /// Waits until no client is left: a connection adds its own to some counters at its end.
    fn wait_for_clients(&self) {
        let left = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'sbtest'";
        while number(&self.maintenance, left) > 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The server's counters.
    fn counters(&self) -> Counts {
        self.wait_for_clients();
        let mut counts = Counts::new();
        let value = |cell: &Option<String>| -> i64 {
            let text = cell.as_deref().unwrap_or("0");
            text.parse().expect("a number")
        };
        for row in &sql(&self.endpoint, &[STATEMENTS])[0].rows {
            let kind = row[0].clone().expect("a word");
            counts.insert(format!("{kind} statements"), value(&row[1]));
            counts.insert(format!("{kind} rows"), value(&row[2]));
        }
        for table in 1..=tables(self.profile) {
            for name in ROWS {
                let query = format!(
                    "SELECT {name} FROM pg_stat_user_tables WHERE relname = 'sbtest{table}'"
                );
                *counts.entry(name.into()).or_default() += number(&self.endpoint, &query);
            }
        }
        self.wait_for_clients();
        for name in ["xact_commit", "xact_rollback"] {
            let query = format!("SELECT {name} FROM pg_stat_database WHERE datname = 'sbtest'");
            counts.insert(name.into(), number(&self.maintenance, &query));
        }
        counts
    }
}

fn server() -> Option<Server> {
    if !sysbench::is_installed() {
        return None;
    }
    let options = [
        "listen_addresses=",
        "autovacuum=off",
        "shared_preload_libraries=pg_stat_statements",
        "pg_stat_statements.max=10000",
    ];
    let options: Vec<_> = options.iter().flat_map(|option| ["-c", option]).collect();
    let server = Server::start("local all all trust\n", &options)?;
    sql(&server.endpoint("postgres"), &["CREATE DATABASE sbtest"]);
    sql(
        &server.endpoint("sbtest"),
        &[
            "CREATE EXTENSION pg_stat_statements",
            // Tables this small are at the border where the sample of ANALYZE decides about the plan.
            "ALTER DATABASE sbtest SET enable_seqscan = off",
        ],
    );
    Some(server)
}

#[test]
fn equal_events_are_equal_statements_and_equal_rows_on_each_others_tables() {
    let Some(server) = server() else { return };
    for profile in PROFILES {
        if profile == Profile::BulkInsert {
            continue; // an event of sysbench is a row there; see below
        }
        let bench = Bench::new(&server, profile);
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench);
        let ours = bench.cost(Tool::Sysbench, Tool::Ours);
        eprintln!("{profile:?}: {ours:?}");
        assert!(ours.keys().eq(theirs.keys()), "{profile:?}: {theirs:?}");
        for (name, ours) in &ours {
            let is_of_keys = !name.ends_with("statements") && name != "xact_commit";
            let is_sampled = is_of_keys
                && match profile {
                    Profile::Delete => name != "idx_scan",
                    Profile::SelectRandomPoints | Profile::SelectRandomRanges => true,
                    _ => false,
                };
            if is_sampled {
                assert_alike(profile, name, *ours, theirs[name]);
            } else {
                assert_eq!(*ours, theirs[name], "{profile:?}: {name}");
            }
        }
        let sent = ours.iter().filter(|(name, _)| name.ends_with("statements"));
        let sent: i64 = sent.map(|(_, count)| count).sum();
        assert!(sent >= 200, "{profile:?} did something");
    }
}

#[test]
fn text_and_statements_without_a_transaction_are_equal_too() {
    let Some(server) = server() else { return };
    for (text, extra) in [(true, vec![]), (false, vec!["--skip-trx=on"])] {
        let bench = Bench {
            text,
            extra,
            ..Bench::new(&server, Profile::ReadWrite)
        };
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench);
        let ours = bench.cost(Tool::Sysbench, Tool::Ours);
        assert_eq!(ours, theirs, "text {text}, {:?}", bench.extra);
    }
}

#[test]
fn both_make_the_same_tables_and_either_goes_on_with_the_keys() {
    let Some(server) = server() else { return };
    for profile in [Profile::ReadWrite, Profile::BulkInsert] {
        let bench = Bench::new(&server, profile);
        let made = |tool| {
            bench.load(tool);
            let looked = [
                "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default \
                 FROM information_schema.columns WHERE table_name = 'sbtest1' ORDER BY ordinal_position",
                "SELECT indexdef FROM pg_indexes WHERE tablename = 'sbtest1' ORDER BY 1",
                "SELECT data_type, start_value, increment FROM information_schema.sequences",
            ];
            sql(&bench.endpoint, &looked)
        };
        assert_eq!(made(Tool::Ours), made(Tool::Sysbench), "{profile:?}");
    }
    let bench = Bench::new(&server, Profile::Insert);
    bench.load(Tool::Ours);
    bench.run(Tool::Sysbench, 5);
    let keys = "SELECT MAX(id) - COUNT(*) FROM sbtest1";
    assert_eq!(number(&bench.endpoint, keys), 0);
}
