//! Commands and answers stay in step on a real connection; skipped, and said so, where no MariaDB is installed.

use super::*;
use crate::driver::StatementId;
use crate::tests::mariadb::shared;

/// Two results, of which the second is an error where `fails` is not 0.
const TWO_RESULTS: &str = "CREATE OR REPLACE PROCEDURE two_results(fails INT) BEGIN SELECT 1 AS one, 2 AS two; \
    IF fails THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the second'; END IF; SELECT 3 AS three; END";

#[test]
fn a_procedures_later_results_are_read_over_and_their_error_is_the_calls() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "results");
    let met = driver.block_on(async {
        driver.begin_load().await?;
        let mut connection = driver.connect(&[]).await?;
        connection.text(TWO_RESULTS).await?;
        let first = connection.text("CALL two_results(0)").await?;
        let next = connection.number::<i64>("SELECT 7").await?;
        let failed = connection.text("CALL two_results(1)").await;
        let last = connection.number::<i64>("SELECT 8").await?;
        Ok::<_, DriverError>((first, next, failed, last))
    });
    let (first, next, failed, last) = met.expect("a reactor").expect("the rest works");
    assert_eq!(first.columns, ["one", "two"]);
    assert_eq!(first.rows, [[Some("1".to_owned()), Some("2".to_owned())]]);
    let failed = failed.expect_err("the second result is an error");
    assert_eq!((failed.code.as_str(), failed.is_end()), ("1644", false));
    assert_eq!((next, last), (Some(7), Some(8)));
}

#[test]
fn a_server_that_waits_for_a_file_is_not_asked_anything_more() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "files");
    let load = "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t";
    let met = driver.block_on(async {
        driver.begin_load().await?;
        let mut refusals = Vec::new();
        for as_text in [true, false] {
            let mut connection = driver.connect(&[]).await?;
            connection
                .text("CREATE OR REPLACE TABLE t (a TEXT)")
                .await?;
            refusals.push(if as_text {
                connection.text(load).await.map(drop)
            } else {
                connection.run(load).await.map(drop)
            });
        }
        Ok::<_, DriverError>(refusals)
    });
    for refused in met.expect("a reactor").expect("the rest works") {
        let refused = refused.expect_err("no file is sent");
        assert!(refused.is_end(), "{refused:?}");
        assert!(refused.message.contains("file"), "{refused}");
    }
}

#[test]
fn more_statements_than_a_socket_takes_at_once_are_prepared() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "information_schema");
    // Each is two kilobytes of answer too, which nobody reads while statements are sent.
    let comment = "-".repeat(4_096);
    let statements: Vec<String> = (0..400)
        .map(|number| format!("SELECT {number}, columns.* FROM columns /* {comment} */ LIMIT 0"))
        .collect();
    let prepared = driver.block_on(async {
        let mut connection = driver.connect(&statements).await?;
        connection.read(StatementId(399), &[]).await
    });
    assert_eq!(prepared.expect("a reactor"), Ok(0));
}

#[test]
fn a_statement_of_more_than_a_packet_arrives_whole() {
    let Some(server) = shared() else { return };
    let driver = driver(&server, "mysql");
    let length = 17 << 20;
    let asked = driver.block_on(async {
        let mut root = driver.connect(&[]).await?;
        root.text("SET GLOBAL max_allowed_packet = 64 << 20")
            .await?;
        let mut connection = driver.connect(&[]).await?;
        let sql = format!("SELECT LENGTH('{}')", "x".repeat(length));
        let found = connection.number::<usize>(&sql).await;
        root.text("SET GLOBAL max_allowed_packet = DEFAULT").await?;
        Ok::<_, DriverError>((found?, connection.number::<i64>("SELECT 7").await?))
    });
    let found = asked.expect("a reactor").expect("it is understood");
    assert_eq!(found, (Some(length), Some(7)));
}
