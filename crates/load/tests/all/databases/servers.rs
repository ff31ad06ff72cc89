//! TPC-C and plain statements on real, private servers, alike on each; skipped, and said so, where none is installed.

use crate::support::system::System;
use crate::support::{
    assert_consistent, check, completed, drive, effects, embedded, load, number, parameters, sql,
};
use fairtrial_protocol::load::Endpoint;

crate::on_both_systems!(
    content_is_the_same_as_on_sqlite_and_for_many_threads,
    all_conditions_hold_and_all_columns_change_when_eight_users_drive,
    statements_give_columns_and_text_with_null_kept,
);

/// By one thread and by two: where each server is killed (`mariadb.rs`, `postgres_faults.rs`), and with inserts.
fn content_is_the_same_as_on_sqlite_and_for_many_threads<S: System>(server: &S) {
    let endpoint = server.at("content");
    assert_eq!(&load(endpoint.clone(), 1, 3), embedded());
    let read_back = fairtrial_load::content_sha256(&endpoint, 1).expect("the content can be read");
    assert_eq!(
        read_back,
        embedded().content_sha256,
        "and it is what the tables hold"
    );
    server.assert_indexed("content");
    if matches!(endpoint, Endpoint::Postgres { .. }) {
        // Not by `relallvisible`: whoever connects to another database of the server has a snapshot of all for a moment.
        let unknown = "SELECT COUNT(*) FROM pg_class JOIN pg_stat_user_tables ON relid = pg_class.oid \
            WHERE reltuples <= 0 OR vacuum_count = 0 OR analyze_count = 0";
        assert_eq!(number(&endpoint, unknown), 0, "vacuumed and analysed");
    }
    server.forget("content");
}

fn all_conditions_hold_and_all_columns_change_when_eight_users_drive<S: System>(server: &S) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.with_warehouses("driven");
    assert_consistent(&endpoint);
    let before = effects::look(&endpoint);
    let mut request = parameters(endpoint.clone(), directory.path());
    (request.drive.virtual_users, request.drive.transactions) = (1, Some(300));
    effects::assert_counts(&endpoint, &before, &drive(&request));
    (request.drive.virtual_users, request.drive.transactions) = (8, Some(800));
    let driven = drive(&request);
    let failed: u64 = driven
        .transactions
        .values()
        .map(|outcomes| outcomes.failed)
        .sum();
    assert_eq!(completed(&driven) + failed, 800);
    let is_expected = |kind: &str| kind == "deadlock";
    assert!(
        driven.errors.iter().all(|error| is_expected(&error.kind)),
        "{:?}",
        driven.errors
    );
    let (setting, value) = S::ISOLATION;
    assert_eq!(driven.effective[setting], value);
    assert_consistent(&endpoint);
    effects::assert_changed(&endpoint, &before);
    corrupted_rows_are_named(&endpoint);
    server.forget("driven");
}

fn corrupted_rows_are_named(endpoint: &Endpoint) {
    sql(
        endpoint,
        &[
            "UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 5 AND no_o_id = 2900",
        ],
    );
    let checked = check(endpoint);
    let violated = checked
        .conditions
        .iter()
        .filter(|condition| condition.violations > 0);
    let clauses: Vec<_> = violated
        .map(|condition| condition.clause.trim_start_matches("3.3.2."))
        .collect();
    assert_eq!(clauses, ["3", "5", "10", "11", "12"]);
    let tenth = &checked.conditions[9].examples[0];
    assert!(tenth.starts_with("c_w_id=2 c_d_id=3 c_id=8 "), "{tenth}");
}

fn statements_give_columns_and_text_with_null_kept<S: System>(server: &S) {
    let rows = sql(
        &server.at(S::MAINTENANCE),
        &[
            "SELECT 1 AS one, NULL AS nothing, 1.50 AS money",
            S::NOTHING,
        ],
    );
    assert_eq!(rows[0].columns, ["one", "nothing", "money"]);
    assert_eq!(
        rows[0].rows,
        [[Some("1".into()), None, Some("1.50".into())]]
    );
    assert!(rows[1].columns.is_empty() && rows[1].rows.is_empty());
}
