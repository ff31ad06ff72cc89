//! What a drive must have changed, whatever the system: every column that the specification updates.

use std::collections::BTreeMap;

use fairtrial_protocol::load::{Driven, Endpoint};

use super::number;

/// One number per column that some transaction updates.
const COLUMNS: [(&str, &str); 17] = [
    ("w_ytd", "SELECT ROUND(SUM(w_ytd) * 100) FROM warehouse"),
    ("d_ytd", "SELECT ROUND(SUM(d_ytd) * 100) FROM district"),
    ("d_next_o_id", "SELECT SUM(d_next_o_id) FROM district"),
    (
        "c_balance",
        "SELECT ROUND(SUM(c_balance) * 100) FROM customer",
    ),
    (
        "c_ytd_payment",
        "SELECT ROUND(SUM(c_ytd_payment) * 100) FROM customer",
    ),
    ("c_payment_cnt", "SELECT SUM(c_payment_cnt) FROM customer"),
    ("c_delivery_cnt", "SELECT SUM(c_delivery_cnt) FROM customer"),
    (
        "c_data",
        "SELECT COUNT(*) FROM customer WHERE c_data LIKE '%|%'",
    ),
    ("h_amount", "SELECT COUNT(*) FROM history"),
    ("o_id", "SELECT COUNT(*) FROM orders"),
    ("o_carrier_id", "SELECT COUNT(o_carrier_id) FROM orders"),
    ("no_o_id", "SELECT SUM(no_o_id) FROM new_order"),
    (
        "ol_delivery_d",
        "SELECT COUNT(ol_delivery_d) FROM order_line",
    ),
    ("s_quantity", "SELECT SUM(s_quantity) FROM stock"),
    ("s_ytd", "SELECT SUM(s_ytd) FROM stock"),
    ("s_order_cnt", "SELECT SUM(s_order_cnt) FROM stock"),
    ("s_remote_cnt", "SELECT SUM(s_remote_cnt) FROM stock"),
];

/// The columns as they stand.
pub fn look(endpoint: &Endpoint) -> BTreeMap<&'static str, i64> {
    COLUMNS
        .iter()
        .map(|(column, query)| (*column, number(endpoint, query)))
        .collect()
}

/// Fails unless each column changed since `before`, and by what the drive says it did.
pub fn assert_changed(endpoint: &Endpoint, before: &BTreeMap<&'static str, i64>) {
    let after = look(endpoint);
    for (column, _) in COLUMNS {
        assert_ne!(after[column], before[column], "{column} is never updated");
    }
    let lines = "order_line WHERE ol_o_id > 3000";
    let sum = |what: &str| number(endpoint, &format!("SELECT {what} FROM {lines}"));
    assert_eq!(
        after["s_ytd"],
        sum("SUM(ol_quantity)"),
        "S_YTD is what was ordered"
    );
    assert_eq!(
        after["s_order_cnt"],
        sum("COUNT(*)"),
        "S_ORDER_CNT is the number of lines"
    );
    let remote = number(
        endpoint,
        &format!("SELECT COUNT(*) FROM {lines} AND ol_supply_w_id <> ol_w_id"),
    );
    assert_eq!(
        after["s_remote_cnt"], remote,
        "S_REMOTE_CNT is the number of remote lines"
    );
}

/// Fails unless the database grew by what the result says was committed. Only for drives without transactions outside
/// the window: one user, no ramp-up.
pub fn assert_counts(endpoint: &Endpoint, before: &BTreeMap<&'static str, i64>, driven: &Driven) {
    let after = look(endpoint);
    let grown = |column| u64::try_from(after[column] - before[column]).expect("it grew");
    assert_eq!(grown("o_id"), driven.transactions["new_order"].committed);
    assert_eq!(grown("h_amount"), driven.transactions["payment"].committed);
    assert_eq!(grown("o_carrier_id"), driven.drawn["delivered_orders"]);
    assert_eq!(
        driven.drawn["new_order_rollback"],
        driven.transactions["new_order"].rolled_back
    );
}
