use super::super::counters;
use super::*;

fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Rows {
    let owned = |row: &&[Option<&str>]| row.iter().map(|cell| cell.map(str::to_owned)).collect();
    Rows {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows.iter().map(owned).collect(),
    }
}

fn names(found: &[&str]) -> Rows {
    let cells: Vec<[Option<&str>; 1]> = found.iter().map(|name| [Some(*name)]).collect();
    let slices: Vec<&[Option<&str>]> = cells.iter().map(<[_; 1]>::as_slice).collect();
    rows(&["name"], &slices)
}

/// A row as the reading fills it, by column.
fn filled(reading: &Reading, answer: &Rows) -> BTreeMap<String, u64> {
    let counters = counters::all();
    let mut row = vec![None; counters.len()];
    reading.fill(answer, &mut row);
    let named = counters.into_iter().map(|counter| counter.column);
    named
        .zip(row)
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

#[test]
fn a_server_says_its_family() {
    for (version, family) in [
        ("10.11.6-MariaDB-0+deb12u1", Family::Mariadb),
        ("8.4.2", Family::Mysql),
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
fn a_mariadb_whose_status_says_everything_is_asked_for_its_status_alone() {
    let existing = names(&["INNODB_HISTORY_LIST_LENGTH", "INNODB_DEADLOCKS", "UPTIME"]);
    let reading = Family::Mariadb.reading(&counters::all(), &existing);
    assert_eq!(
        reading.sql,
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Innodb_history_list_length', 'Innodb_deadlocks')"
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
        filled(&reading, &answer),
        expected.into(),
        "no number is nothing, not zero"
    );
}

#[test]
fn a_mysql_gives_the_same_columns_under_its_own_names() {
    let existing = names(&[
        "Innodb_redo_log_current_lsn",
        "INNODB_METRICS.log_lsn_current",
        "INNODB_METRICS.trx_rseg_history_len",
        "INNODB_METRICS.lock_deadlocks",
    ]);
    let reading = Family::Mysql.reading(&counters::all(), &existing);
    assert_eq!(
        reading.sql,
        "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status \
         WHERE VARIABLE_NAME IN ('Innodb_redo_log_current_lsn') UNION ALL \
         SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ('trx_rseg_history_len', 'lock_deadlocks')",
        "where two names exist, the first is asked for"
    );
    let answer = rows(
        &["VARIABLE_NAME", "VARIABLE_VALUE"],
        &[
            &[Some("Innodb_redo_log_current_lsn"), Some("1000")],
            &[Some("trx_rseg_history_len"), Some("3")],
            &[Some("lock_deadlocks"), Some("-1")],
        ],
    );
    let expected = [("history_list_length", 3), ("lsn_current", 1000)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(filled(&reading, &answer), expected.into());
}

/// Columns of the views that moved between versions 15 and 17.
const POSTGRES_15: [&str; 4] = [
    "pg_stat_bgwriter.checkpoints_timed",
    "pg_stat_bgwriter.buffers_checkpoint",
    "pg_stat_bgwriter.buffers_clean",
    "pg_stat_bgwriter.buffers_backend",
];
const POSTGRES_17: [&str; 3] = [
    "pg_stat_checkpointer.num_timed",
    "pg_stat_checkpointer.buffers_written",
    "pg_stat_bgwriter.buffers_clean",
];

#[test]
fn a_postgres_of_either_layout_is_asked_only_for_what_it_has() {
    let old = Family::Postgres.reading(&counters::all(), &names(&POSTGRES_15));
    assert!(
        old.sql
            .contains("trunc((pg_stat_bgwriter.checkpoints_timed)::numeric) AS checkpoints_timed")
    );
    assert!(!old.sql.contains("pg_stat_checkpointer"), "{}", old.sql);
    assert!(!old.sql.contains("pg_stat_wal"), "{}", old.sql);
    let new = Family::Postgres.reading(&counters::all(), &names(&POSTGRES_17));
    assert!(
        new.sql
            .contains("trunc((pg_stat_checkpointer.num_timed)::numeric) AS checkpoints_timed")
    );
    assert!(
        new.sql
            .contains("pg_stat_bgwriter.buffers_clean + pg_stat_checkpointer.buffers_written"),
        "{}",
        new.sql
    );
    assert!(!new.sql.contains("buffers_backend"), "{}", new.sql);
    let answer = rows(
        &["checkpoints_timed", "lsn_current", "waiting_io"],
        &[&[Some("4"), Some("26738688"), None]],
    );
    let expected = [("checkpoints_timed", 4), ("lsn_current", 26_738_688)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    for reading in [old, new] {
        assert_eq!(filled(&reading, &answer), expected.clone().into());
    }
}

#[test]
fn an_empty_answer_fills_nothing() {
    for family in [Family::Mariadb, Family::Postgres] {
        let reading = family.reading(&counters::all(), &names(&POSTGRES_15));
        assert!(filled(&reading, &rows(&[], &[])).is_empty());
    }
}

#[test]
fn an_older_mariadb_s_table_of_counters_is_as_mysqls() {
    let counters = counters::all();
    let probe = Family::Mariadb.probe(&counters);
    let older = Family::Mariadb
        .older_probe(&counters)
        .expect("there are older ones");
    assert_eq!(older, probe.replace("ENABLED = 1", "STATUS = 'enabled'"));
    assert_ne!(older, probe);
    for family in [Family::Mysql, Family::Postgres] {
        assert_eq!(family.older_probe(&counters), None);
    }
}
