//! Ours and sysbench side by side on a private MariaDB, each on tables the other has loaded; the server's own counters
//! say who sent and touched what. Skipped, and said so, where sysbench or the server is not installed.

mod postgres;

use crate::support::mariadb::{Server, shared};
use crate::support::oltp::PROFILES;
use crate::support::sysbench::{
    self, Bench, EVENTS, Tool, assert_alike, assert_same_cost_otherwise, counters, difference,
};
use crate::support::{number, sql};
use fairtrial_protocol::oltp::Profile;

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

#[test]
fn equal_events_are_equal_statements_and_equal_rows_on_each_others_tables() {
    let Some(server) = server() else { return };
    for profile in PROFILES {
        if profile == Profile::BulkInsert {
            continue; // an event of sysbench is a row there; see below
        }
        let bench = Bench::new(server.endpoint("sbtest"), profile);
        let counters = || counters(&bench.endpoint, &COUNTERS);
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench, &counters);
        let ours = bench.cost(Tool::Sysbench, Tool::Ours, &counters);
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
    let endpoint = server.endpoint("sbtest");
    assert_same_cost_otherwise(&endpoint, &|| counters(&endpoint, &COUNTERS));
}

#[test]
fn a_bulk_insert_is_the_statement_that_sysbench_sends_once_its_buffer_is_full() {
    let Some(server) = server() else { return };
    let bench = Bench::new(server.endpoint("sbtest"), Profile::BulkInsert);
    bench.load(Tool::Sysbench);
    bench.run(Tool::Ours, 2);
    let rows = number(&bench.endpoint, "SELECT COUNT(*) FROM sbtest1");
    assert_eq!(rows, number(&bench.endpoint, "SELECT MAX(id) FROM sbtest1"));
    // As many rows are two full buffers there, too: one more would be a third statement.
    bench.load(Tool::Ours);
    let statements = |events: i64| {
        sql(&bench.endpoint, &["TRUNCATE sbtest1"]);
        let before = counters(&bench.endpoint, &COUNTERS);
        bench.run(Tool::Sysbench, u64::try_from(events).expect("rows"));
        let cost = difference(&counters(&bench.endpoint, &COUNTERS), &before);
        assert!(cost["Handler_write"] >= events, "{cost:?}");
        cost["Com_insert"]
    };
    assert_eq!((statements(rows), statements(rows + 1)), (2, 3));
}

#[test]
fn both_make_the_same_tables() {
    let Some(server) = server() else { return };
    for profile in [Profile::ReadWrite, Profile::BulkInsert] {
        let bench = Bench::new(server.endpoint("sbtest"), profile);
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
    let bench = Bench::new(server.endpoint("sbtest"), Profile::ReadWrite);
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
