//! TPC-C in PL/pgSQL does what it does statement by statement; skipped, and said so, where no PostgreSQL is installed.

use crate::support::contents;
use crate::support::postgres::Server;
use crate::support::system::System as _;
use crate::support::{number, parameters, sql};

/// Twelve digits of a row's hash as a number.
const HASH: &str = "('x' || LEFT(MD5(ROW_TEXT), 12))::bit(48)::bigint";

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
fn a_row_that_is_missing_fails_its_transactions_and_nothing_of_them_stays() {
    let Some(server) = Server::common() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.with_warehouses("torn");
    sql(&endpoint, &["TRUNCATE stock"]);
    let mut asked = parameters(endpoint.clone(), directory.path());
    asked.procedures = true;
    asked.drive.transactions = Some(60);
    let driven = crate::support::drive(&asked);
    let ordered = &driven.transactions["new_order"];
    assert!(ordered.failed > 0 && ordered.committed == 0, "{ordered:?}");
    let codes = crate::support::codes(&driven);
    assert!(codes.keys().eq(["P0001"].iter()), "{codes:?}");
    assert!(
        driven
            .errors
            .iter()
            .all(|error| error.message.contains("a stock is missing"))
    );
    let left = "SELECT COUNT(*) FROM orders WHERE o_id > 3000";
    assert_eq!(number(&endpoint, left), 0);
    assert!(driven.transactions["payment"].committed > 0);
    server.forget("torn");
}
