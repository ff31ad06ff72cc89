//! TPC-C in stored procedures does what it does statement by statement; skipped, and said so, where no MariaDB is
//! installed.

mod support;

use std::path::Path;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::Endpoint;
use support::mariadb::Server;
use support::{assert_consistent, completed, drive, effects, load, parameters, sqlite};

/// Everything a drive writes but the times at which it did.
const TABLES: [(&str, &str); 9] = [
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
        "o_w_id, o_d_id, o_id, o_c_id, IFNULL(o_carrier_id, 0), o_ol_cnt, o_all_local",
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

/// Rows and a sum over hashes of each, by table: the same for the same rows in any order.
fn contents(endpoint: &Endpoint) -> Vec<String> {
    TABLES
        .iter()
        .map(|(table, columns)| {
            let query = format!(
                "SELECT CONCAT(COUNT(*), ' ', SUM(CAST(CONV(LEFT(MD5(CONCAT_WS('|', {columns})), 12), 16, 10) AS \
                 DECIMAL(20)))) FROM {table}"
            );
            let rows = support::sql(endpoint, &[&query]);
            format!("{table} {}", rows[0].rows[0][0].clone().expect("a value"))
        })
        .collect()
}

fn driven(endpoint: &Endpoint, directory: &Path, procedures: bool, users: u32) -> Vec<String> {
    load(endpoint.clone(), 2, 2);
    let before = effects::look(endpoint);
    let mut asked = parameters(endpoint.clone(), directory);
    (asked.procedures, asked.drive.virtual_users) = (procedures, users);
    asked.drive.transactions = Some(1_000);
    let driven = drive(&asked);
    assert_eq!(completed(&driven), 1_000, "{:?}", driven.errors);
    if users == 1 {
        effects::assert_counts(endpoint, &before, &driven);
    }
    effects::assert_changed(endpoint, &before);
    assert_consistent(endpoint);
    contents(endpoint)
}

#[test]
fn one_user_leaves_the_same_database_either_way_and_eight_a_consistent_one() {
    let Some(server) = Server::start() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let by_statements = driven(&server.endpoint("statements"), directory.path(), false, 1);
    let by_procedures = driven(&server.endpoint("procedures"), directory.path(), true, 1);
    assert_eq!(by_procedures, by_statements);
    driven(&server.endpoint("procedures"), directory.path(), true, 8);
}

#[test]
fn sqlite_has_no_procedures_and_says_so_before_anything_starts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut asked = parameters(sqlite(&directory.path().join("none.db")), directory.path());
    asked.procedures = true;
    let error = fairtrial_load::drive(&asked, &mut Vec::new()).expect_err("refused");
    assert!(
        matches!(
            error,
            LoadError::Parameter {
                field: "procedures",
                ..
            }
        ),
        "{error:?}"
    );
}
