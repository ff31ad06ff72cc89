//! The OLTP family on a real, private MariaDB; skipped, and said so, where none is installed.

use crate::support::mariadb::shared;
use crate::support::oltp::{SPECIAL, drive, load, loading, parameters};
use crate::support::{completed, number, sql, sqlite};
use fairtrial_protocol::oltp::{Distribution, Profile};

#[test]
fn content_is_the_same_on_both_systems_and_for_any_number_of_threads() {
    let Some(server) = shared() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    for distribution in [
        SPECIAL,
        Distribution::Pareto { h: 0.2 },
        Distribution::Zipfian { exponent: 0.8 },
    ] {
        let mut asked = loading(
            sqlite(&directory.path().join("t.db")),
            Profile::ReadWrite,
            distribution,
        );
        asked.table_size = 25_000;
        let embedded = load(&asked);
        asked.endpoint = server.endpoint("content");
        for threads in [1, 3] {
            asked.threads = threads;
            assert_eq!(load(&asked), embedded, "{threads} threads");
        }
        let read_back = fairtrial_load::oltp_content_sha256(&asked).expect("it can be read");
        assert_eq!(read_back, embedded.content_sha256);
    }
    let new = "SELECT MAX(id) FROM sbtest1";
    let endpoint = server.endpoint("content");
    sql(
        &endpoint,
        &["INSERT INTO sbtest1 (k, c, pad) VALUES (1, '', '')"],
    );
    assert_eq!(
        number(&endpoint, new),
        25_001,
        "the server goes on with the keys"
    );
    sql(&endpoint, &["DROP DATABASE content"]);
}

#[test]
fn many_users_without_transactions_meet_duplicate_keys_and_count_them() {
    let Some(server) = shared() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("crowded");
    load(&loading(endpoint.clone(), Profile::ReadWrite, SPECIAL));
    let mut asked = parameters(
        endpoint.clone(),
        directory.path(),
        Profile::ReadWrite,
        3_000,
    );
    asked.drive.virtual_users = 16;
    let driven = drive(&asked);
    let failed = driven.transactions["read_write"].failed;
    assert_eq!(completed(&driven) + failed, 3_000);
    let known = |code: &str| ["1213", "1205", "1020"].contains(&code);
    assert!(
        driven.errors.iter().all(|error| known(&error.code)),
        "{:?}",
        driven.errors
    );
    let count = "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2) + (SELECT COUNT(*) FROM sbtest3)";
    assert_eq!(number(&endpoint, count), 3_000, "rows come and go in pairs");
    asked.skip_transactions = true;
    let driven = drive(&asked);
    let known = |code: &str| known(code) || code == "1062";
    assert!(
        driven.errors.iter().all(|error| known(&error.code)),
        "{:?}",
        driven.errors
    );
    sql(&endpoint, &["DROP DATABASE crowded"]);
}
