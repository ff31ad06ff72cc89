//! What the collector knows of an open loop: how many should have begun, how many wait, and how late they were.

use std::path::Path;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Arrived;

use super::arrivals::{Queue, Stream};
use super::files::LatencyLog;
use super::recorder::Slot;
use super::schedule::Schedule;
use crate::error::LoadError;

/// Arrivals of one interval, and how many waited at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Should have begun inside it.
    pub arrived: u64,
    /// Should have begun before its end and had not, when the interval was closed: at most a few hundredths of a
    /// second later.
    pub waiting: u64,
}

/// Follows the stream of arrivals.
pub struct Backlog {
    /// Counts up to the ends of intervals.
    ends: Stream,
    /// Counts up to the present.
    present: Stream,
    counted: u64,
    sums: Arrived,
    lateness: LatencyLog,
}

impl Backlog {
    /// Follows a drive's stream; creates `lateness.hlog`.
    pub fn create(directory: &Path, stream: &Stream) -> Result<Self, LoadError> {
        Ok(Self {
            ends: stream.clone(),
            present: stream.clone(),
            counted: 0,
            sums: Arrived::default(),
            lateness: LatencyLog::create(directory, "lateness", &["lateness"])?,
        })
    }

    /// Closes an interval that is over.
    pub fn close(
        &mut self,
        queue: &Queue,
        schedule: &Schedule,
        (start_ns, end_ns): (i64, i64),
        slot: &Slot,
    ) -> Result<Interval, LoadError> {
        let counted = self.ends.before(end_ns - schedule.ramp_ns);
        let now_ns = monotonic_ns().min(schedule.end_ns());
        let begun = queue.begun();
        let interval = Interval {
            arrived: counted - self.counted,
            waiting: self
                .present
                .before(now_ns - schedule.ramp_ns)
                .saturating_sub(begun),
        };
        self.counted = counted;
        if start_ns >= schedule.window_ns {
            self.sums.offered += interval.arrived;
            self.sums.waiting = interval.waiting;
            self.sums.waiting_most = self.sums.waiting_most.max(interval.waiting);
            let lateness = std::slice::from_ref(&slot.lateness);
            self.lateness.append(lateness, (start_ns, end_ns))?;
        }
        Ok(interval)
    }

    /// Sums over the window.
    pub fn sums(&self) -> Arrived {
        self.sums
    }
}
