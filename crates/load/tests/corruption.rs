//! Each of the twelve conditions finds the row that violates it.

mod support;

use support::{check, sql, sqlite_copy};

/// A corruption, the conditions it must break, and words that the example must contain.
const CORRUPTIONS: [(&str, &[&str], &str); 12] = [
    (
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
        &["1", "8"],
        "w_id=2 w_ytd=300000.01",
    ),
    (
        "UPDATE district SET d_next_o_id = 3005 WHERE d_w_id = 1 AND d_id = 4",
        &["2"],
        "d_id=4 d_next_o_id=3005",
    ),
    (
        "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 9 AND no_o_id = 2500",
        &["3", "5", "11"],
        "new_orders=899",
    ),
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 3",
        &["4", "6"],
        "o_id=3",
    ),
    (
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 2999",
        &["5", "7"],
        "o_id=2999",
    ),
    (
        "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 1",
        &["4", "6"],
        "o_id=7",
    ),
    (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 2",
        &["7"],
        "ol_o_id=7 ol_number=2",
    ),
    (
        "DELETE FROM history WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        &["8", "9", "10"],
        "c_id=5",
    ),
    (
        "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 2 AND d_id = 10",
        &["1", "9"],
        "d_id=10 d_ytd=29999.99",
    ),
    (
        "UPDATE customer SET c_balance = 0 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
        &["10", "12"],
        "c_id=8",
    ),
    (
        "UPDATE customer SET c_delivery_cnt = 1 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
        &["11"],
        "deliveries=1",
    ),
    (
        "UPDATE customer SET c_ytd_payment = 0 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 9",
        &["12"],
        "c_id=9",
    ),
];

#[test]
fn every_corruption_is_found_by_the_right_conditions_and_named() {
    let copy = sqlite_copy();
    for (corruption, broken, words) in CORRUPTIONS {
        let endpoint = support::sqlite(&copy.directory.path().join("one.db"));
        std::fs::copy(
            copy.directory.path().join("copy.db"),
            copy.directory.path().join("one.db"),
        )
        .expect("a copy");
        sql(&endpoint, &[corruption]);
        let checked = check(&endpoint);
        let violated: Vec<_> = checked
            .conditions
            .iter()
            .filter(|condition| condition.violations > 0)
            .collect();
        let clauses: Vec<_> = violated
            .iter()
            .map(|condition| condition.clause.trim_start_matches("3.3.2."))
            .collect();
        assert_eq!(clauses, broken, "{corruption}");
        let named = violated
            .iter()
            .flat_map(|condition| &condition.examples)
            .any(|example| example.contains(words));
        assert!(named, "{corruption}: {violated:#?}");
        std::fs::remove_file(copy.directory.path().join("one.db")).expect("removed");
    }
}

#[test]
fn many_violations_are_counted_and_twenty_are_shown() {
    let copy = sqlite_copy();
    sql(
        &copy.endpoint,
        &["UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 2"],
    );
    let checked = check(&copy.endpoint);
    let tenth = checked
        .conditions
        .iter()
        .find(|condition| condition.clause == "3.3.2.10")
        .expect("it is checked");
    assert_eq!((tenth.violations, tenth.examples.len()), (30_000, 20));
}
