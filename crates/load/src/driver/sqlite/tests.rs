use super::*;

mod answers;

#[test]
fn spellings_that_sqlite_takes_as_one_compare_equal() {
    for (name, value, effective) in [
        ("synchronous", "FULL", "2"),
        ("synchronous", "off", "0"),
        ("journal_mode", "WAL", "wal"),
        ("journal_mode", "OFF", "off"),
        ("foreign_keys", "ON", "1"),
        ("temp_store", "memory", "2"),
        ("cache_size", "-2000", "-2000"),
    ] {
        assert_eq!(
            normalised(name, value),
            normalised(name, effective),
            "{name} = {value}"
        );
    }
    assert_ne!(
        normalised("journal_mode", "wal"),
        normalised("journal_mode", "delete")
    );
}

fn driver(directory: &tempfile::TempDir, name: &str, value: &str) -> Sqlite {
    Sqlite {
        path: directory.path().join("t.db"),
        pragmas: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        busy_timeout: Duration::from_millis(10),
    }
}

#[test]
fn a_pragma_that_does_not_read_back_is_an_error_naming_both_values() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, value) in [
        ("journal_mode", "wall"),
        ("no_such_pragma", "1"),
        ("page_size", "1000"),
    ] {
        let refused = driver(&directory, name, value);
        let error = refused
            .block_on(refused.connect(&[]))
            .expect("ready")
            .expect_err(name);
        assert_eq!(error.code, super::super::SETTING_REFUSED);
        assert!(
            error.message.contains(name) && error.message.contains(value),
            "{error}"
        );
    }
}

#[test]
fn the_time_that_a_connection_waits_is_read_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, value, waits) in [("cache_size", "100", "10"), ("busy_timeout", "100", "100")] {
        let driver = driver(&directory, name, value);
        let effective = driver.block_on(async {
            let mut connection = driver.connect(&[]).await?;
            driver.effective(&mut connection).await
        });
        assert_eq!(
            effective.expect("ready").expect("it answers")["busy_timeout"],
            waits
        );
    }
}

#[test]
fn a_second_writer_is_told_that_the_database_is_busy_and_may_try_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let driver = driver(&directory, "journal_mode", "wal");
    let outcome = driver.block_on(async {
        let mut first = driver.connect(&[]).await?;
        let mut second = driver.connect(&[]).await?;
        first.begin(AccessMode::ReadWrite).await?;
        let refused = second.begin(AccessMode::ReadWrite).await;
        first.rollback().await?;
        second.begin(AccessMode::ReadWrite).await?;
        Ok::<_, DriverError>(refused)
    });
    let refused = outcome
        .expect("ready")
        .expect("both connections work")
        .expect_err("one writer at a time");
    assert_eq!(
        (refused.kind, refused.code.as_str(), refused.retryable),
        (ErrorKind::Busy, "SQLITE_BUSY", true)
    );
}
