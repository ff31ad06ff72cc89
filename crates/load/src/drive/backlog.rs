//! What the collector knows of an open loop: how many should have begun, how many wait, and how late they were.

use std::path::Path;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Arrived, Outcomes};

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
    /// From its beginning.
    whole: ArrivalStream,
    /// Counts up to the ends of intervals.
    ends: ArrivalStream,
    /// Counts up to the present.
    present: ArrivalStream,
    counted: u64,
    ended: u64,
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
            whole: stream.clone(),
            ends: stream.clone(),
            present: stream.clone(),
            counted: 0,
            ended: 0,
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
        self.ended += slot.counts.iter().map(ended).sum::<u64>();
        self.timed_out += interval.timed_out;
        if start_ns >= schedule.window_ns() {
            self.sums.offered += interval.arrived;
            if let Some(timed_out) = &mut self.sums.timed_out {
                *timed_out += interval.timed_out;
            }
            self.sums.waiting = interval.waiting;
            self.sums.waiting_most = self.sums.waiting_most.max(interval.waiting);
            let gone = self.ended + self.timed_out + interval.waiting;
            self.sums.under_way = Some(counted.saturating_sub(gone));
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

    /// Sums over the window, once all users have left.
    pub fn sums(self, queue: Option<&ArrivalQueue>) -> Arrived {
        Arrived {
            overdue: queue.and_then(|queue| queue.overdue(self.whole)),
            ..self.sums
        }
    }
}

/// How many of one type came to an end, whichever.
fn ended(outcomes: &Outcomes) -> u64 {
    outcomes.committed + outcomes.rolled_back + outcomes.failed
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::load::{Arrivals, Spacing};

    use super::*;
    use crate::drive::schedule::{Measure, Moment};

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn who_has_begun_and_not_ended_is_under_way_and_does_not_wait() {
        let arrivals = Arrivals::Open {
            rate_per_s: 1_000.0,
            spacing: Spacing::Constant,
        };
        let stream = ArrivalStream::open(&arrivals, 1).expect("nothing to read");
        let stream = stream.expect("an open loop");
        let queue = ArrivalQueue::new(stream.clone(), None, None);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut backlog = Backlog::create(directory.path(), &stream, false).expect("a log");
        let second = Measure::DurationNs(SECOND_NS);
        let begin_ns = monotonic_ns() - 10 * SECOND_NS;
        let schedule = Schedule::new(begin_ns, second, SECOND_NS, second);
        for _ in 0..1_990 {
            queue.begin();
        }
        for (moment, committed) in [(Moment::RampUp(0), 990), (Moment::Measured(0), 900)] {
            let mut slot = Slot::new(moment, 1);
            slot.counts[0] = Outcomes {
                committed,
                rolled_back: 20,
                failed: 5,
                ..Outcomes::default()
            };
            let span = schedule.span(moment);
            backlog
                .close(&queue, &schedule, span, &slot)
                .expect("written");
        }
        let arrived = backlog.sums(Some(&queue));
        assert_eq!((arrived.offered, arrived.waiting), (1_000, 10));
        assert_eq!(arrived.under_way, Some(1_990 - 1_015 - 925));
        assert_eq!(arrived.overdue, None);
    }
}
