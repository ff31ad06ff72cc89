//! What TPC-C's tables hold after a drive, in a form that can be compared.

use fairtrial_protocol::load::{Driven, Endpoint};

use super::{assert_consistent, completed, drive, effects, parameters};

/// Everything a drive writes but the times at which it did.
pub const TABLES: [(&str, &str); 9] = [
    ("warehouse", "w_id, w_ytd"),
    ("district", "d_w_id, d_id, d_ytd, d_next_o_id"),
    (
        "customer",
        "c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data",
    ),
    (
        "history",
        "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_amount, h_data",
    ),
    (
        "orders",
        "o_w_id, o_d_id, o_id, o_c_id, COALESCE(o_carrier_id, 0), o_ol_cnt, o_all_local",
    ),
    ("new_order", "no_w_id, no_d_id, no_o_id"),
    (
        "order_line",
        "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info, \
         ol_delivery_d IS NULL",
    ),
    (
        "stock",
        "s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt",
    ),
    ("item", "i_id, i_price"),
];

/// Rows and a sum over hashes of each, by table: the same for the same rows in any order. `hash` is the system's SQL
/// for a number made of `ROW_TEXT`.
pub fn contents(hash: &str, endpoint: &Endpoint) -> Vec<String> {
    TABLES
        .iter()
        .map(|(table, columns)| {
            let number = hash.replace("ROW_TEXT", &format!("CONCAT_WS('|', {columns})"));
            let query = format!("SELECT COUNT(*), SUM({number}) FROM {table}");
            let rows = super::sql(endpoint, &[&query]);
            format!("{table} {:?}", rows[0].rows)
        })
        .collect()
}

/// Drives one user on two warehouses, and gives what the tables hold then.
pub fn left(hash: &str, endpoint: &Endpoint, procedures: bool) -> Vec<String> {
    driven(endpoint, procedures, 1);
    contents(hash, endpoint)
}

/// Drives on two warehouses one user's procedures and then eight users', and fails unless all transactions, and what
/// they leave, are as they must be.
pub fn assert_procedures_leave_it_consistent(endpoint: &Endpoint) {
    for users in [1, 8] {
        let before = effects::look(endpoint);
        let driven = driven(endpoint, true, users);
        if users == 1 {
            effects::assert_counts(endpoint, &before, &driven);
        }
        effects::assert_changed(endpoint, &before);
        assert_consistent(endpoint);
    }
}

/// Transactions of a drive.
const DRIVEN: u64 = 500;

/// Drives transactions, all of which must complete; one call is sent for each that calls a procedure.
fn driven(endpoint: &Endpoint, procedures: bool, users: u32) -> Driven {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = parameters(endpoint.clone(), directory.path());
    (request.procedures, request.drive.virtual_users) = (procedures, users);
    request.drive.transactions = Some(DRIVEN);
    let driven = drive(&request);
    assert_eq!(completed(&driven), DRIVEN, "{:?}", driven.errors);
    if procedures {
        let sent: u64 = driven
            .transactions
            .values()
            .map(|outcomes| outcomes.statements)
            .sum();
        let calls: u64 = driven
            .transactions
            .values()
            .map(|outcomes| outcomes.retried)
            .sum();
        assert_eq!(sent, DRIVEN + calls, "one call each");
    }
    driven
}
