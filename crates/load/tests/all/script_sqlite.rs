//! A user's script on embedded SQLite: what it changes, what it takes from rows, what it counts and what it refuses.

use crate::support::script::{CUSTOMERS, driving, load, loading, order, pay, preflight, statement};
use crate::support::{number, sqlite};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Driven, Endpoint};
use fairtrial_protocol::script::{ScriptDrive, ScriptTransaction};
use tempfile::TempDir;

fn loaded() -> (TempDir, Endpoint) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("shop.db"));
    load(&loading(endpoint.clone(), 1));
    (directory, endpoint)
}

fn drive(parameters: &ScriptDrive) -> Driven {
    fairtrial_load::drive_script(parameters, &mut Vec::new()).expect("the drive ends")
}

#[test]
fn rows_are_filled_as_the_script_says_and_the_same_for_equal_seeds() {
    let (_directory, endpoint) = loaded();
    let customers = i64::from(CUSTOMERS);
    assert_eq!(
        number(&endpoint, "SELECT COUNT(*) FROM customer"),
        customers
    );
    assert_eq!(number(&endpoint, "SELECT MAX(id) FROM customer"), customers);
    let cheap = "SELECT COUNT(*) FROM customer WHERE balance < 10 OR balance > 20";
    assert_eq!(number(&endpoint, cheap), 0, "decimals have their point");
    assert!(number(&endpoint, "SELECT COUNT(DISTINCT balance) FROM customer") > 100);
    assert_eq!(
        number(&endpoint, "SELECT COUNT(*) FROM computed"),
        customers,
        "finish"
    );
    let again = |seed| load(&loading(endpoint.clone(), seed)).content_sha256;
    assert_eq!(again(1), again(1));
    assert_ne!(again(1), again(2));
}

#[test]
fn a_statement_of_the_setup_that_fails_ends_the_load_whatever_its_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = loading(sqlite(&directory.path().join("shop.db")), 1);
    for wrong in [
        "CREATE TABLE computed (id INTEGER)",
        "INSERT INTO computed SELECT id, balance FROM customer",
    ] {
        request.finish.push(wrong.into());
        let error = fairtrial_load::load_script(&request, &mut Vec::new()).expect_err(wrong);
        assert!(matches!(error, LoadError::Statement { .. }), "{error}");
        request.finish.pop();
    }
}

#[test]
fn transactions_commit_roll_back_and_use_what_they_read() {
    let (directory, endpoint) = loaded();
    let before = number(&endpoint, "SELECT SUM(visits) FROM customer");
    let mut request = driving(
        endpoint.clone(),
        directory.path(),
        vec![order(3.0), pay(1.0)],
    );
    request.drive.virtual_users = 3;
    let driven = drive(&request);
    assert!(driven.errors.is_empty(), "{:?}", driven.errors);
    let (orders, pays) = (driven.transactions["order"], driven.transactions["pay"]);
    assert_eq!(orders.committed + orders.rolled_back + pays.committed, 400);
    assert!(orders.rolled_back > 0, "a fifth of them");
    assert_eq!(orders.failed + pays.failed + pays.rolled_back, 0);
    // Whoever was done after the window is in the tables and in `drawn` too.
    let kept = driven.drawn["order"] - driven.drawn["order.rollback"];
    let purchases = number(&endpoint, "SELECT COUNT(*) FROM purchase");
    assert_eq!(purchases, i64::try_from(kept).expect("few"));
    let visits = number(&endpoint, "SELECT SUM(visits) FROM customer") - before;
    assert_eq!(
        visits,
        i64::try_from(kept).expect("few"),
        "rolled back with the rest"
    );
    let wrong = "SELECT COUNT(*) FROM purchase JOIN customer ON customer.id = purchase.customer \
                 WHERE purchase.name <> customer.name";
    assert_eq!(
        number(&endpoint, wrong),
        0,
        "the name was taken from the customer's row"
    );
    assert_eq!(
        orders.statements,
        5 * (orders.committed + orders.rolled_back)
    );
    assert_eq!(pays.statements, pays.committed, "each statement for itself");
}

