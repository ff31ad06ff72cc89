//! Values over a real connection, by both ways of inserting; skipped, and said so, where no MariaDB is installed.

use std::io;

use super::*;
use crate::driver::batch::Batch;
use crate::driver::dialect::Type;
use crate::driver::table::{Column, Table};
use crate::driver::{AccessMode, Cell, Decimal, Row, StatementId, Value};
use crate::tests::mariadb::shared;

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: true,
    }
}

static ODD: Table = Table {
    name: "odd",
    columns: &[
        column("id", Type::Integer),
        column("words", Type::Variable(60)),
        column(
            "money",
            Type::Decimal {
                digits: 12,
                scale: 2,
            },
        ),
        column(
            "rate",
            Type::Decimal {
                digits: 4,
                scale: 4,
            },
        ),
        column("big", Type::Long),
        column("at", Type::Time),
    ],
    primary_key: &["id"],
    indexes: &[],
};

const WORDS: [&str; 10] = [
    "",
    "O'Brien \"quoted\" `ticked`",
    "back\\slash, \\N, \\0, \\",
    "\\N",
    "tab\tnewline\nreturn\rend",
    "nul\0inside",
    " spaces at both ends ",
    "größer é",
    "%_?; -- DROP TABLE odd",
    "NULL",
];

fn rows() -> (Batch, Vec<Row>) {
    let (mut batch, mut sent) = (Batch::default(), Vec::new());
    for (id, words) in (1..).zip(WORDS) {
        let cents = if id % 2 == 0 { -id } else { 999_999_999_999 };
        let (rate, big, at) = (id * 7, i64::MAX - id, "2028-02-29 23:59:58");
        let decimal = |units, scale| Value::Decimal(Decimal { units, scale });
        batch.push(&[
            Value::Integer(id),
            Value::Text(words),
            decimal(cents, 2),
            decimal(-rate, 4),
            Value::Integer(big),
            Value::Text(at),
        ]);
        let text = |text: &str| Cell::Text(text.into());
        let read = |units, scale| Cell::Decimal(Decimal { units, scale });
        sent.push(Row(vec![
            Cell::Integer(id),
            text(words),
            read(cents, 2),
            read(-rate, 4),
            Cell::Integer(big),
            text(at),
        ]));
    }
    let mut nothing = [Value::Null; 6];
    nothing[0] = Value::Integer(99);
    batch.push(&nothing);
    let mut row = vec![Cell::Null; 6];
    row[0] = Cell::Integer(99);
    sent.push(Row(row));
    (batch, sent)
}

/// Loads rows into a new table and reads them back.
async fn there_and_back(
    driver: &Mysql,
    batch: &Batch,
    local_infile: bool,
) -> Result<Vec<Row>, DriverError> {
    driver.begin_load().await?;
    let mut loading = driver.load_connection().await?;
    loading.local_infile = local_infile;
    loading.text("DROP TABLE IF EXISTS odd").await?;
    loading.text(&ODD.create(Dialect::Mysql)).await?;
    loading.insert(&ODD, batch).await?;
    let mut reader = driver
        .connect(&["SELECT * FROM odd ORDER BY id".into()])
        .await?;
    reader.query(StatementId(0), &[]).await
}

#[test]
fn every_value_comes_back_as_it_was_sent_by_file_and_by_statement_whatever_the_sql_mode() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "round_trips");
    let (batch, sent) = rows();
    let outcome = driver.block_on(async {
        driver.begin_load().await?;
        let mut root = driver.connect(&[]).await?;
        let before = root.text("SELECT @@GLOBAL.sql_mode").await?.rows;
        for mode in [
            "STRICT_TRANS_TABLES",
            "",
            "NO_BACKSLASH_ESCAPES,ANSI_QUOTES",
        ] {
            root.text(&format!("SET GLOBAL sql_mode = '{mode}'"))
                .await?;
            for local_infile in [true, false] {
                let got = there_and_back(&driver, &batch, local_infile).await?;
                assert_eq!(got, sent, "sql_mode {mode}, LOAD DATA {local_infile}");
            }
        }
        let before = before[0][0].clone().unwrap_or_default();
        root.text(&format!("SET GLOBAL sql_mode = '{before}'"))
            .await
    });
    outcome.expect("a reactor").expect("the values travel");
}

#[test]
fn text_that_does_not_fit_is_an_error_and_never_cut_or_replaced() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "misfits");
    let long = "x".repeat(61);
    for misfit in [long.as_str(), "漢字", "🦀"] {
        for local_infile in [true, false] {
            let mut batch = Batch::default();
            let mut row = [Value::Null; 6];
            (row[0], row[1]) = (Value::Integer(1), Value::Text(misfit));
            batch.push(&row);
            let end = driver.block_on(there_and_back(&driver, &batch, local_infile));
            let error = end.expect("a reactor").expect_err(misfit);
            assert_eq!(
                (error.kind, error.retryable),
                (ErrorKind::Other, false),
                "{error}"
            );
        }
    }
}

