//! Loading into a real SQLite database: what is in it, and the hash that says so.

use std::collections::BTreeMap;

use crate::support::{SEED, load, number, sqlite, sqlite_copy};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, TpccLoad};

#[test]
fn the_hash_made_while_loading_is_the_hash_of_what_is_read_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("t.db"));
    let loaded = load(endpoint.clone(), 1, 4);
    let read_back =
        || fairtrial_load::content_sha256(&endpoint, 1).expect("the content can be read");
    assert_eq!(read_back(), loaded.content_sha256);
    crate::support::sql(
        &endpoint,
        &[
            "UPDATE order_line SET ol_dist_info = 'x' WHERE ol_o_id = 17 AND ol_number = 1 AND ol_d_id = 3",
        ],
    );
    assert_ne!(
        read_back(),
        loaded.content_sha256,
        "one changed cell changes the hash"
    );
    let rows: Vec<(&str, u64)> = loaded
        .rows
        .iter()
        .map(|(table, rows)| (table.as_str(), *rows))
        .collect();
    let lines =
        u64::try_from(number(&endpoint, "SELECT COUNT(*) FROM order_line")).expect("a count");
    let expected = [
        ("customer", 30_000),
        ("district", 10),
        ("history", 30_000),
        ("item", 100_000),
        ("new_order", 9_000),
        ("order_line", lines),
        ("orders", 30_000),
        ("stock", 100_000),
        ("warehouse", 1),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_population_is_that_of_clause_4_3_3_1() {
    let copy = sqlite_copy();
    let count =
        |condition: &str| number(&copy.endpoint, &format!("SELECT COUNT(*) FROM {condition}"));
    let near = |count: i64, mean: i64, deviation: i64| {
        assert!(
            (count - mean).abs() <= 4 * deviation,
            "{count} instead of about {mean}"
        );
    };
    // Binomial standard deviations, rounded up.
    near(count("item WHERE i_data LIKE '%ORIGINAL%'"), 10_000, 95);
    near(count("stock WHERE s_data LIKE '%ORIGINAL%'"), 20_000, 135);
    near(count("customer WHERE c_credit = 'BC'"), 6_000, 74);
    assert_eq!(
        count("customer WHERE c_balance = -1000 AND c_ytd_payment = 1000 AND c_payment_cnt = 1"),
        60_000
    );
    assert_eq!(
        count("(SELECT DISTINCT o_w_id, o_d_id, o_c_id FROM orders)"),
        60_000,
        "each customer ordered once"
    );
    assert_eq!(
        count("orders WHERE (o_carrier_id IS NULL) = (o_id >= 2101)"),
        60_000
    );
    assert_eq!(
        count("order_line WHERE (ol_delivery_d IS NULL) = (ol_o_id >= 2101)"),
        count("order_line")
    );
    assert_eq!(
        count("order_line WHERE (ol_amount = 0) = (ol_o_id < 2101)"),
        count("order_line")
    );
    assert_eq!(
        count(
            "(SELECT c_last FROM customer WHERE c_id <= 1000 AND c_d_id = 1 AND c_w_id = 2 GROUP BY 1)"
        ),
        1_000
    );
    assert_eq!(
        count("customer WHERE LENGTH(c_data) BETWEEN 300 AND 500 AND c_zip LIKE '____11111'"),
        60_000
    );
    assert_eq!(
        count("stock WHERE s_quantity BETWEEN 10 AND 100 AND LENGTH(s_dist_10) = 24"),
        200_000
    );
}

#[test]
fn nonsense_is_refused_before_anything_is_touched() {
    let endpoint = || Endpoint::Sqlite {
        path: "/nowhere/t.db".into(),
        pragmas: BTreeMap::new(),
        busy_timeout_ms: 0,
    };
    let attempt = |warehouses, threads| {
        let parameters = TpccLoad {
            endpoint: endpoint(),
            warehouses,
            seed: SEED,
            threads,
        };
        fairtrial_load::load(&parameters, &mut Vec::new()).expect_err("refused")
    };
    assert!(matches!(
        attempt(0, 1),
        LoadError::Parameter {
            field: "warehouses",
            ..
        }
    ));
    assert!(matches!(
        attempt(1, 0),
        LoadError::Parameter {
            field: "threads",
            ..
        }
    ));
    let missing = attempt(1, 1);
    assert!(
        !missing.hint().is_empty() && matches!(missing, LoadError::Statement { .. }),
        "{missing:?}"
    );
}
