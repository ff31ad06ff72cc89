//! The load engine: TPC-C, the OLTP family and users' own scripts (data, transactions, checks), and plain SQL.
//!
//! Owns everything between a parameter document of `fairtrial_protocol::load` and its result. Workloads are written
//! once against [`driver::Connection`]; which system answers, and which reactor waits for it, is known to one file
//! per system below `driver`. It must not know studies, trials or arms.

mod calendar;
mod ceiling;
mod check;
mod client;
mod contention;
mod drive;
mod driver;
mod error;
mod file_access;
mod gate;
mod noop;
mod oltp;
mod population;
mod progress;
mod random;
mod reactor;
mod script;
mod shared;
mod sql;
mod standing;
mod stop;
mod tpcc;
mod workload;

use std::io::Write;
use std::sync::Arc;

use fairtrial_protocol::file::{FileCounters, FileCountersOf, FileDrive, FileLoad};
use fairtrial_protocol::load::{
    Checked, Drive, Driven, Endpoint, Loaded, Sql, TpccCheck, TpccDrive, TpccLoad,
};
use fairtrial_protocol::locks::LockDrive;
use fairtrial_protocol::oltp::{OltpCheck, OltpDrive, OltpLoad};
use fairtrial_protocol::script::{Preflighted, ScriptDrive, ScriptLoad, ScriptPreflight};
use oltp::population::OltpTables;
use oltp::workload::Oltp;

use script::workload::Script;
use tpcc::population::Warehouses;
use tpcc::workload::Tpcc;

pub use client::{Client, ClientError};
pub use driver::{DriverError, ErrorKind};
pub use error::{LoadError, in_full};
pub use noop::NoopServer;
pub use reactor::authorities;
pub use standing::{StandingError, hold as sql_hold, restore as sql_restore};

/// Creates and fills TPC-C's tables (clauses 1.3 and 4.3), replacing what is there; progress goes out as JSON lines.
pub fn load(parameters: &TpccLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    let warehouses = Warehouses::new(parameters.warehouses, parameters.seed)?;
    population::load::load(
        &parameters.endpoint,
        &warehouses,
        parameters.threads,
        progress,
    )
}

/// Runs TPC-C's mix (clause 5.2.3), and writes `result.json`, `latency.hlog` and `timeline.arrows`.
pub fn drive(parameters: &TpccDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    let make = |drive: &Drive| {
        let drive = drive.clone();
        let warehouses = Tpcc::new(&TpccDrive {
            drive,
            ..parameters.clone()
        })?;
        Ok(warehouses.with_constants_of(parameters))
    };
    drive::drive(&parameters.drive, make, progress)
}

/// Checks TPC-C's twelve consistency conditions (clause 3.3.2).
pub fn check(parameters: &TpccCheck) -> Result<Checked, LoadError> {
    check::check(parameters)
}

/// Creates and fills the OLTP family's tables, replacing those of the same names.
pub fn load_oltp(parameters: &OltpLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    let (endpoint, threads) = (&parameters.endpoint, parameters.threads);
    population::load::load(endpoint, &OltpTables::new(parameters)?, threads, progress)
}

/// Runs one profile of the OLTP family and writes the same files as [`drive`].
pub fn drive_oltp(parameters: &OltpDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    let make = |drive: &Drive| {
        let drive = drive.clone();
        Oltp::new(&OltpDrive {
            drive,
            ..parameters.clone()
        })
    };
    drive::drive(&parameters.drive, make, progress)
}

/// Checks what every profile of the OLTP family leaves true of its tables.
pub fn check_oltp(parameters: &OltpCheck) -> Result<Checked, LoadError> {
    oltp::check::check(parameters)
}

/// The hash of the OLTP tables' content as [`load_oltp`] gives it, read back row by row.
pub fn oltp_content_sha256(parameters: &OltpLoad) -> Result<String, LoadError> {
    population::content::of_endpoint(&parameters.endpoint, &OltpTables::new(parameters)?)
}

/// Makes a script's data in a fresh database.
pub fn load_script(parameters: &ScriptLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    let rows = script::population::ScriptTables::new(parameters)?;
    let (endpoint, threads) = (&parameters.endpoint, parameters.threads);
    population::load::load(endpoint, &rows, threads, progress)
}

/// Prepares every statement of a script once, to hear what the system says to them.
pub fn preflight_script(parameters: &ScriptPreflight) -> Result<Preflighted, LoadError> {
    script::preflight::preflight(parameters)
}

/// Runs a script's transactions by their weights and writes the same files as [`drive`].
pub fn drive_script(
    parameters: &ScriptDrive,
    progress: &mut dyn Write,
) -> Result<Driven, LoadError> {
    let numbers = Arc::default();
    let make = |drive: &Drive| {
        let drive = drive.clone();
        let parameters = ScriptDrive {
            drive,
            ..parameters.clone()
        };
        Script::new(&parameters, &numbers)
    };
    drive::drive(&parameters.drive, make, progress)
}

/// Makes files of stamped blocks, replacing those of the same names.
pub fn load_files(parameters: &FileLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    file_access::content::load(parameters, progress)
}

/// Accesses blocks of files and writes the same files as [`drive`], and `counters.json`.
pub fn drive_files(parameters: &FileDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    file_access::drive(parameters, progress)
}

/// Takes locks with many threads and writes the same files as [`drive`], and `contention.json`.
pub fn drive_locks(parameters: &LockDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    contention::drive(parameters, progress)
}

/// The kernel's counters now, and what a path lies on.
pub fn file_counters(parameters: &FileCountersOf) -> Result<FileCounters, LoadError> {
    file_access::counters::read(std::path::Path::new(&parameters.path))
}

/// Runs statements in order on one connection.
pub fn sql(parameters: &Sql) -> Result<Vec<fairtrial_protocol::load::Rows>, LoadError> {
    sql::sql(parameters)
}

/// What this engine can do at most on this host.
pub fn ceiling(
    parameters: &fairtrial_protocol::load::Ceiling,
) -> Result<fairtrial_protocol::load::ClientCeiling, LoadError> {
    ceiling::ceiling(parameters)
}

/// The hash of a database's logical content as [`load`] gives it, read back row by row.
pub fn content_sha256(endpoint: &Endpoint, warehouses: u32) -> Result<String, LoadError> {
    // The seed determines what rows hold, not which there are.
    population::content::of_endpoint(endpoint, &Warehouses::new(warehouses, 0)?)
}

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

// The tests' support files name the crate as its users do.
#[cfg(test)]
extern crate self as fairtrial_load;

#[cfg(test)]
mod tests;
