//! The governor of purge: InnoDB's adaptive purge (MDEV-26356) from outside of the server.
//!
//! Owns the algorithm, the loop that looks and sets, and the way back. It must not know studies, trials or arms.

mod error;
mod governor;
mod knobs;
mod ladder;
mod log;
mod originals;
mod pause;
mod server;
mod subject;

use std::path::Path;

use fairtrial_protocol::govern::{GovernPurge, Governed};
use fairtrial_protocol::load::Endpoint;

pub use error::GovernError;
pub use log::{DECISIONS, LOOKS};
pub use originals::RestoreOutcome;

/// Most threads that a server takes (`innodb_purge_threads`).
pub const MOST_THREADS: u32 = 32;
/// Largest batch that a server takes (`innodb_purge_batch_size`).
pub const MOST_BATCH: u32 = 5000;

/// Governs purge until SIGTERM, SIGINT or the end of its time, and restores what it found.
pub fn purge(parameters: &GovernPurge) -> Result<Governed, GovernError> {
    check(parameters)?;
    governor::Governor::start(parameters)?.govern()
}

/// Restores what a governor that is no more has left in its file of originals; `None` where nothing is left.
pub fn restore(originals: &Path) -> Result<Option<RestoreOutcome>, GovernError> {
    originals::restore_from(originals)
}

fn check(parameters: &GovernPurge) -> Result<(), GovernError> {
    let GovernPurge {
        threads,
        batch_size,
        low_water_percent,
        stop_percent,
        hysteresis_percent,
        ..
    } = parameters;
    let wrong = |field, problem: String| Err(GovernError::Parameter { field, problem });
    if !matches!(parameters.endpoint, Endpoint::Mysql { .. }) {
        return wrong(
            "endpoint",
            "only InnoDB has purge: give a MariaDB or MySQL endpoint".into(),
        );
    }
    if parameters.period_ms == 0 || parameters.answer_limit_ms == 0 {
        return wrong(
            "period_ms",
            "periods and limits must be at least 1 ms".into(),
        );
    }
    for (field, bounds, most) in [
        ("threads", threads, MOST_THREADS),
        ("batch_size", batch_size, MOST_BATCH),
    ] {
        let largest = bounds.most.unwrap_or(most);
        if bounds.least == 0 || bounds.least > largest || largest > most {
            let problem = format!("must be between 1 and {most}, and `least` at most `most`");
            return wrong(field, problem);
        }
    }
    if low_water_percent >= stop_percent || *stop_percent > 100 {
        return wrong(
            "stop_percent",
            "must be above low_water_percent and at most 100".into(),
        );
    }
    if hysteresis_percent >= stop_percent {
        return wrong("hysteresis_percent", "must be below stop_percent".into());
    }
    Ok(())
}
