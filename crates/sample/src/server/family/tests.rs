use std::collections::BTreeMap;
use std::convert::Infallible;

use super::super::counters;
use super::*;

fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Rows {
    let owned = |row: &&[Option<&str>]| row.iter().map(|cell| cell.map(str::to_owned)).collect();
    Rows {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows.iter().map(owned).collect(),
    }
}

fn names(values: &[&str]) -> Rows {
    let cells: Vec<[Option<&str>; 1]> = values.iter().map(|name| [Some(*name)]).collect();
    let slices: Vec<&[Option<&str>]> = cells.iter().map(<[_; 1]>::as_slice).collect();
    rows(&["name"], &slices)
}

/// A row as the reading fills it, by column.
fn filled(queries: &CounterQueries, answer: &Rows) -> BTreeMap<String, u64> {
    let counters = counters::all();
    let mut row = vec![None; counters.len()];
    queries.fill(&counters, answer, &mut row);
    let named = counters.into_iter().map(|counter| counter.column);
    named
        .zip(row)
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// What a server of MySQL's line would be read by: its status variables, how its table of counters says which are
/// switched on (if it has one), and those.
fn of_mysql(status: &[&str], table: Option<&str>, switched_on: &[&str]) -> CounterQueries {
    let queries = Family::Mysql.queries(&counters::all(), |sql| -> Result<Rows, Infallible> {
        Ok(names(match sql {
            "SHOW GLOBAL STATUS" => status,
            _ if sql.starts_with("SELECT COLUMN_NAME") => table.as_slice(),
            _ if sql.contains(&format!("WHERE {}", table.expect("a table"))) => switched_on,
            _ => panic!("never to be asked: {sql}"),
        }))
    });
    queries.unwrap_or_else(|never| match never {})
}

fn of_postgres(columns: &[&str]) -> CounterQueries {
    let queries =
        Family::Postgres.queries(&counters::all(), |_| Ok::<_, Infallible>(names(columns)));
    queries.unwrap_or_else(|never| match never {})
}

/// All that nobody needs the monitor for.
const POSITIONS: [&str; 4] = [
    "INNODB_HISTORY_LIST_LENGTH",
    "Innodb_lsn_current",
    "Innodb_lsn_flushed",
    "Innodb_lsn_last_checkpoint",
];

#[test]
fn a_server_says_its_family() {
    for (version, family) in [
        ("10.11.6-MariaDB-0+deb12u1", Family::Mariadb),
        ("8.4.2", Family::Mysql),
        ("5.7.44-log", Family::Mysql),
        ("5.5.34", Family::EarlierMysql),
        ("5.6.14-log", Family::EarlierMysql),
        ("5.5.5-10.5.8-MariaDB", Family::Mariadb),
        (
            "PostgreSQL 15.8 (Debian 15.8-0+deb12u1) on x86_64-pc-linux-gnu",
            Family::Postgres,
        ),
    ] {
        assert_eq!(Family::of(version), family, "{version}");
    }
}

#[test]
fn a_server_whose_status_says_everything_is_asked_for_its_status_alone() {
    let status = [&POSITIONS[..], &["INNODB_DEADLOCKS", "UPTIME"]].concat();
    let queries = of_mysql(&status, Some("ENABLED"), &["INNODB_METRICS.lock_deadlocks"]);
    assert_eq!(
        queries.statements,
        [
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Innodb_history_list_length', 'Innodb_lsn_current', \
             'Innodb_lsn_flushed', 'Innodb_lsn_last_checkpoint', 'Innodb_deadlocks')"
        ],
        "where two names exist, the first is asked for"
    );
    let answer = rows(
        &["Variable_name", "Value"],
        &[
            &[Some("Innodb_history_list_length"), Some("17")],
            &[Some("Innodb_deadlocks"), Some("")],
            &[Some("Uptime"), Some("18446744073709551615")],
            &[Some("Never_asked"), Some("5")],
        ],
    );
    let expected = [("history_list_length", 17), ("uptime_s", u64::MAX)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(
        filled(&queries, &answer),
        expected.into(),
        "no number is nothing, not zero"
    );
}

#[test]
fn what_the_status_lacks_comes_from_the_table_of_counters() {
    let table = [
        "INNODB_METRICS.log_lsn_current",
        "INNODB_METRICS.trx_rseg_history_len",
        "INNODB_METRICS.lock_deadlocks",
    ];
    for how in ["ENABLED", "STATUS"] {
        let queries = of_mysql(&POSITIONS[1..], Some(how), &table);
        assert_eq!(
            queries.statements,
            [
                "SHOW GLOBAL STATUS WHERE Variable_name IN \
                 ('Innodb_lsn_current', 'Innodb_lsn_flushed', 'Innodb_lsn_last_checkpoint')",
                "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS \
                 WHERE NAME IN ('trx_rseg_history_len', 'lock_deadlocks')"
            ]
        );
        let answer = rows(
            &["NAME", "COUNT"],
            &[
                &[Some("trx_rseg_history_len"), Some("3")],
                &[Some("lock_deadlocks"), Some("-1")],
            ],
        );
        let expected = [("history_list_length".to_owned(), 3)];
        assert_eq!(filled(&queries, &answer), expected.into());
    }
}

/// The lines that matter and their neighbours, as 5.5.34 prints them.
const MONITOR: &str = "TRANSACTIONS\n------------\nTrx id counter 1A0B\n\
    Purge done for trx's n:o < 1A01 undo n:o < 0\nHistory list length 21\nLIST OF TRANSACTIONS FOR EACH SESSION:\n\
    ---\nLOG\n---\nLog sequence number 2298765\nLog flushed up to   2298700\nLast checkpoint at  2298001\n\
    0 pending log writes, 0 pending chkp writes\n";

#[test]
fn a_server_that_says_it_nowhere_else_is_asked_for_its_monitor() {
    let queries = of_mysql(&["Uptime"], None, &[]);
    assert_eq!(
        queries.statements,
        [
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime')",
            "SHOW ENGINE INNODB STATUS"
        ]
    );
    let answer = rows(
        &["Type", "Name", "Status"],
        &[&[Some("InnoDB"), Some(""), Some(MONITOR)]],
    );
    let expected = [
        ("history_list_length", 21),
        ("lsn_current", 2_298_765),
        ("lsn_flushed", 2_298_700),
        ("lsn_checkpoint", 2_298_001),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(filled(&queries, &answer), expected.into());
}

#[test]
fn one_answer_takes_nothing_from_another() {
    let queries = of_mysql(&["Uptime"], None, &[]);
    let counters = counters::all();
    let mut row = vec![Some(5); counters.len()];
    queries.fill(
        &counters,
        &rows(&["Variable_name", "Value"], &[&[Some("Uptime"), Some("")]]),
        &mut row,
    );
    assert!(row.iter().all(|cell| *cell == Some(5)));
}

/// Columns of the views that moved between versions 15 and 17.
const POSTGRES_15: [&str; 4] = [
    "pg_stat_bgwriter.checkpoints_timed",
    "pg_stat_bgwriter.buffers_checkpoint",
    "pg_stat_bgwriter.buffers_clean",
    "pg_stat_bgwriter.buffers_backend",
];
const POSTGRES_17: [&str; 4] = [
    "pg_stat_checkpointer.num_timed",
    "pg_stat_checkpointer.buffers_written",
    "pg_stat_bgwriter.buffers_clean",
    "pg_stat_io.writes",
];

#[test]
fn a_postgres_of_either_layout_is_asked_only_for_what_it_has() {
    let old = of_postgres(&POSTGRES_15);
    assert!(
        old.statements[0]
            .contains("trunc((pg_stat_bgwriter.checkpoints_timed)::numeric) AS checkpoints_timed")
    );
    assert!(
        !old.statements[0].contains("pg_stat_checkpointer"),
        "{}",
        old.statements[0]
    );
    assert!(
        !old.statements[0].contains("pg_stat_wal"),
        "{}",
        old.statements[0]
    );
    let new = of_postgres(&POSTGRES_17);
    assert!(
        new.statements[0]
            .contains("trunc((pg_stat_checkpointer.num_timed)::numeric) AS checkpoints_timed")
    );
    assert!(
        new.statements[0].contains("pg_stat_checkpointer.buffers_written + io_of_backends.writes)"),
        "{}",
        new.statements[0]
    );
    assert!(
        !new.statements[0].contains("buffers_backend"),
        "{}",
        new.statements[0]
    );
    let answer = rows(
        &["checkpoints_timed", "lsn_current", "waiting_io"],
        &[&[Some("4"), Some("26738688"), None]],
    );
    let expected = [("checkpoints_timed", 4), ("lsn_current", 26_738_688)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    for queries in [old, new] {
        assert_eq!(filled(&queries, &answer), expected.clone().into());
    }
}

#[test]
fn what_others_do_is_nothing_and_not_zero_to_who_may_not_see_it() {
    let hidden = of_postgres(&POSTGRES_15);
    assert!(
        !hidden.statements[0].contains("activity"),
        "{}",
        hidden.statements[0]
    );
    let seen = of_postgres(&[&POSTGRES_15[..], &["pg_read_all_stats"]].concat());
    for column in ["waiting_io", "autovacuum_workers", "threads_running"] {
        assert!(seen.columns.contains_key(column) && !hidden.columns.contains_key(column));
    }
}

#[test]
fn what_version_18_counts_with_other_io_is_found_there() {
    let columns = ["pg_stat_io.writes", "pg_stat_io.fsyncs"];
    let sql = &of_postgres(&columns).statements[0];
    for part in [
        "trunc((io_of_wal.writes)::numeric) AS log_writes",
        "trunc((io_of_wal.fsyncs)::numeric) AS log_fsyncs",
        "trunc((io_of_backends.writes)::numeric) AS buffers_flushed_by_backends",
        "WHERE object = 'wal' AND context = 'normal') AS io_of_wal",
    ] {
        assert!(sql.contains(part), "{sql}");
    }
    let version_17 = [
        &columns[..],
        &["pg_stat_wal.wal_write", "pg_stat_wal.wal_sync"],
    ]
    .concat();
    let sql = &of_postgres(&version_17).statements[0];
    assert!(!sql.contains("io_of_wal"), "{sql}");
}

#[test]
fn an_empty_answer_fills_nothing() {
    for queries in [of_mysql(&POSITIONS, None, &[]), of_postgres(&POSTGRES_15)] {
        assert!(filled(&queries, &rows(&[], &[])).is_empty());
    }
}

#[test]
fn a_server_is_asked_for_nothing_that_it_does_not_have() {
    let counters: Vec<Counter> = counters::all()
        .into_iter()
        .filter(|counter| counter.column == "checkpoint_age_bytes")
        .map(Counter::without_monitor)
        .collect();
    let statements = |enabled: &'static [&'static str]| {
        let queries = Family::EarlierMysql.queries(&counters, |sql| {
            Ok::<_, Infallible>(names(if sql == "SHOW GLOBAL STATUS" {
                &["Uptime"]
            } else {
                enabled
            }))
        });
        queries.unwrap_or_else(|never| match never {}).statements
    };
    assert_eq!(statements(&[]), Vec::<String>::new(), "`IN ()` is no SQL");
    assert_eq!(
        statements(&["INNODB_METRICS.log_lsn_checkpoint_age"]),
        [
            "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ('log_lsn_checkpoint_age')"
        ]
    );
}

#[test]
fn whoever_asks_often_can_leave_the_monitor_out() {
    let cheap: Vec<Counter> = counters::all()
        .into_iter()
        .map(Counter::without_monitor)
        .collect();
    let queries = Family::EarlierMysql.queries(&cheap, |sql| {
        Ok::<_, Infallible>(names(if sql == "SHOW GLOBAL STATUS" {
            &["Uptime"]
        } else {
            &[]
        }))
    });
    let statements = queries.unwrap_or_else(|never| match never {}).statements;
    assert_eq!(
        statements,
        ["SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime')"]
    );
}
