//! TPC-C in stored procedures does what it does statement by statement; skipped, and said so, where no MariaDB is
//! installed.

use crate::support::mariadb::Server;
use crate::support::{contents, load, parameters, sql, sqlite};
use fairtrial_load::LoadError;

/// Twelve digits of a row's hash as a number.
const HASH: &str = "CAST(CONV(LEFT(MD5(ROW_TEXT), 12), 16, 10) AS DECIMAL(20))";

#[test]
fn one_user_leaves_the_same_database_either_way() {
    let Some(server) = Server::start() else {
        return;
    };
    let by_statements = server.endpoint("statements");
    let by_procedures = server.endpoint("procedures");
    load(by_statements.clone(), 2, 2);
    let mut copying = vec!["CREATE DATABASE procedures".to_owned()];
    for (table, _) in contents::TABLES {
        copying.push(format!(
            "CREATE TABLE procedures.{table} LIKE statements.{table}"
        ));
        copying.push(format!(
            "INSERT INTO procedures.{table} SELECT * FROM statements.{table}"
        ));
    }
    let copying: Vec<_> = copying.iter().map(String::as_str).collect();
    sql(&by_statements, &copying);
    assert_eq!(
        contents::left(HASH, &by_procedures, true),
        contents::left(HASH, &by_statements, false)
    );
}

#[test]
#[ignore = "long; its siblings are the test above, and the same of statements in servers.rs"]
fn one_user_and_eight_leave_a_consistent_database() {
    if let Some(server) = Server::start() {
        contents::assert_procedures_leave_it_consistent(&server.endpoint("crowded"));
    }
}

#[test]
fn sqlite_has_no_procedures_and_says_so_before_anything_starts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut asked = parameters(sqlite(&directory.path().join("none.db")), directory.path());
    asked.procedures = true;
    let error = fairtrial_load::drive(&asked, &mut Vec::new()).expect_err("refused");
    assert!(
        matches!(
            error,
            LoadError::Parameter {
                field: "procedures",
                ..
            }
        ),
        "{error:?}"
    );
}
