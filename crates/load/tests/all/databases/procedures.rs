//! TPC-C in stored procedures does what it does statement by statement, alike on each server; skipped, and said so, where
//! none is installed.

use crate::on_both_systems;
use crate::support::system::System;
use crate::support::{contents, parameters, sqlite};
use fairtrial_load::LoadError;

on_both_systems!(
    one_user_leaves_the_same_database_either_way,
    #[ignore = "long; its siblings are the test above, and the same of statements in servers.rs"]
    one_user_and_eight_leave_a_consistent_database,
);

fn one_user_leaves_the_same_database_either_way<S: System>(server: &S) {
    let by_statements = server.with_warehouses("statements");
    let by_procedures = server.with_warehouses("procedures");
    assert_eq!(
        contents::left(S::HASH, &by_procedures, true),
        contents::left(S::HASH, &by_statements, false)
    );
    server.forget("statements");
    server.forget("procedures");
}

fn one_user_and_eight_leave_a_consistent_database<S: System>(server: &S) {
    contents::assert_procedures_leave_it_consistent(&server.with_warehouses("eight"));
}

#[test]
fn sqlite_has_no_procedures_and_says_so_before_anything_starts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = parameters(sqlite(&directory.path().join("none.db")), directory.path());
    request.procedures = true;
    let error = fairtrial_load::drive(&request, &mut Vec::new()).expect_err("refused");
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