#[test]
fn a_seed_determines_everything() {
    let content = |seed| {
        let (directory, endpoint) = loaded();
        let mut request = driving(
            endpoint.clone(),
            directory.path(),
            vec![order(3.0), pay(1.0)],
        );
        request.drive.seed = seed;
        let drawn = drive(&request).drawn;
        (
            drawn,
            number(&endpoint, "SELECT SUM(id * customer) FROM purchase"),
        )
    };
    assert_eq!(content(4), content(4));
    assert_ne!(content(4), content(5));
}

#[test]
fn another_number_of_rows_than_expected_fails_the_transaction_by_a_code_of_its_own() {
    let (directory, endpoint) = loaded();
    let mut wrong = pay(1.0);
    wrong.statements = vec![statement("SELECT id FROM customer WHERE id < 0", &[])];
    wrong.parameters.clear();
    wrong.statements[0].rows = Some(1);
    let mut request = driving(endpoint, directory.path(), vec![order(1.0), wrong]);
    request.drive.transactions = Some(40);
    let driven = drive(&request);
    assert!(driven.transactions["order"].committed > 0);
    assert!(driven.transactions["pay"].failed > 0);
    assert_eq!(driven.errors.len(), 1);
    let error = &driven.errors[0];
    assert_eq!(
        (error.transaction.as_str(), error.code.as_str()),
        ("pay", "rows_differ")
    );
    assert!(
        error.message.starts_with("0 rows instead of 1: SELECT id"),
        "{}",
        error.message
    );
}

#[test]
fn a_value_of_a_row_that_is_not_there_fails_the_transaction() {
    let (directory, endpoint) = loaded();
    let mut wrong = order(1.0);
    wrong.statements[0].sql = "SELECT name FROM customer WHERE id = -?".into();
    wrong.statements[0].rows = None;
    let mut request = driving(endpoint.clone(), directory.path(), vec![wrong]);
    request.drive.transactions = Some(20);
    let driven = drive(&request);
    let orders = driven.transactions["order"];
    assert_eq!((orders.committed, orders.failed), (0, 20));
    assert!(
        driven.errors[0]
            .message
            .starts_with("no row to take values from")
    );
    assert_eq!(number(&endpoint, "SELECT COUNT(*) FROM purchase"), 0);
}

#[test]
fn every_statement_the_system_refuses_is_named_before_anything_runs() {
    let (directory, endpoint) = loaded();
    let (mut first, mut second) = (order(1.0), pay(1.0));
    first.statements[1].sql = "UPDATE customers SET visits = visits + 1 WHERE id = ?".into();
    second.statements[0].sql = "UPDAT customer SET balance = balance + ? WHERE id = ?".into();
    let transactions: Vec<ScriptTransaction> = vec![first, second];
    let refused = preflight(endpoint.clone(), transactions.clone()).refused;
    let named: Vec<_> = refused
        .iter()
        .map(|each| {
            (
                each.transaction.as_str(),
                each.statement,
                each.code.as_str(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [("order", 2, "SQLITE_ERROR"), ("pay", 1, "SQLITE_ERROR")]
    );
    assert!(refused[0].message.contains("no such table: customers"));
    assert!(refused[1].message.contains("syntax error"));
    let request = driving(endpoint.clone(), directory.path(), transactions);
    let error = fairtrial_load::drive_script(&request, &mut Vec::new()).expect_err("refused");
    assert!(
        matches!(&error, LoadError::Statement { doing, .. } if doing == "preparing statement 2 of order"),
        "{error}"
    );
    assert!(
        preflight(endpoint, vec![order(1.0), pay(1.0)])
            .refused
            .is_empty()
    );
}

#[test]
fn more_columns_than_a_row_has_cannot_be_taken() {
    let (_directory, endpoint) = loaded();
    let mut wrong = order(1.0);
    wrong.statements[0].take.push("other".into());
    let refused = preflight(endpoint, vec![wrong]).refused;
    assert_eq!(
        refused[0].message,
        "2 columns are to be taken from rows of 1"
    );
}
