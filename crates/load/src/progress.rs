//! Progress as JSON lines, each flushed, so that a reader sees it when it happens.

use std::io::{self, Write};

use fairtrial_protocol::load::Progress;
use hdrhistogram::Histogram;

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
    latencies: Option<Histogram<u32>>,
}

impl RateReport {
    /// Of a drive whose first interval begins now.
    pub fn new(time_ns: i64) -> Self {
        Self {
            count: 0,
            time_ns,
            latencies: None,
        }
    }

    /// Takes in the latencies of an interval that is over.
    pub fn note(&mut self, latencies: &[Histogram<u32>]) {
        for each in latencies.iter().filter(|each| !each.is_empty()) {
            match &mut self.latencies {
                // Both have the recorder's bounds, so that neither has to grow.
                Some(sum) => sum.add(each).unwrap_or_default(),
                none => *none = Some(each.clone()),
            }
        }
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
        let latencies = self.latencies.as_ref().filter(|each| !each.is_empty());
        let percentile = |share| latencies.map(|each| each.value_at_quantile(share));
        let (p95_ns, p99_ns) = (percentile(0.95), percentile(0.99));
        let rate = Progress::Rate {
            per_s,
            errors,
            p95_ns,
            p99_ns,
        };
        say(out, &rate)?;
        if let Some(latencies) = &mut self.latencies {
            latencies.reset();
        }
        Ok(())
    }
}
