//! TPC-C in stored procedures does what it does statement by statement; skipped, and said so, where no MariaDB is
//! installed.

use crate::support::mariadb::Server;
use crate::support::system::System as _;
use crate::support::{contents, parameters, sqlite};
use fairtrial_load::LoadError;

/// Twelve digits of a row's hash as a number.
const HASH: &str = "CAST(CONV(LEFT(MD5(ROW_TEXT), 12), 16, 10) AS DECIMAL(20))";

#[test]
fn one_user_leaves_the_same_database_either_way() {
    let Some(server) = Server::common() else {
        return;
    };
    let by_statements = server.with_warehouses("statements");
    let by_procedures = server.with_warehouses("procedures");
    assert_eq!(
        contents::left(HASH, &by_procedures, true),
        contents::left(HASH, &by_statements, false)
    );
    server.forget("statements");
    server.forget("procedures");
}

#[test]
#[ignore = "long; its siblings are the test above, and the same of statements in servers.rs"]
fn one_user_and_eight_leave_a_consistent_database() {
    if let Some(server) = Server::common() {
        contents::assert_procedures_leave_it_consistent(&server.with_warehouses("eight"));
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
