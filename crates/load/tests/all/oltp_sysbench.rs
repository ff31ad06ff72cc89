//! Ours and sysbench side by side on a private MariaDB, each on tables the other has loaded; the server's own counters
//! say who sent and touched what. Skipped, and said so, where sysbench or the server is not installed.

use crate::support::mariadb::{Server, shared};
use crate::support::oltp::{PROFILES, drive, load, loading, parameters, tables};
use crate::support::sysbench::{self, Counts, Tool, assert_alike, difference};
use crate::support::{number, sql};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{Distribution, Profile, Protocol};

/// Events that a comparison is about: those of a long run less those of a short one, so that what a tool does once
/// does not count.
const EVENTS: u64 = 200;

/// Statements of each kind, and rows by what was done to them.
const COUNTERS: [&str; 15] = [
    "Com_begin",
    "Com_commit",
    "Com_delete",
    "Com_insert",
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
    "Sort_rows",
];

/// A database and how keys are drawn in it.
struct Bench {
    endpoint: Endpoint,
    profile: Profile,
    text: bool,
    extra: Vec<&'static str>,
}

impl Bench {
    fn distribution(&self) -> Distribution {
        sysbench::distribution(self.profile)
    }

    fn sysbench(&self, arguments: &[String]) {
        let Endpoint::Mysql {
            socket, database, ..
        } = &self.endpoint
        else {
            panic!("a MySQL endpoint")
        };
        let mut all = vec![
            format!("--mysql-socket={}", socket.as_deref().expect("a socket")),
            format!("--mysql-db={database}"),
            "--mysql-user=root".into(),
        ];
        if self.text {
            all.push("--db-ps-mode=disable".into());
        }
        all.extend(self.extra.iter().map(ToString::to_string));
        all.extend_from_slice(arguments);
        sysbench::run(self.profile, &all);
    }

    fn load(&self, tool: Tool) {
        match tool {
            Tool::Ours => {
                load(&loading(
                    self.endpoint.clone(),
                    self.profile,
                    self.distribution(),
                ));
            }
            Tool::Sysbench => {
                for table in 1..=3 {
                    sql(
                        &self.endpoint,
                        &[&format!("DROP TABLE IF EXISTS sbtest{table}")],
                    );
                }
                self.sysbench(&["prepare".into()]);
            }
        }
    }

    fn run(&self, tool: Tool, events: u64) {
        match tool {
            Tool::Ours => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let mut asked = parameters(
                    self.endpoint.clone(),
                    directory.path(),
                    self.profile,
                    events,
                );
                asked.distribution = self.distribution();
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
    fn cost(&self, loader: Tool, tool: Tool, (few, many): (u64, u64)) -> Counts {
        let measured = |events| {
            self.load(loader);
            // Whoever opens a table first makes the server read its statistics.
            for table in 1..=tables(self.profile) {
                number(
                    &self.endpoint,
                    &format!("SELECT COUNT(k) FROM sbtest{table}"),
                );
            }
            let before = counters(&self.endpoint);
            self.run(tool, events);
            difference(&counters(&self.endpoint), &before)
        };
        let few = measured(few);
        difference(&measured(many), &few)
    }
}

fn counters(endpoint: &Endpoint) -> Counts {
    let rows = &sql(endpoint, &["SHOW GLOBAL STATUS"])[0].rows;
    let named = |row: &Vec<Option<String>>| {
        let (name, value) = (row[0].clone()?, row[1].clone()?);
        COUNTERS
            .contains(&name.as_str())
            .then_some((name, value.parse().ok()?))
    };
    let found: Counts = rows.iter().filter_map(named).collect();
    assert_eq!(found.len(), COUNTERS.len(), "{found:?}");
    found
}

fn server() -> Option<std::sync::MutexGuard<'static, Server>> {
    if !sysbench::is_installed() {
        return None;
    }
    let server = shared()?;
    // Statistics that the server recalculates when it likes would read rows of their own.
    sql(
        &server.endpoint("mysql"),
        &[
            "SET GLOBAL innodb_stats_auto_recalc = 0",
            "CREATE DATABASE IF NOT EXISTS sbtest",
        ],
    );
    Some(server)
}

fn bench(server: &Server, profile: Profile) -> Bench {
    Bench {
        endpoint: server.endpoint("sbtest"),
        profile,
        text: false,
        extra: Vec::new(),
    }
}

#[test]
fn equal_events_are_equal_statements_and_equal_rows_on_each_others_tables() {
    let Some(server) = server() else { return };
    for profile in PROFILES {
        if profile == Profile::BulkInsert {
            continue; // an event of sysbench is a row there; see below
        }
        let bench = bench(&server, profile);
        let few_and_many = (1, EVENTS + 1);
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench, few_and_many);
        let ours = bench.cost(Tool::Sysbench, Tool::Ours, few_and_many);
        eprintln!("{profile:?}: {ours:?}");
        let sampled: &[&str] = match profile {
            Profile::Delete => &["Handler_delete", "Rows_read", "Handler_commit"],
            Profile::SelectRandomPoints | Profile::SelectRandomRanges => &[
                "Handler_read_key",
                "Handler_read_next",
                "Rows_read",
                "Rows_sent",
            ],
            _ => &[],
        };
        for name in COUNTERS {
            if sampled.contains(&name) {
                assert_alike(profile, name, ours[name], theirs[name]);
            } else {
                assert_eq!(ours[name], theirs[name], "{profile:?}: {name}");
            }
        }
        let statements: i64 = COUNTERS[..6].iter().map(|name| ours[*name]).sum();
        assert!(
            statements >= i64::try_from(EVENTS).expect("few"),
            "{profile:?} did something"
        );
    }
}

