//! The load engine: TPC-C's data, its five transactions, its consistency conditions, and plain SQL.
//!
//! Owns everything between a parameter document of `fairtrial_protocol::load` and its result. Workloads are written
//! once against [`driver::Connection`]; which system answers, and which reactor waits for it, is known to one file
//! per system below `driver`. It must not know studies, trials or arms.

mod calendar;
mod check;
mod drive;
mod driver;
mod error;
mod progress;
mod random;
mod sql;
mod tpcc;
mod workload;

use std::io::Write;

use fairtrial_protocol::load::{
    Checked, Driven, Endpoint, Loaded, Rows, Sql, TpccCheck, TpccDrive, TpccLoad,
};

pub use driver::{DriverError, ErrorKind};
pub use error::LoadError;

/// Creates and fills TPC-C's tables (clauses 1.3 and 4.3), replacing what is there; progress goes out as JSON lines.
pub fn load(parameters: &TpccLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    tpcc::load::load(parameters, progress)
}

/// Runs TPC-C's mix (clause 5.2.3) and writes `result.json`, `latency.hlog` and `timeline.arrows`.
pub fn drive(parameters: &TpccDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    let workload = tpcc::workload::Tpcc::new(parameters)?;
    drive::drive(&parameters.drive, workload, progress)
}

/// Checks TPC-C's twelve consistency conditions (clause 3.3.2).
pub fn check(parameters: &TpccCheck) -> Result<Checked, LoadError> {
    check::check(parameters)
}

/// Runs statements in order on one connection.
pub fn sql(parameters: &Sql) -> Result<Vec<Rows>, LoadError> {
    sql::sql(parameters)
}

/// The hash of a database's logical content as [`load`] gives it, read back row by row.
pub fn content_sha256(endpoint: &Endpoint, warehouses: u32) -> Result<String, LoadError> {
    tpcc::content::of_endpoint(endpoint, warehouses)
}

// The tests' support files name the crate as its users do.
#[cfg(test)]
extern crate self as fairtrial_load;

#[cfg(test)]
mod tests;
