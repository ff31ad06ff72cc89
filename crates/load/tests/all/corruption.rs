//! On loaded data, one changed row is found among millions; `src/check/tests.rs` shows each condition by itself.

use crate::support::{check, sql, sqlite_copy};

/// Corruptions of rows that have nothing to do with each other.
const CORRUPTIONS: [&str; 4] = [
    "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
    "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 9 AND no_o_id = 2500",
    "DELETE FROM history WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
    "UPDATE customer SET c_balance = 0 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
];

/// The conditions that they break, each with words of its examples: one for each corruption.
const BROKEN: [(&str, &[&str]); 8] = [
    ("1", &["w_id=2 w_ytd=300000.01"]),
    ("3", &["no_w_id=2 no_d_id=9 "]),
    ("5", &["o_w_id=2 o_d_id=9 o_id=2500 "]),
    ("8", &["w_id=1 ", "w_id=2 "]),
    ("9", &["d_w_id=1 d_id=1 "]),
    (
        "10",
        &["c_w_id=1 c_d_id=1 c_id=5 ", "c_w_id=2 c_d_id=3 c_id=8 "],
    ),
    ("11", &["new_orders=899"]),
    ("12", &["c_w_id=2 c_d_id=3 c_id=8 "]),
];

#[test]
fn every_corruption_is_found_by_the_right_conditions_and_named() {
    let copy = sqlite_copy();
    sql(&copy.endpoint, &CORRUPTIONS);
    let checked = check(&copy.endpoint);
    let violated: Vec<_> = checked
        .conditions
        .iter()
        .filter(|condition| condition.violations > 0)
        .collect();
    let clauses: Vec<_> = violated
        .iter()
        .map(|condition| condition.clause.trim_start_matches("3.3.2."))
        .collect();
    assert_eq!(clauses, BROKEN.map(|(clause, _)| clause), "{violated:#?}");
    for (condition, (_, named)) in violated.iter().zip(BROKEN) {
        assert_eq!(condition.examples.len(), named.len(), "{condition:#?}");
        assert_eq!(condition.violations, named.len() as u64, "{condition:#?}");
        for words in named {
            let mut examples = condition.examples.iter();
            assert!(
                examples.any(|example| example.contains(words)),
                "{words}: {condition:#?}"
            );
        }
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
