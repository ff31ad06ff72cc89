//! Each condition, on a database where one row violates it.

use fairtrial_protocol::load::TpccCheck;

use super::*;
use crate::tests::database::Tiny;

fn checked(tiny: &Tiny) -> Checked {
    check(&TpccCheck {
        endpoint: tiny.endpoint(),
        warehouses: 1,
    })
    .expect("the conditions can be checked")
}

/// Conditions violated: number, violating rows, and the first of them.
fn violated(tiny: &Tiny) -> Vec<(u32, u64, String)> {
    let conditions = (1..).zip(checked(tiny).conditions);
    conditions
        .filter(|(_, condition)| condition.violations > 0)
        .map(|(number, condition)| {
            assert_eq!(condition.clause, format!("3.3.2.{number}"));
            (
                number,
                condition.violations,
                condition.examples.first().cloned().unwrap_or_default(),
            )
        })
        .collect()
}

/// Fails unless the change leads to exactly these violations, of one row each.
fn assert_breaks(changes: &[&str], expected: &[(u32, &str)]) {
    let tiny = Tiny::new();
    for change in changes {
        tiny.run(change);
    }
    let expected: Vec<(u32, u64, String)> = expected
        .iter()
        .map(|(number, example)| (*number, 1, (*example).to_owned()))
        .collect();
    assert_eq!(violated(&tiny), expected, "{changes:?}");
}

#[test]
fn a_database_in_order_violates_nothing() {
    assert_eq!(violated(&Tiny::new()), []);
    assert_eq!(checked(&Tiny::new()).conditions.len(), 12);
}

#[test]
fn condition_1_compares_the_warehouse_with_its_districts() {
    // A payment to a district that does not exist: the warehouse agrees with its history, and not with its districts.
    assert_breaks(
        &[
            "UPDATE warehouse SET w_ytd = 3001",
            "INSERT INTO history VALUES (9, 9, 1, 9, 1, '2026-01-01 00:00:00', 1, '')",
        ],
        &[(1, "w_id=1 w_ytd=30.01 sum_d_ytd=30.00")],
    );
}

#[test]
fn condition_2_compares_the_next_order_with_the_last_ones() {
    assert_breaks(
        &["UPDATE district SET d_next_o_id = 5 WHERE d_id = 2"],
        &[(2, "d_w_id=1 d_id=2 d_next_o_id=5 max_o_id=2 max_no_o_id=2")],
    );
}

#[test]
fn condition_2_accepts_a_district_where_everything_is_delivered() {
    let tiny = Tiny::new();
    tiny.run("DELETE FROM new_order WHERE no_d_id = 1");
    assert!(
        violated(&tiny).iter().all(|(number, ..)| *number != 2),
        "no new order, nothing to compare"
    );
}

#[test]
fn condition_3_finds_a_gap_among_new_orders() {
    // Order 4 is new, order 3 is delivered: the numbers of new orders have a gap.
    assert_breaks(
        &[
            "INSERT INTO orders SELECT 3, o_d_id, o_w_id, o_c_id, o_entry_d, 7, 1, 1 FROM orders WHERE o_id = 2 AND o_d_id = 1",
            "INSERT INTO orders SELECT 4, o_d_id, o_w_id, o_c_id, o_entry_d, NULL, 1, 1 FROM orders WHERE o_id = 2 AND o_d_id = 1",
            "INSERT INTO order_line VALUES (3, 1, 1, 1, 1, 1, '2026-01-02 00:00:00', 5, 0, ''), (4, 1, 1, 1, 1, 1, NULL, 5, 9, '')",
            "INSERT INTO new_order VALUES (4, 1, 1)",
            "UPDATE district SET d_next_o_id = 5 WHERE d_id = 1",
            "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 1",
        ],
        &[(
            3,
            "no_w_id=1 no_d_id=1 min_no_o_id=2 max_no_o_id=4 new_orders=2",
        )],
    );
}

#[test]
fn conditions_4_and_6_count_order_lines_by_district_and_by_order() {
    assert_breaks(
        &["UPDATE orders SET o_ol_cnt = 3 WHERE o_id = 1 AND o_d_id = 2"],
        &[
            (4, "d_w_id=1 d_id=2 sum_o_ol_cnt=4 order_lines=3"),
            (6, "o_w_id=1 o_d_id=2 o_id=1 o_ol_cnt=3 order_lines=2"),
        ],
    );
    assert_breaks(
        &["INSERT INTO order_line VALUES (77, 1, 1, 1, 1, 1, NULL, 5, 9, '')"],
        &[
            (4, "d_w_id=1 d_id=1 sum_o_ol_cnt=3 order_lines=4"),
            (
                7,
                "ol_w_id=1 ol_d_id=1 ol_o_id=77 ol_number=1 ol_delivery_d=NULL o_carrier_id=NULL",
            ),
        ],
    );
}

#[test]
fn condition_6_finds_two_wrong_orders_whose_district_adds_up() {
    let tiny = Tiny::new();
    tiny.run("UPDATE orders SET o_ol_cnt = 3 - o_ol_cnt WHERE o_d_id = 1");
    let expected = "o_w_id=1 o_d_id=1 o_id=1 o_ol_cnt=1 order_lines=2";
    assert_eq!(
        violated(&tiny),
        [(6, 2, expected.to_owned())],
        "and condition 4 holds"
    );
}

