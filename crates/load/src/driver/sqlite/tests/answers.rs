//! Values out and in, errors by their codes, and pragmas in all their spellings.

use super::*;
use crate::driver::Decimal;
use crate::driver::dialect::Type;
use crate::driver::table::Column;

const fn column(name: &'static str, kind: Type, nullable: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
    }
}

static ODD: Table = Table {
    name: "odd",
    columns: &[
        column("id", Type::Integer, false),
        column("words", Type::Variable(200), true),
        column(
            "money",
            Type::Decimal {
                digits: 12,
                scale: 2,
            },
            true,
        ),
        column("big", Type::Long, true),
    ],
    primary_key: &["id"],
    indexes: &[],
};

const WORDS: [&str; 9] = [
    "",
    "O'Brien \"quoted\" `ticked`",
    "back\\slash and \\N and \\0",
    "tab\tnewline\nreturn\r",
    "nul\0inside",
    " spaces at both ends ",
    "größer – 漢字 🦀",
    "%_?; -- DROP TABLE odd",
    "NULL",
];

#[test]
fn every_value_comes_back_as_it_was_sent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = driver(&directory, "journal_mode", "delete");
    let (sent, got) = driver
        .block_on(async {
            let mut connection = driver.connect(&[]).await?;
            connection.text(&ODD.create(Dialect::Sqlite)).await?;
            let mut batch = Batch::default();
            let mut sent = Vec::new();
            for (id, words) in (1..).zip(WORDS) {
                let cents = if id % 2 == 0 { -id } else { 9_999_999_999 };
                let big = if id == 1 { i64::MIN } else { i64::MAX - id };
                batch.push(&[
                    Value::Integer(id),
                    Value::Text(words),
                    Value::Decimal(Decimal::money(cents)),
                    Value::Integer(big),
                ]);
                sent.push(Row(vec![
                    Cell::Integer(id),
                    Cell::Text(words.into()),
                    Cell::Integer(cents),
                    Cell::Integer(big),
                ]));
            }
            batch.push(&[Value::Integer(99), Value::Null, Value::Null, Value::Null]);
            sent.push(Row(vec![
                Cell::Integer(99),
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ]));
            connection.insert(&ODD, &batch).await?;
            let mut reader = driver
                .connect(&["SELECT * FROM odd ORDER BY id".into()])
                .await?;
            Ok::<_, DriverError>((sent, reader.query(StatementId(0), &[]).await?))
        })
        .expect("ready")
        .expect("the values travel");
    assert_eq!(got, sent);
}

#[test]
fn a_strict_table_refuses_text_where_a_number_belongs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = driver(&directory, "journal_mode", "delete");
    let refused = driver.block_on(async {
        let mut connection = driver.connect(&[]).await.expect("it opens");
        connection
            .text(&ODD.create(Dialect::Sqlite))
            .await
            .expect("it is made");
        let mut batch = Batch::default();
        batch.push(&[
            Value::Integer(1),
            Value::Null,
            Value::Text("much"),
            Value::Null,
        ]);
        connection.insert(&ODD, &batch).await
    });
    let error = refused.expect("ready").expect_err("STRICT");
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("SQLITE_CONSTRAINT", false)
    );
}

#[test]
fn reals_are_read_as_text_with_all_their_digits_and_blobs_not_at_all() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = driver(&directory, "journal_mode", "delete");
    let read = |sql: &str| {
        let answer = driver.block_on(async {
            let mut connection = driver.connect(&[sql.to_owned()]).await?;
            connection.query(StatementId(0), &[]).await
        });
        answer.expect("ready")
    };
    let rows = read("SELECT 1.5, 0.1 + 0.2").expect("numbers");
    let text = |digits: &str| Cell::Text(digits.into());
    assert_eq!(rows, [Row(vec![text("1.5"), text("0.30000000000000004")])]);
    assert!(
        rows[0].integer(0).is_err(),
        "a workload that expects an integer is told"
    );
    let error = read("SELECT x'00'").expect_err("a blob");
    assert!(error.message.contains("Blob"), "{error}");
}

/// Codes, extended ones among them, and what becomes of them.
const CODES: [(i32, ErrorKind, &str, bool); 14] = [
    (ffi::SQLITE_BUSY, ErrorKind::Busy, "SQLITE_BUSY", true),
    (
        ffi::SQLITE_BUSY_SNAPSHOT,
        ErrorKind::Busy,
        "SQLITE_BUSY",
        true,
    ),
    (
        ffi::SQLITE_BUSY_RECOVERY,
        ErrorKind::Busy,
        "SQLITE_BUSY",
        true,
    ),
    (ffi::SQLITE_LOCKED, ErrorKind::Busy, "SQLITE_LOCKED", true),
    (
        ffi::SQLITE_LOCKED_SHAREDCACHE,
        ErrorKind::Busy,
        "SQLITE_LOCKED",
        true,
    ),
    (
        ffi::SQLITE_CANTOPEN,
        ErrorKind::Connection,
        "SQLITE_CANTOPEN",
        false,
    ),
    (ffi::SQLITE_FULL, ErrorKind::DiskFull, "SQLITE_FULL", false),
    (
        ffi::SQLITE_CORRUPT,
        ErrorKind::Other,
        "SQLITE_CORRUPT",
        false,
    ),
    (
        ffi::SQLITE_CORRUPT_INDEX,
        ErrorKind::Other,
        "SQLITE_CORRUPT",
        false,
    ),
    (ffi::SQLITE_NOTADB, ErrorKind::Other, "SQLITE_NOTADB", false),
    (
        ffi::SQLITE_READONLY,
        ErrorKind::Other,
        "SQLITE_READONLY",
        false,
    ),
    (
        ffi::SQLITE_IOERR_FSYNC,
        ErrorKind::Other,
        "SQLITE_IOERR",
        false,
    ),
    (
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
        ErrorKind::Other,
        "SQLITE_CONSTRAINT",
        false,
    ),
    (ffi::SQLITE_TOOBIG, ErrorKind::Other, "SQLITE_18", false),
];