#[test]
fn parameters_of_prepared_statements_keep_every_digit() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "mysql");
    let statement = Dialect::Mysql.render("SELECT 0.00 + {money}, CAST(? AS CHAR), ? + 1");
    let answer = driver.block_on(async {
        let mut connection = driver.connect(&[statement]).await?;
        let mut rows = Vec::new();
        for cents in [-1, 5, 999_999_999_901] {
            let values = [
                Value::Decimal(Decimal::money(cents)),
                Value::Text("a'\\b"),
                Value::Integer(-2),
            ];
            rows.extend(connection.query(StatementId(0), &values).await?);
        }
        Ok::<_, DriverError>(rows)
    });
    let rows = answer.expect("a reactor").expect("it is asked");
    let cents: Vec<i64> = rows
        .iter()
        .map(|row| row.integer(0).expect("money"))
        .collect();
    assert_eq!(cents, [-1, 5, 999_999_999_901]);
    assert!(
        rows.iter()
            .all(|row| row.text(1) == Ok("a'\\b") && row.integer(2) == Ok(-1))
    );
}

#[test]
fn times_that_were_read_find_their_row_again() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "times");
    let statements = [
        "SELECT at, lasts FROM t",
        "UPDATE t SET n = n + 1 WHERE at = ? AND lasts = ?",
    ];
    let met = driver.block_on(async {
        driver.begin_load().await?;
        let mut connection = driver.connect(&[]).await?;
        for sql in [
            "CREATE OR REPLACE TABLE t (at DATETIME(6), lasts TIME(3), n INT)",
            "INSERT INTO t VALUES ('2026-01-31 23:59:58.123456', '-838:59:58.007', 1)",
        ] {
            connection.text(sql).await?;
        }
        connection.prepare(&statements.map(String::from)).await?;
        let rows = connection.query(StatementId(0), &[]).await?;
        let values: Vec<Value<'_>> = rows[0].0.iter().map(Cell::value).collect();
        connection.execute(StatementId(1), &values).await
    });
    let found = met.expect("a reactor").expect("the statements run");
    assert_eq!(found, 1, "none where a fraction was cut");
}

#[test]
fn the_server_codes_that_a_workload_meets_are_classified() {
    let table = [
        (1213, ErrorKind::Deadlock, true),
        (1614, ErrorKind::Deadlock, true),
        (1205, ErrorKind::LockTimeout, true),
        (1020, ErrorKind::Other, true),
        (1040, ErrorKind::Connection, false),
        (1045, ErrorKind::Connection, false),
        (1049, ErrorKind::Connection, false),
        (1053, ErrorKind::Connection, false),
        (1203, ErrorKind::Connection, false),
        (1226, ErrorKind::Connection, false),
        (1927, ErrorKind::Connection, false),
        (3169, ErrorKind::Connection, false),
        (4031, ErrorKind::Connection, false),
        (1062, ErrorKind::Other, false),
        (1064, ErrorKind::Other, false),
        (1114, ErrorKind::DiskFull, false),
        (1146, ErrorKind::Other, false),
        (1290, ErrorKind::Other, false),
        (65_535, ErrorKind::Other, false),
    ];
    for (code, kind, retryable) in table {
        let error = classify_server(code, "said".into());
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{code}");
        assert_eq!(
            (error.code, error.message.as_str()),
            (code.to_string(), "said")
        );
    }
    let closed = lost(io::ErrorKind::UnexpectedEof.into());
    assert_eq!(
        (closed.kind, closed.code.as_str()),
        (ErrorKind::Connection, "connection_lost")
    );
}

#[test]
fn a_killed_connection_and_a_locked_row_are_told_apart() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "locked");
    let met = driver.block_on(async {
        driver.begin_load().await?;
        let mut first = driver.connect(&[]).await?;
        let mut second = driver.connect(&[]).await?;
        first
            .text("CREATE OR REPLACE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB")
            .await?;
        first.text("INSERT INTO t VALUES (1)").await?;
        first.begin(AccessMode::ReadWrite).await?;
        first.text("SELECT a FROM t FOR UPDATE").await?;
        second
            .text("SET SESSION innodb_lock_wait_timeout = 1")
            .await?;
        let waited = second.text("UPDATE t SET a = 2").await.expect_err("locked");
        let id = second.text("SELECT CONNECTION_ID()").await?.rows[0][0]
            .clone()
            .unwrap_or_default();
        first.text(&format!("KILL {id}")).await?;
        let killed = second.text("SELECT 1").await.expect_err("killed");
        Ok::<_, DriverError>((waited, killed))
    });
    let (waited, killed) = met.expect("a reactor").expect("the rest works");
    assert_eq!(
        (waited.kind, waited.code.as_str(), waited.retryable),
        (ErrorKind::LockTimeout, "1205", true)
    );
    assert_eq!(
        (killed.kind, killed.retryable),
        (ErrorKind::Connection, false),
        "{killed}"
    );
}
