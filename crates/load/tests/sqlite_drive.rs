//! A drive on a real SQLite database, and what its files say.

mod support;

use support::{assert_consistent, check, completed, drive, parameters, sqlite_copy};

#[test]
fn a_fresh_database_and_a_driven_one_meet_all_twelve_conditions() {
    let copy = sqlite_copy();
    assert_consistent(&copy.endpoint);
    let driven = drive(&parameters(copy.endpoint.clone(), copy.directory.path()));
    assert_eq!(completed(&driven) + driven.transactions.values().map(|outcomes| outcomes.failed).sum::<u64>(), 400);
    assert!(driven.errors.iter().all(|error| error.kind == "busy"), "{:?}", driven.errors);
    assert_consistent(&copy.endpoint);
    assert_eq!(check(&copy.endpoint).conditions[11].clause, "3.3.2.12");
}