#[test]
fn condition_5_compares_carriers_with_new_orders_in_both_directions() {
    assert_breaks(
        &[
            "UPDATE orders SET o_carrier_id = 4 WHERE o_id = 2 AND o_d_id = 1",
            "UPDATE order_line SET ol_delivery_d = '2026-01-02 00:00:00', ol_amount = 0 WHERE ol_o_id = 2 AND ol_d_id = 1",
        ],
        &[(5, "o_w_id=1 o_d_id=1 o_id=2 o_carrier_id=4 no_o_id=2")],
    );
    assert_breaks(
        &[
            "INSERT INTO new_order VALUES (3, 2, 1)",
            "UPDATE customer SET c_delivery_cnt = c_delivery_cnt - 1 WHERE c_d_id = 2",
        ],
        &[
            (2, "d_w_id=1 d_id=2 d_next_o_id=3 max_o_id=2 max_no_o_id=3"),
            (5, "o_w_id=1 o_d_id=2 o_id=NULL o_carrier_id=NULL no_o_id=3"),
        ],
    );
}

#[test]
fn condition_7_compares_delivery_times_with_carriers() {
    assert_breaks(
        &[
            "UPDATE order_line SET ol_delivery_d = '2026-01-02 00:00:00', ol_amount = 0 WHERE ol_o_id = 2 AND ol_d_id = 2",
        ],
        &[(
            7,
            "ol_w_id=1 ol_d_id=2 ol_o_id=2 ol_number=1 ol_delivery_d=2026-01-02 00:00:00 o_carrier_id=NULL",
        )],
    );
}

#[test]
fn conditions_8_and_9_compare_balances_with_history() {
    // Money moves from one district's history to the other's: the warehouse's sum stands.
    let tiny = Tiny::new();
    tiny.run("UPDATE history SET h_d_id = 1 WHERE h_d_id = 2");
    let first = "d_w_id=1 d_id=1 d_ytd=10.00 sum_h_amount=30.00";
    assert_eq!(violated(&tiny), [(9, 2, first.to_owned())]);
    assert_breaks(
        &["INSERT INTO history VALUES (9, 9, 1, 9, 1, '2026-01-01 00:00:00', 5, '')"],
        &[(8, "w_id=1 w_ytd=30.00 sum_h_amount=30.05")],
    );
}

#[test]
fn conditions_10_and_12_compare_customers_with_deliveries_and_payments() {
    assert_breaks(
        &[
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1",
        ],
        &[(
            10,
            "c_w_id=1 c_d_id=1 c_id=1 c_balance=-5.99 delivered=4.00 paid=10.00",
        )],
    );
    assert_breaks(
        &["UPDATE customer SET c_ytd_payment = 1999 WHERE c_d_id = 2"],
        &[(
            12,
            "c_w_id=1 c_d_id=2 c_id=1 c_balance=-16.00 c_ytd_payment=19.99 delivered=4.00",
        )],
    );
}

#[test]
fn condition_11_counts_orders_new_orders_and_deliveries() {
    assert_breaks(
        &["UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 2"],
        &[(11, "d_w_id=1 d_id=2 orders=2 new_orders=1 deliveries=-2098")],
    );
}

#[test]
fn exactly_twenty_violations_are_all_shown_and_of_more_twenty() {
    for (customers, shown) in [(19, 19), (20, 20), (21, 20), (45, 20)] {
        let tiny = Tiny::new();
        for customer in 2..=customers + 1 {
            tiny.run(&format!(
                "INSERT INTO customer SELECT {customer}, c_d_id, c_w_id, c_first, c_middle, c_last, '', '', '', '', '', '', \
                 c_since, c_credit, 0, 0, 5, -5, 0, 0, '' FROM customer WHERE c_d_id = 1 AND c_id = 1"
            ));
        }
        let tenth = &checked(&tiny).conditions[9];
        assert_eq!((tenth.violations, tenth.examples.len()), (customers, shown));
    }
}

#[test]
fn another_number_of_warehouses_is_refused() {
    let tiny = Tiny::new();
    let request = TpccCheck {
        endpoint: tiny.endpoint(),
        warehouses: 4,
    };
    let refused = check(&request).expect_err("refused");
    assert!(
        matches!(
            refused,
            LoadError::Scale {
                expected: 4,
                count: 1,
                ..
            }
        ),
        "{refused:?}"
    );
}

#[test]
fn a_table_that_is_missing_names_the_condition_that_needs_it() {
    let tiny = Tiny::new();
    tiny.run("DROP TABLE history");
    let request = TpccCheck {
        endpoint: tiny.endpoint(),
        warehouses: 1,
    };
    let failed = check(&request).expect_err("it cannot be checked");
    assert_eq!(failed.to_string(), "checking condition 3.3.2.8 failed");
    let LoadError::Statement { source, .. } = failed else {
        panic!("{failed:?}")
    };
    assert!(source.message.contains("history"), "{source}");
    assert_eq!(source.code, "SQLITE_ERROR");
}
