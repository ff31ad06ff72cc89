//! What the collector knows of an open loop: how many should have begun, how many wait, and how late they were.

use std::path::Path;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Arrived;

use super::arrivals::{ArrivalQueue, ArrivalStream};
use super::files::{Interval, LatencyLog, TimelineColumn};
use super::recorder::Slot;
use super::schedule::Schedule;
use crate::error::LoadError;

/// Columns of the timeline in an open loop, …
const COLUMNS: [TimelineColumn; 3] = [
    ("arrived", |interval| interval.arrived),
    ("waiting", |interval| interval.waiting),
    ("timed_out", |interval| interval.timed_out),
];

/// … the last one only where any may be given up.
pub fn columns(queue: Option<&ArrivalQueue>) -> &'static [TimelineColumn] {
    match queue {
        None => &[],
        Some(queue) if queue.has_timeout() => &COLUMNS,
        Some(_) => &COLUMNS[..2],
    }
}

/// Follows the stream of arrivals.
pub struct Backlog {
    /// Counts up to the ends of intervals.
    ends: ArrivalStream,
    /// Counts up to the present.
    present: ArrivalStream,
    counted: u64,
    timed_out: u64,
    sums: Arrived,
    lateness: LatencyLog,
}

impl Backlog {
    /// Follows a drive's stream; creates `lateness.hlog`. `has_timeout`: whether any may be given up.
    pub fn create(
        directory: &Path,
        stream: &ArrivalStream,
        has_timeout: bool,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            ends: stream.clone(),
            present: stream.clone(),
            counted: 0,
            timed_out: 0,
            sums: Arrived {
                timed_out: has_timeout.then_some(0),
                ..Arrived::default()
            },
            lateness: LatencyLog::create(directory, "lateness", &["lateness"])?,
        })
    }

    /// Closes an interval that is over.
    pub fn close(
        &mut self,
        queue: &ArrivalQueue,
        schedule: &Schedule,
        (start_ns, end_ns): (i64, i64),
        slot: &Slot,
    ) -> Result<Interval, LoadError> {
        let counted = self.ends.before(end_ns - schedule.ramp_ns);
        let now_ns = monotonic_ns().min(schedule.end_ns());
        let interval = Interval {
            arrived: counted - self.counted,
            waiting: self.waiting(queue, now_ns - schedule.ramp_ns),
            timed_out: queue.timed_out() - self.timed_out,
        };
        self.counted = counted;
        self.timed_out += interval.timed_out;
        if start_ns >= schedule.window_ns() {
            self.sums.offered += interval.arrived;
            if let Some(timed_out) = &mut self.sums.timed_out {
                *timed_out += interval.timed_out;
            }
            self.sums.waiting = interval.waiting;
            self.sums.waiting_most = self.sums.waiting_most.max(interval.waiting);
            let lateness = std::slice::from_ref(&slot.lateness);
            self.lateness.append(lateness, (start_ns, end_ns))?;
        }
        Ok(interval)
    }

    /// How many should have begun and wait; `now_ns` counts from the drive's start.
    pub fn waiting(&mut self, queue: &ArrivalQueue, now_ns: i64) -> u64 {
        queue.expire(now_ns);
        // Read before the stream is counted: what begins meanwhile would else be counted here and not there.
        let gone = queue.begun() + queue.timed_out();
        self.present.before(now_ns).saturating_sub(gone)
    }

    /// Sums over the window.
    pub fn sums(&self) -> Arrived {
        self.sums
    }
}
