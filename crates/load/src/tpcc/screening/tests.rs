//! Against the conditions' own queries, after every small change that can be made to a database in order.

use super::*;
use crate::driver::Driver as _;
use crate::tests::database::Tiny;
use crate::tpcc::conditions::ALL;

/// One row of each table, and its cells that any condition looks at.
const CELLS: [(&str, &str, &[&str]); 8] = [
    ("warehouse", "w_id = 1", &["w_ytd"]),
    ("district", "d_id = 2", &["d_id", "d_ytd", "d_next_o_id"]),
    (
        "customer",
        "c_d_id = 2",
        &["c_id", "c_balance", "c_ytd_payment", "c_delivery_cnt"],
    ),
    (
        "history",
        "h_d_id = 2",
        &["h_c_id", "h_c_d_id", "h_d_id", "h_amount"],
    ),
    ("new_order", "no_d_id = 2", &["no_o_id", "no_d_id"]),
    ("orders", "o_d_id = 2 AND o_id = 2", ORDER),
    ("orders", "o_d_id = 2 AND o_id = 1", ORDER),
    (
        "order_line",
        "ol_d_id = 2 AND ol_o_id = 1 AND ol_number = 2",
        &["ol_o_id", "ol_d_id", "ol_amount", "ol_delivery_d"],
    ),
];
const ORDER: &[&str] = &["o_id", "o_d_id", "o_c_id", "o_carrier_id", "o_ol_cnt"];
const VALUES: [&str; 3] = ["1 + coalesce({}, 0)", "7000", "NULL"];

fn suspected_of(tiny: &Tiny) -> Suspicions {
    let driver = tiny.driver();
    let looked = driver.block_on(async {
        let mut connection = driver.connect(&[]).await.expect("it opens");
        suspected(&mut connection, 1).await.expect("it is read")
    });
    looked.expect("a reactor")
}

fn violated(tiny: &Tiny) -> Suspicions {
    ALL.map(|condition| {
        let count = format!("SELECT COUNT(*) FROM ({})", condition.query(1));
        tiny.row(&count) != ["0"]
    })
}

/// Every change of one cell, and every loss of one row or of all.
fn changes() -> Vec<String> {
    let mut changes = vec![
        "INSERT INTO new_order VALUES (4, 2, 1)".into(),
        "UPDATE warehouse SET w_ytd = 0; DELETE FROM district".into(),
    ];
    for (table, row, columns) in CELLS {
        for column in columns {
            changes.extend(VALUES.map(|value| {
                let value = value.replace("{}", column);
                format!("UPDATE OR IGNORE {table} SET {column} = {value} WHERE {row}")
            }));
        }
        changes.push(format!("DELETE FROM {table} WHERE {row}"));
        changes.push(format!("DELETE FROM {table}"));
    }
    changes
}

#[test]
fn nothing_is_suspected_where_all_conditions_hold() {
    assert_eq!(suspected_of(&Tiny::new()), [false; 12]);
}

#[test]
fn no_violation_is_missed_whatever_is_changed() {
    let (mut violated_once, mut exact, mut count) = ([false; 12], 0, 0);
    for change in changes() {
        let tiny = Tiny::new();
        tiny.run(&change);
        let (suspected, violated) = (suspected_of(&tiny), violated(&tiny));
        for (number, (suspected, violated)) in suspected.into_iter().zip(violated).enumerate() {
            assert!(suspected || !violated, "condition {}: {change}", number + 1);
            violated_once[number] |= violated;
        }
        exact += u32::from(suspected == violated);
        count += 1;
    }
    assert_eq!(violated_once, [true; 12], "each is violated by some change");
    assert!(
        exact * 2 > count,
        "{exact} of {count}: what is suspected is mostly so"
    );
}
