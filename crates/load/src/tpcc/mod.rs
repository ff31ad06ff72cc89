//! TPC-C, revision 5.11: layout, population, inputs, transactions and consistency conditions. Clause numbers refer to it.

pub mod conditions;
pub mod constants;
pub mod inputs;
pub mod names;
mod populate;
pub mod population;
pub mod procedures;
pub mod schema;
pub mod screening;
pub mod statements;
pub mod transactions;
pub mod workload;

/// Rows of `item` (clause 1.2.1).
pub const ITEMS: i64 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: i64 = 10;
/// Customers of a district.
pub const CUSTOMERS: i64 = 3_000;
/// Orders of a district after loading (clause 4.3.3.1), one per customer.
pub const ORDERS: i64 = CUSTOMERS;
/// First order of a district that is not delivered after loading: the last 900 are not.
pub const FIRST_UNDELIVERED: i64 = 2_101;
