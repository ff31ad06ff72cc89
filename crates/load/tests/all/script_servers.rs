//! A user's script on real, private servers; skipped, and said so, where none is installed.

use crate::support::number;
use crate::support::script::{driving, load, loading, order, pay, preflight, statement};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::script::ScriptTransaction;

/// Reads a balance and what it is to become, and writes it if the balance is exactly the same still.
fn exact_pay() -> ScriptTransaction {
    let mut pay = pay(1.0);
    let mut read = statement(
        "SELECT balance, balance + ? FROM customer WHERE id = ?",
        &["amount", "customer"],
    );
    read.rows = Some(1);
    read.take = vec!["before".into(), "after".into()];
    let mut write = statement(
        "UPDATE customer SET balance = ? WHERE id = ? AND balance = ?",
        &["after", "customer", "before"],
    );
    write.rows = Some(1);
    pay.statements = vec![read, write];
    pay
}

fn decimals_are_read_and_written_exactly(endpoint: &Endpoint) {
    let loaded = load(&loading(endpoint.clone(), 1));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = crate::support::sqlite(&directory.path().join("shop.db"));
    assert_eq!(
        loaded,
        load(&loading(embedded, 1)),
        "the same rows as on SQLite"
    );
    let transactions = vec![order(1.0), exact_pay()];
    let request = driving(endpoint.clone(), directory.path(), transactions);
    let driven = fairtrial_load::drive_script(&request, &mut Vec::new()).expect("the drive ends");
    assert!(driven.errors.is_empty(), "{:?}", driven.errors);
    assert!(driven.transactions["pay"].committed > 100);
    let kept = driven.drawn["order"] - driven.drawn["order.rollback"];
    let purchases = number(endpoint, "SELECT COUNT(*) FROM purchase");
    assert_eq!(purchases, i64::try_from(kept).expect("few"));
}

fn bytes_are_not_taken_for_text(endpoint: &Endpoint) {
    let mut read = statement(
        "SELECT UNHEX('41FF') FROM customer WHERE id = ?",
        &["customer"],
    );
    read.take = vec!["bytes".into()];
    let write = statement("UPDATE customer SET visits = 7 WHERE name = ?", &["bytes"]);
    let mut taken = pay(1.0);
    taken.statements = vec![read, write];
    taken.parameters.truncate(1);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = driving(endpoint.clone(), directory.path(), vec![taken]);
    request.drive.transactions = Some(3);
    let driven = fairtrial_load::drive_script(&request, &mut Vec::new()).expect("the drive ends");
    assert_eq!(driven.transactions["pay"].failed, 3);
    let message = &driven.errors[0].message;
    assert!(message.contains("take HEX() of them"), "{message}");
}

#[test]
fn values_travel_in_the_types_that_postgresql_gives_them() {
    let server = crate::support::postgres::Server::start(
        "local all all trust\n",
        &["-c", "listen_addresses="],
    );
    let Some(server) = server else {
        return;
    };
    let endpoint = server.endpoint("script");
    decimals_are_read_and_written_exactly(&endpoint);
    let mut text = pay(1.0);
    text.statements[0].sql = "UPDATE customer SET visits = ? WHERE id = ?".into();
    let refused = preflight(endpoint, vec![text]).refused;
    assert!(
        refused[0].message.contains("an integer for parameter 1"),
        "{refused:?}"
    );
}

#[test]
fn values_travel_to_mariadb_and_what_it_refuses_is_in_its_own_words() {
    let Some(server) = crate::support::mariadb::Server::start() else {
        return;
    };
    let endpoint = server.endpoint("script");
    decimals_are_read_and_written_exactly(&endpoint);
    bytes_are_not_taken_for_text(&endpoint);
    let mut misspelt = order(1.0);
    misspelt.statements[1].sql = "UPDATE customer SET visit = visit + 1 WHERE id = ?".into();
    let refused = preflight(endpoint, vec![misspelt]).refused;
    assert_eq!(
        (refused[0].statement, refused[0].code.as_str()),
        (2, "1054")
    );
    assert!(
        refused[0].message.contains("Unknown column 'visit'"),
        "{refused:?}"
    );
}
