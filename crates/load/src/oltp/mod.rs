//! The OLTP family: tables and statements compatible with sysbench 1.0.20, so that either tool runs on the other's.
//!
//! What is the same: table layout, statements and their order in each profile, how many rows each touches, which
//! tables and keys are drawn with which probabilities. What is not: the generators, so keys differ one by one.

pub mod check;
mod content;
pub mod keys;
mod plan;
pub mod population;
mod schema;
mod statements;
mod user;
pub mod workload;
