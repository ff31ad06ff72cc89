//! The initial population (clause 4.3.3.1), in units that any thread can make in any order.
//!
//! Each unit draws from a stream of its own, so what it holds depends on the seed and on nothing else; inside a unit
//! rows come in the order of the table's primary key.

mod customers;
mod orders;
mod places;
pub mod rows;
mod stock;

use self::rows::{ROWS_PER_UNIT, WarehouseRows};
use crate::calendar;
use crate::driver::table::Table;
use crate::tpcc::{DISTRICTS, ITEMS};

/// 2026-01-01 00:00:00, the earliest time of loading.
const EARLIEST_LOAD_S: i64 = 1_767_225_600;

/// One part of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// `item` from this number on.
    Items {
        /// First item.
        first: i64,
    },
    /// A warehouse and its districts.
    Places {
        /// The warehouse.
        warehouse: i64,
    },
    /// A warehouse's `stock` from this item on.
    Stock {
        /// The warehouse.
        warehouse: i64,
        /// First item.
        first: i64,
    },
    /// A district's customers and their history.
    Customers {
        /// The warehouse.
        warehouse: i64,
        /// The district.
        district: i64,
    },
    /// A district's orders, their lines and the new ones among them.
    Orders {
        /// The warehouse.
        warehouse: i64,
        /// The district.
        district: i64,
    },
}

impl Unit {
    /// All units of a scale, each table's in the order of its primary key.
    pub fn all(warehouses: u32) -> Vec<Self> {
        let chunks = || (0..ITEMS / ROWS_PER_UNIT).map(|chunk| chunk * ROWS_PER_UNIT + 1);
        let mut units: Vec<Self> = chunks().map(|first| Self::Items { first }).collect();
        for warehouse in 1..=i64::from(warehouses) {
            units.push(Self::Places { warehouse });
            units.extend(chunks().map(|first| Self::Stock { warehouse, first }));
            for district in 1..=DISTRICTS {
                units.push(Self::Customers {
                    warehouse,
                    district,
                });
                units.push(Self::Orders {
                    warehouse,
                    district,
                });
            }
        }
        units
    }

    /// The tables it fills, each with the condition that selects its rows.
    pub fn selections(self) -> Vec<(&'static Table, String)> {
        use crate::tpcc::schema as s;
        let last = |first| first + ROWS_PER_UNIT - 1;
        match self {
            Self::Items { first } => vec![(
                &s::ITEM,
                format!("i_id BETWEEN {first} AND {}", last(first)),
            )],
            Self::Places { warehouse } => vec![
                (&s::WAREHOUSE, format!("w_id = {warehouse}")),
                (&s::DISTRICT, format!("d_w_id = {warehouse}")),
            ],
            Self::Stock { warehouse, first } => {
                vec![(
                    &s::STOCK,
                    format!(
                        "s_w_id = {warehouse} AND s_i_id BETWEEN {first} AND {}",
                        last(first)
                    ),
                )]
            }
            Self::Customers {
                warehouse,
                district,
            } => vec![
                (
                    &s::CUSTOMER,
                    format!("c_w_id = {warehouse} AND c_d_id = {district}"),
                ),
                (
                    &s::HISTORY,
                    format!("h_c_w_id = {warehouse} AND h_c_d_id = {district}"),
                ),
            ],
            Self::Orders {
                warehouse,
                district,
            } => vec![
                (
                    &s::ORDERS,
                    format!("o_w_id = {warehouse} AND o_d_id = {district}"),
                ),
                (
                    &s::NEW_ORDER,
                    format!("no_w_id = {warehouse} AND no_d_id = {district}"),
                ),
                (
                    &s::ORDER_LINE,
                    format!("ol_w_id = {warehouse} AND ol_d_id = {district}"),
                ),
            ],
        }
    }

    /// Makes a unit's rows, in place of those of the unit before.
    pub fn fill(self, seed: u64, rows: &mut WarehouseRows) {
        rows.clear();
        let time = load_time(seed);
        match self {
            Self::Items { first } => stock::items(rows, seed, first),
            Self::Places { warehouse } => places::fill(rows, seed, warehouse),
            Self::Stock { warehouse, first } => stock::stock(rows, seed, warehouse, first),
            Self::Customers {
                warehouse,
                district,
            } => customers::fill(rows, seed, (warehouse, district), &time),
            Self::Orders {
                warehouse,
                district,
            } => orders::fill(rows, seed, (warehouse, district), &time),
        }
    }

    /// Its share of the time one warehouse takes, roughly; what progress counts.
    pub fn weight(self) -> f64 {
        match self {
            Self::Items { .. } | Self::Places { .. } => 0.0,
            Self::Stock { .. } => 0.02,
            Self::Customers { .. } => 0.015,
            Self::Orders { .. } => 0.065,
        }
    }
}

/// When the data say they were loaded: derived from the seed, so that equal seeds give equal content.
fn load_time(seed: u64) -> String {
    const SECONDS_PER_YEAR: u64 = 365 * 86_400;
    let offset = i64::try_from(seed % SECONDS_PER_YEAR).unwrap_or_default();
    calendar::date_time(EARLIEST_LOAD_S + offset)
}

#[cfg(test)]
mod tests;