#[test]
fn codes_are_classified_by_what_a_user_can_do() {
    for (code, kind, name, retryable) in CODES {
        let error = classify(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert_eq!(
            (error.kind, error.code.as_str(), error.retryable),
            (kind, name, retryable),
            "{code}"
        );
        assert!(
            !error.message.is_empty(),
            "{code} without a message gets SQLite's own words"
        );
    }
}

/// What a statement gives on a file, after something was done to it.
fn failing(prepare: impl Fn(&std::path::Path), sql: &str) -> DriverError {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = Sqlite {
        path: directory.path().join("t.db"),
        pragmas: BTreeMap::new(),
        busy_timeout: Duration::ZERO,
    };
    prepare(&driver.path);
    let end = driver.block_on(async { driver.connect(&[]).await?.text(sql).await });
    end.expect("ready").expect_err(sql)
}

#[test]
fn real_faults_have_the_systems_own_codes() {
    let wrong = failing(|_| (), "SELECT * FROM nowhere");
    assert_eq!(
        (wrong.kind, wrong.code.as_str()),
        (ErrorKind::Other, "SQLITE_ERROR")
    );
    assert!(wrong.message.contains("nowhere"), "{wrong}");
    let syntax = failing(|_| (), "SELEKT 1");
    assert_eq!(syntax.code, "SQLITE_ERROR", "{syntax}");
    let scribbled = |path: &std::path::Path| std::fs::write(path, [b'x'; 4_096]).expect("written");
    assert_eq!(
        failing(scribbled, "SELECT * FROM sqlite_master").code,
        "SQLITE_NOTADB"
    );
    let twice = failing(
        |path| {
            let connection = rusqlite::Connection::open(path).expect("opens");
            connection
                .execute_batch("CREATE TABLE k (a PRIMARY KEY); INSERT INTO k VALUES (1)")
                .expect("made");
        },
        "INSERT INTO k VALUES (1)",
    );
    assert_eq!(twice.code, "SQLITE_CONSTRAINT");
}

#[test]
fn a_full_database_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = driver(&directory, "max_page_count", "3");
    let full = driver.block_on(async {
        let mut connection = driver.connect(&[]).await?;
        connection.text("CREATE TABLE t (a)").await?;
        connection
            .text("INSERT INTO t SELECT randomblob(100000)")
            .await
    });
    let error = full.expect("ready").expect_err("three pages");
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("SQLITE_FULL", false)
    );
}

#[test]
fn pragmas_read_back_in_every_spelling_that_sqlite_takes() {
    for (name, value) in [
        ("journal_mode", "WAL"),
        ("journal_mode", "truncate"),
        ("synchronous", "EXTRA"),
        ("synchronous", "on"),
        ("synchronous", "2"),
        ("auto_vacuum", "incremental"),
        ("auto_vacuum", "FULL"),
        ("locking_mode", "EXCLUSIVE"),
        ("secure_delete", "fast"),
        ("secure_delete", "on"),
        ("foreign_keys", "yes"),
        ("foreign_keys", "FALSE"),
        ("cache_size", "-4096"),
        ("page_size", "8192"),
        ("encoding", "UTF-16le"),
        ("encoding", "utf-8"),
        ("wal_autocheckpoint", "0"),
        ("mmap_size", "1048576"),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let driver = driver(&directory, name, value);
        let read = driver.block_on(async {
            let mut connection = driver.connect(&[]).await?;
            driver.effective(&mut connection).await
        });
        let effective = read
            .expect("ready")
            .unwrap_or_else(|error| panic!("{name} = {value}: {error}"));
        assert!(effective.contains_key(name), "{effective:?}");
        assert!(effective.contains_key("journal_mode") && effective.contains_key("sqlite_version"));
    }
}

#[test]
fn values_that_sqlite_turns_into_another_are_refused() {
    for (name, value) in [
        ("synchronous", "fullish"),
        ("locking_mode", "shared"),
        ("page_size", "4097"),
        ("cache_size", "many"),
        ("encoding", "latin1"),
        ("auto_vacuum", "sometimes"),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let refused = driver(&directory, name, value);
        let end = refused.block_on(refused.connect(&[])).expect("ready");
        assert!(end.is_err(), "{name} = {value}");
    }
}
