//! A drive: users on their threads, a schedule, and three files of results.

mod arrivals;
mod backlog;
mod collector;
pub mod files;
mod fleet;
mod once;
mod rates;
pub mod recorder;
mod replay;
pub mod schedule;
mod search;
pub mod usage;
mod user;
mod validation;

use std::io::Write;

use fairtrial_protocol::load::{Arrivals, Drive, Driven};

use self::once::once;
use crate::error::LoadError;
use crate::workload::Workload;

/// Drives what `make` makes of the parameters, once or in search of a rate, and writes the files; the result is what
/// `result.json` holds.
pub fn drive<W: Workload>(
    parameters: &Drive,
    make: impl Fn(&Drive) -> Result<W, LoadError>,
    progress: &mut dyn Write,
) -> Result<Driven, LoadError> {
    if let Arrivals::Search { search } = &parameters.arrivals {
        if parameters.fleet.is_some() {
            let problem = "one client searches, as the next rate depends on all of the last one";
            return Err(LoadError::parameter("arrivals", problem));
        }
        return search::search(parameters, search, make, progress);
    }
    let (driven, _) = once(parameters, make(parameters)?, None, progress)?;
    Ok(driven)
}
