//! TPC-C in stored procedures does what it does statement by statement; skipped, and said so, where no MariaDB is
//! installed.

use crate::support::mariadb::Server;
use crate::support::{contents, parameters, sqlite};
use fairtrial_load::LoadError;

/// Twelve digits of a row's hash as a number.
const HASH: &str = "CAST(CONV(LEFT(MD5(ROW_TEXT), 12), 16, 10) AS DECIMAL(20))";

#[test]
fn one_user_leaves_the_same_database_either_way_and_eight_a_consistent_one() {
    let Some(server) = Server::start() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let by_statements = contents::driven(
        HASH,
        &server.endpoint("statements"),
        directory.path(),
        false,
        1,
    );
    let by_procedures = contents::driven(
        HASH,
        &server.endpoint("procedures"),
        directory.path(),
        true,
        1,
    );
    assert_eq!(by_procedures, by_statements);
    contents::driven(
        HASH,
        &server.endpoint("procedures"),
        directory.path(),
        true,
        8,
    );
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
