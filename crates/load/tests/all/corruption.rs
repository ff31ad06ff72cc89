//! On loaded data, one changed row is found among millions; `src/check/tests.rs` shows each condition by itself.

use crate::support::{check, sql, sqlite_copy};

/// A corruption, the conditions it must break, and words that the example must contain.
const CORRUPTIONS: [(&str, &[&str], &str); 4] = [
    (
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
        &["1", "8"],
        "w_id=2 w_ytd=300000.01",
    ),
    (
        "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 9 AND no_o_id = 2500",
        &["3", "5", "11"],
        "new_orders=899",
    ),
    (
        "DELETE FROM history WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        &["8", "9", "10"],
        "c_id=5",
    ),
    (
        "UPDATE customer SET c_balance = 0 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
        &["10", "12"],
        "c_id=8",
    ),
];

#[test]
fn every_corruption_is_found_by_the_right_conditions_and_named() {
    let copy = sqlite_copy();
    for (corruption, broken, words) in CORRUPTIONS {
        let endpoint = crate::support::sqlite(&copy.directory.path().join("one.db"));
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
