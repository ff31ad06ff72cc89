//! Statements sent together to real, private servers, alike on each; skipped, and said so, where none is installed.

use crate::support::oltp::{SPECIAL, drive, load, loading, parameters};
use crate::support::pipelining::{assert_whole, make, outcomes, run, transfer, transfers};
use crate::support::script::{driving, statement};
use crate::support::system::System;
use crate::support::{codes, sql};
use fairtrial_protocol::oltp::Profile;
use fairtrial_protocol::script::Scope;

crate::on_both_systems!(
    more_than_a_socket_takes_goes_out_in_parts_and_answers_of_any_length_come_back,
    rows_that_differ_and_keys_that_are_there_undo_what_was_sent_with_them,
    statements_outside_transactions_each_commit_beside_transactions_sent_together,
);

fn more_than_a_socket_takes_goes_out_in_parts_and_answers_of_any_length_come_back<S: System>(
    server: &S,
) {
    let endpoint = server.at("many");
    load(&loading(endpoint.clone(), Profile::ReadOnly, SPECIAL));
    let directory = tempfile::tempdir().expect("a temporary directory");
    for skip_transactions in [false, true] {
        let mut request = parameters(endpoint.clone(), directory.path(), Profile::ReadOnly, 3);
        (request.pipelining, request.skip_transactions) = (true, skip_transactions);
        (request.mix.point_selects, request.mix.simple_ranges) = (2_000, 200);
        request.mix.range_size = 1_000;
        let driven = drive(&request);
        let outcomes = driven.transactions["read_only"];
        let frame = if skip_transactions { 0 } else { 2 };
        assert_eq!(
            (outcomes.committed, outcomes.statements),
            (3, 3 * (2_000 + 200 + 3 + frame)),
            "{:?}",
            driven.errors
        );
    }
    server.forget("many");
}

fn rows_that_differ_and_keys_that_are_there_undo_what_was_sent_with_them<S: System>(server: &S) {
    let endpoint = server.at("differing");
    make(&endpoint);
    sql(&endpoint, &["INSERT INTO transfer VALUES (-1, 0)"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut nobody = statement(
        "UPDATE account SET balance = 7 WHERE id = ? - 1000",
        &["from"],
    );
    nobody.rows = Some(1);
    let twice = statement("INSERT INTO transfer VALUES (-1, 1)", &[]);
    let (duplicate, attempts) = S::DUPLICATE;
    for (bad, code, attempts) in [(nobody, "rows_differ", 1), (twice, duplicate, attempts)] {
        let mut request = transfers(endpoint.clone(), directory.path());
        request.transactions[0].statements.insert(2, bad);
        (request.drive.transactions, request.drive.virtual_users) = (Some(10), 1);
        request.drive.retries = 2;
        let driven = run(&request);
        assert_eq!(codes(&driven), [(code, 10 * attempts)].into());
        let outcomes = outcomes(&driven);
        assert_eq!(
            (outcomes.failed, outcomes.retried),
            (10, 10 * (attempts - 1))
        );
        assert_eq!(
            assert_whole(&endpoint),
            1,
            "none but the one that was there"
        );
    }
    server.forget("differing");
}

fn statements_outside_transactions_each_commit_beside_transactions_sent_together<S: System>(
    server: &S,
) {
    let endpoint = server.at("mixed");
    make(&endpoint);
    sql(&endpoint, &["INSERT INTO transfer VALUES (-1, 0)"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut alone = transfer(Scope::None);
    alone.name = "alone".into();
    let mut taking = statement("SELECT balance FROM account WHERE id = ?", &["from"]);
    taking.take = vec!["found".into()];
    // A key that is there already stops none of the others, which are each for itself; the last goes by itself.
    let twice = statement("INSERT INTO transfer VALUES (-1, 1)", &[]);
    alone.statements.insert(1, twice);
    alone.statements.push(taking);
    let both = vec![transfer(Scope::ReadWrite), alone];
    let mut request = driving(endpoint.clone(), directory.path(), both);
    request.pipelining = true;
    request.drive.retries = 0;
    let driven = run(&request);
    let (whole, alone) = (outcomes(&driven), driven.transactions["alone"]);
    assert_eq!(codes(&driven), [(S::DUPLICATE.0, alone.failed)].into());
    assert!(whole.committed > 100 && alone.failed > 100 && whole.failed == 0);
    assert_eq!(
        assert_whole(&endpoint),
        1 + whole.committed + alone.failed,
        "what is for itself has stayed"
    );
    server.forget("mixed");
}
