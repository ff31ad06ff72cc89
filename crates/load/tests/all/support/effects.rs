//! What a drive must have changed, whatever the system: every column that the specification updates.

use std::collections::BTreeMap;

use fairtrial_protocol::load::{Driven, Endpoint};

use super::numbers;

/// One number per column that some transaction updates, by table: each is read once.
const COLUMNS: [(&str, &[(&str, &str)]); 8] = [
    ("warehouse", &[("w_ytd", "ROUND(SUM(w_ytd) * 100)")]),
    (
        "district",
        &[
            ("d_ytd", "ROUND(SUM(d_ytd) * 100)"),
            ("d_next_o_id", "SUM(d_next_o_id)"),
        ],
    ),
    (
        "customer",
        &[
            ("c_balance", "ROUND(SUM(c_balance) * 100)"),
            ("c_ytd_payment", "ROUND(SUM(c_ytd_payment) * 100)"),
            ("c_payment_cnt", "SUM(c_payment_cnt)"),
            ("c_delivery_cnt", "SUM(c_delivery_cnt)"),
            ("c_data", "COUNT(CASE WHEN c_data LIKE '%|%' THEN 1 END)"),
        ],
    ),
    ("history", &[("h_amount", "COUNT(*)")]),
    (
        "orders",
        &[
            ("o_id", "COUNT(*)"),
            ("o_carrier_id", "COUNT(o_carrier_id)"),
        ],
    ),
    ("new_order", &[("no_o_id", "SUM(no_o_id)")]),
    ("order_line", &[("ol_delivery_d", "COUNT(ol_delivery_d)")]),
    (
        "stock",
        &[
            ("s_quantity", "SUM(s_quantity)"),
            ("s_ytd", "SUM(s_ytd)"),
            ("s_order_cnt", "SUM(s_order_cnt)"),
            ("s_remote_cnt", "SUM(s_remote_cnt)"),
        ],
    ),
];

/// The columns as they stand.
pub fn look(endpoint: &Endpoint) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for (table, columns) in COLUMNS {
        let sums: Vec<_> = columns.iter().map(|(_, sum)| *sum).collect();
        let query = format!("SELECT {} FROM {table}", sums.join(", "));
        let names = columns.iter().map(|(column, _)| *column);
        counts.extend(names.zip(numbers(endpoint, &query)));
    }
    counts
}

/// Fails unless each column changed since `before`, and by what the drive says it did.
pub fn assert_changed(endpoint: &Endpoint, before: &BTreeMap<&'static str, i64>) {
    let after = look(endpoint);
    for (column, sum) in &after {
        assert_ne!(*sum, before[column], "{column} is never updated");
    }
    let lines = "SELECT SUM(ol_quantity), COUNT(*), COUNT(CASE WHEN ol_supply_w_id <> ol_w_id THEN 1 END) \
        FROM order_line WHERE ol_o_id > 3000";
    let stock = ["s_ytd", "s_order_cnt", "s_remote_cnt"].map(|column| after[column]);
    let ordered = numbers(endpoint, lines);
    assert_eq!(
        stock.as_slice(),
        ordered,
        "S_YTD is what was ordered, S_ORDER_CNT the number of lines, S_REMOTE_CNT that of remote ones"
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