#[test]
fn text_and_statements_without_a_transaction_are_equal_too() {
    let Some(server) = server() else { return };
    for (text, extra) in [(true, vec![]), (false, vec!["--skip-trx=on"])] {
        let bench = Bench {
            text,
            extra,
            ..bench(&server, Profile::ReadWrite)
        };
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench, (1, EVENTS + 1));
        let ours = bench.cost(Tool::Sysbench, Tool::Ours, (1, EVENTS + 1));
        assert_eq!(ours, theirs, "text {text}, {:?}", bench.extra);
    }
}

#[test]
fn a_bulk_insert_is_the_statement_that_sysbench_sends_once_its_buffer_is_full() {
    let Some(server) = server() else { return };
    let bench = bench(&server, Profile::BulkInsert);
    bench.load(Tool::Sysbench);
    bench.run(Tool::Ours, 2);
    let rows = number(&bench.endpoint, "SELECT COUNT(*) FROM sbtest1");
    assert_eq!(rows, number(&bench.endpoint, "SELECT MAX(id) FROM sbtest1"));
    // As many rows are two full buffers there, too: one more would be a third statement.
    bench.load(Tool::Ours);
    let statements = |events: i64| {
        sql(&bench.endpoint, &["TRUNCATE sbtest1"]);
        let before = counters(&bench.endpoint);
        bench.run(Tool::Sysbench, u64::try_from(events).expect("rows"));
        let cost = difference(&counters(&bench.endpoint), &before);
        assert!(cost["Handler_write"] >= events, "{cost:?}");
        cost["Com_insert"]
    };
    assert_eq!((statements(rows), statements(rows + 1)), (2, 3));
}

#[test]
fn both_make_the_same_tables() {
    let Some(server) = server() else { return };
    for profile in [Profile::ReadWrite, Profile::BulkInsert] {
        let bench = bench(&server, profile);
        let made = |tool| {
            bench.load(tool);
            let shown = &sql(&bench.endpoint, &["SHOW CREATE TABLE sbtest1"])[0].rows[0][1];
            let shown = shown.clone().expect("a statement");
            // The next key differs: sysbench's server reserves keys ahead of inserts of unknown length.
            let (head, tail) = shown.split_once(" AUTO_INCREMENT=").unwrap_or((&shown, ""));
            format!(
                "{head} {}",
                tail.trim_start_matches(|letter: char| letter.is_ascii_digit())
                    .trim()
            )
        };
        let (ours, theirs) = (made(Tool::Ours), made(Tool::Sysbench));
        assert_eq!(ours.trim(), theirs.trim());
    }
}

#[test]
fn keys_and_texts_of_both_have_the_same_form() {
    let Some(server) = server() else { return };
    let bench = bench(&server, Profile::ReadWrite);
    let looked = |tool| {
        bench.load(tool);
        let form = "'^([0-9]{11}-){9}[0-9]{11}$'";
        let query = format!(
            "SELECT COUNT(*), MIN(id), MAX(id), SUM(c REGEXP {form}), MIN(LENGTH(pad)), \
             SUM(k BETWEEN 498 AND 506) > 700 FROM sbtest2"
        );
        sql(&bench.endpoint, &[&query])[0].rows.clone()
    };
    assert_eq!(looked(Tool::Ours), looked(Tool::Sysbench));
}
