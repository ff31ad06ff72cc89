//! Clause 4.3.3.1, column by column, on generated rows.

use std::collections::BTreeSet;

use super::*;
use crate::driver::{Decimal, Value};

mod domains;
mod shape;

const SEED: u64 = 77;

/// One generated cell, owned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedCell {
    Null,
    Integer(i64),
    Decimal(i64, u8),
    Text(String),
}

impl OwnedCell {
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(integer) => *integer,
            other => panic!("{other:?} is no integer"),
        }
    }

    /// Units of a decimal of this scale.
    pub fn units(&self, scale: u8) -> i64 {
        match self {
            Self::Decimal(units, places) if *places == scale => *units,
            other => panic!("{other:?} is not a decimal with {scale} digits behind the point"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }
}

/// A unit's rows of one table, with the names of its columns.
pub struct UnitRows {
    pub table: &'static Table,
    pub rows: Vec<Vec<OwnedCell>>,
}

impl UnitRows {
    /// A column's values.
    pub fn column(&self, name: &str) -> impl Iterator<Item = &OwnedCell> {
        let position = self
            .table
            .columns
            .iter()
            .position(|column| column.name == name);
        let position = position.unwrap_or_else(|| panic!("{} has no {name}", self.table.name));
        self.rows.iter().map(move |row| &row[position])
    }

    pub fn integers(&self, name: &str) -> Vec<i64> {
        self.column(name).map(OwnedCell::integer).collect()
    }

    pub fn units(&self, name: &str, scale: u8) -> Vec<i64> {
        self.column(name).map(|cell| cell.units(scale)).collect()
    }

    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.column(name).map(OwnedCell::text).collect()
    }
}

/// All tables of a unit.
pub fn generate(unit: Unit, seed: u64) -> Vec<UnitRows> {
    let mut rows = WarehouseRows::default();
    unit.fill(seed, &mut rows);
    read(&rows, unit)
}

fn read(rows: &WarehouseRows, unit: Unit) -> Vec<UnitRows> {
    let owned = |value: Value<'_>| match value {
        Value::Null => OwnedCell::Null,
        Value::Integer(integer) => OwnedCell::Integer(integer),
        Value::Decimal(Decimal { units, scale }) => OwnedCell::Decimal(units, scale),
        Value::Text(text) => OwnedCell::Text(text.into()),
    };
    let tables = unit.selections().into_iter().enumerate();
    tables
        .map(|(position, (table, _))| UnitRows {
            table,
            rows: rows
                .batch(position)
                .rows(table.columns.len())
                .map(|row| row.map(owned).collect())
                .collect(),
        })
        .collect()
}

/// One unit of each kind, of a second warehouse where there is one.
pub const UNITS: [Unit; 5] = [
    Unit::Items { first: 20_001 },
    Unit::Places { warehouse: 2 },
    Unit::Stock {
        warehouse: 2,
        first: 1,
    },
    Unit::Customers {
        warehouse: 2,
        district: 3,
    },
    Unit::Orders {
        warehouse: 2,
        district: 3,
    },
];

#[test]
fn rows_depend_on_the_seed_and_on_nothing_made_before() {
    let mut used = WarehouseRows::default();
    for unit in UNITS.iter().rev() {
        unit.fill(SEED + 1, &mut used);
    }
    for unit in UNITS {
        unit.fill(SEED, &mut used);
        let (again, fresh) = (read(&used, unit), generate(unit, SEED));
        for (left, right) in again.iter().zip(&fresh) {
            assert_eq!(left.rows, right.rows, "{}", left.table.name);
        }
    }
}

#[test]
fn two_threads_make_what_one_makes() {
    let here: Vec<_> = UNITS
        .iter()
        .flat_map(|unit| generate(*unit, SEED))
        .collect();
    let there: Vec<_> = std::thread::scope(|scope| {
        let made: Vec<_> = UNITS
            .iter()
            .map(|unit| scope.spawn(|| generate(*unit, SEED)))
            .collect();
        made.into_iter()
            .flat_map(|one| one.join().expect("rows"))
            .collect()
    });
    assert!(
        here.iter()
            .zip(&there)
            .all(|(left, right)| left.rows == right.rows)
    );
}

/// Columns that are keys, constants, or set by rule: all others are drawn.
const NOT_DRAWN: [&str; 38] = [
    "i_id",
    "w_id",
    "w_ytd",
    "d_id",
    "d_w_id",
    "d_ytd",
    "d_next_o_id",
    "s_i_id",
    "s_w_id",
    "s_ytd",
    "s_order_cnt",
    "s_remote_cnt",
    "c_id",
    "c_d_id",
    "c_w_id",
    "c_middle",
    "c_credit_lim",
    "c_balance",
    "c_ytd_payment",
    "c_payment_cnt",
    "c_delivery_cnt",
    "h_c_id",
    "h_c_d_id",
    "h_c_w_id",
    "h_d_id",
    "h_w_id",
    "h_amount",
    "o_id",
    "o_d_id",
    "o_w_id",
    "o_all_local",
    "no_o_id",
    "no_d_id",
    "no_w_id",
    "ol_d_id",
    "ol_w_id",
    "ol_supply_w_id",
    "ol_quantity",
];

#[test]
fn two_seeds_differ_in_every_column_that_is_drawn_and_in_no_other() {
    for unit in UNITS {
        let (left, right) = (generate(unit, SEED), generate(unit, SEED + 1));
        for (left, right) in left.iter().zip(&right) {
            for column in left.table.columns {
                let first = |generated: &UnitRows| -> Vec<OwnedCell> {
                    generated
                        .column(column.name)
                        .take(24_000)
                        .cloned()
                        .collect()
                };
                let drawn = !NOT_DRAWN.contains(&column.name);
                assert_eq!(first(left) != first(right), drawn, "{}", column.name);
            }
        }
    }
}

#[test]
fn two_districts_of_one_seed_hold_other_customers() {
    let of = |district| {
        generate(
            Unit::Customers {
                warehouse: 2,
                district,
            },
            SEED,
        )
    };
    let (first, second) = (of(1), of(2));
    let names: BTreeSet<&str> = first[0].texts("c_first").into_iter().collect();
    let shared = second[0]
        .texts("c_first")
        .into_iter()
        .filter(|name| names.contains(name))
        .count();
    assert_eq!(
        shared, 0,
        "of 62^8 first names and more, none is drawn twice in 6,000"
    );
}
