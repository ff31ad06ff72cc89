//! The OLTP family on real, private servers, alike on each; skipped, and said so, where none is installed.

use crate::support::oltp::{SPECIAL, drive, load, loading, parameters};
use crate::support::system::System;
use crate::support::{codes, completed, number, sql, sqlite};
use fairtrial_protocol::oltp::{Distribution, Profile};

crate::on_both_systems!(
    content_is_the_same_as_on_sqlite_and_for_any_number_of_threads,
    many_users_meet_conflicts_repeat_them_and_leave_rows_in_pairs,
);

fn content_is_the_same_as_on_sqlite_and_for_any_number_of_threads<S: System>(server: &S) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.at("content_oltp");
    let each: [(Distribution, &[u32]); 3] = [
        (SPECIAL, &[1, 3]),
        (Distribution::Pareto { h: 0.2 }, &[3]),
        (Distribution::Zipfian { exponent: 0.8 }, &[3]),
    ];
    for (distribution, threads) in each {
        let file = sqlite(&directory.path().join("t.db"));
        let mut request = loading(file, Profile::ReadWrite, distribution);
        request.table_size = 12_000; // a whole unit and a part of one
        let embedded = load(&request);
        request.endpoint = endpoint.clone();
        for &threads in threads {
            request.threads = threads;
            assert_eq!(load(&request), embedded, "{threads} threads");
        }
        let read_back = fairtrial_load::oltp_content_sha256(&request).expect("it can be read");
        assert_eq!(read_back, embedded.content_sha256);
    }
    sql(
        &endpoint,
        &["INSERT INTO sbtest1 (k, c, pad) VALUES (1, '', '')"],
    );
    let last = number(&endpoint, "SELECT MAX(id) FROM sbtest1");
    assert_eq!(last, 12_001, "the server goes on with the keys");
    server.forget("content_oltp");
}

fn many_users_meet_conflicts_repeat_them_and_leave_rows_in_pairs<S: System>(server: &S) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.at("crowd");
    load(&loading(endpoint.clone(), Profile::ReadWrite, SPECIAL));
    let (place, profile) = (directory.path(), Profile::ReadWrite);
    let mut request = parameters(endpoint.clone(), place, profile, S::CROWD);
    request.drive.virtual_users = 16;
    let driven = drive(&request);
    let failed = driven.transactions["read_write"].failed;
    assert_eq!(completed(&driven) + failed, S::CROWD);
    let is_known = |code: &&str| S::CONFLICTS.contains(code);
    assert!(codes(&driven).keys().all(is_known), "{:?}", driven.errors);
    let count = "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2) + (SELECT COUNT(*) FROM sbtest3)";
    assert_eq!(number(&endpoint, count), 3_000, "rows come and go in pairs");
    request.skip_transactions = true;
    let driven = drive(&request);
    let is_known = |code: &&str| is_known(code) || *code == S::DUPLICATE.0;
    assert!(codes(&driven).keys().all(is_known), "{:?}", driven.errors);
    server.forget("crowd");
}
