//! Progress as JSON lines, each flushed, so that a reader sees it when it happens.

use std::io::{self, Write};

use fairtrial_protocol::load::Progress;

use crate::error::LoadError;

/// Writes one line.
pub fn say(out: &mut dyn Write, progress: &Progress) -> Result<(), LoadError> {
    let mut line = serde_json::to_vec(progress)
        .map_err(|error| LoadError::Progress(io::Error::other(error)))?;
    line.push(b'\n');
    out.write_all(&line)
        .and_then(|()| out.flush())
        .map_err(LoadError::Progress)
}

const SECOND_NS: i64 = 1_000_000_000;

/// What was said last of a drive's rate.
#[derive(Default)]
pub struct RateReport {
    count: u64,
    time_ns: i64,
}

impl RateReport {
    /// Of a drive whose first interval begins now.
    pub fn new(time_ns: i64) -> Self {
        Self { count: 0, time_ns }
    }

    /// Says the rate since the last report, once in a second; `totals` counts what has ended, and errors.
    pub fn say(
        &mut self,
        out: &mut dyn Write,
        now_ns: i64,
        totals: impl FnOnce() -> (u64, u64),
    ) -> Result<(), LoadError> {
        let length_ns = now_ns - self.time_ns;
        if length_ns < SECOND_NS {
            return Ok(());
        }
        let (count, errors) = totals();
        #[allow(clippy::cast_precision_loss)] // counts of one second
        let per_s = (count - self.count) as f64 / (length_ns as f64 / 1e9);
        (self.count, self.time_ns) = (count, now_ns);
        say(out, &Progress::Rate { per_s, errors })
    }
}
