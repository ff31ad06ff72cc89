//! Where workers put what they measured, and where a collector takes it from.
//!
//! A worker's shard holds one open slot: histograms and counts of the present interval. Recording adds to it and
//! allocates nothing; a slot whose interval is over moves aside, once per interval, until the collector takes it.
//! The end that decides a transaction's interval is read under the shard's lock, so a slot once taken can get no later
//! sample. The one that its latency ends by is read before, so that waiting for the lock is in no latency.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{ErrorCount, Outcomes};
use hdrhistogram::Histogram;

use super::schedule::{Moment, Schedule};
use crate::driver::DriverError;
use crate::shared::lock;

/// A slot takes about 0.14 MiB per transaction type: this many shards bound the recorder's memory whatever the number of users.
pub const SHARDS_LIMIT: usize = 8;

/// Digits that a latency keeps.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longest latency told apart, an hour; longer ones are recorded as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How one transaction ended, retries included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Committed,
    /// Rolled back by the workload's own rule.
    RolledBack,
    /// Given up.
    Failed,
}

/// One transaction that ended.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// How.
    pub outcome: Outcome,
    /// When it began, or should have begun; its latency counts from here.
    pub started_ns: i64,
    /// How much later it began than it should; nothing where it began when its user liked.
    pub late_ns: Option<u64>,
    /// Attempts repeated.
    pub retried: u64,
    /// Statements sent, in all attempts.
    pub statements: u64,
}

/// What was measured in one interval.
#[derive(Debug)]
pub struct Slot {
    /// The interval.
    pub moment: Moment,
    /// Latencies of completed transactions (committed, or rolled back by rule) by type, nanoseconds.
    pub latencies: Vec<Histogram<u32>>,
    /// How much later than they should transactions began, nanoseconds; empty where they begin when they like.
    pub lateness: Histogram<u32>,
    /// Counts by type.
    pub counts: Vec<Outcomes>,
}

impl Slot {
    /// An empty slot for this many transaction types.
    pub fn new(moment: Moment, types: usize) -> Self {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
                .expect("constant bounds that fit")
        };
        Self {
            moment,
            latencies: (0..types).map(|_| histogram()).collect(),
            lateness: histogram(),
            counts: vec![Outcomes::default(); types],
        }
    }

    /// Adds another slot's content.
    pub fn add(&mut self, other: &Self) {
        let latencies = self.latencies.iter_mut().zip(&other.latencies);
        for (sum, others) in latencies.chain([(&mut self.lateness, &other.lateness)]) {
            if !others.is_empty() {
                sum.add(others).expect("both have the same bounds");
            }
        }
        for (counts, others) in self.counts.iter_mut().zip(&other.counts) {
            add_outcomes(counts, others);
        }
    }

    /// Empties it for another interval.
    pub fn reset(&mut self, moment: Moment) {
        self.moment = moment;
        self.latencies
            .iter_mut()
            .chain([&mut self.lateness])
            .filter(|latencies| !latencies.is_empty())
            .for_each(Histogram::reset);
        self.counts.fill(Outcomes::default());
    }
}

/// Adds counts to counts.
fn add_outcomes(sum: &mut Outcomes, other: &Outcomes) {
    sum.committed += other.committed;
    sum.rolled_back += other.rolled_back;
    sum.failed += other.failed;
    sum.retried += other.retried;
    sum.statements += other.statements;
    sum.saturated += other.saturated;
}

#[derive(Debug)]
struct Shard {
    open: Slot,
    over: Vec<Slot>,
    spare: Vec<Slot>,
    errors: BTreeMap<(usize, String), ErrorCount>,
}

/// All shards and the schedule that places a sample.
#[derive(Debug)]
pub struct Recorder {
    types: Vec<&'static str>,
    shards: Vec<Mutex<Shard>>,
    schedule: OnceLock<Schedule>,
    ended: AtomicU64,
    errors: AtomicU64,
}

impl Recorder {
    /// A recorder for this many workers and transactions of these types.
    pub fn new(workers: usize, types: &[&'static str]) -> Self {
        let slot = |moment| Slot::new(moment, types.len());
        let shard = || {
            let (over, spare) = (Vec::with_capacity(2), vec![slot(Moment::After)]);
            Mutex::new(Shard {
                open: slot(Moment::RampUp(0)),
                over,
                spare,
                errors: BTreeMap::new(),
            })
        };
        let shards = (0..workers.clamp(1, SHARDS_LIMIT))
            .map(|_| shard())
            .collect();
        Self {
            types: types.to_vec(),
            shards,
            schedule: OnceLock::new(),
            ended: 0.into(),
            errors: 0.into(),
        }
    }

    /// Names of the transaction types, by their numbers.
    pub fn types(&self) -> &[&'static str] {
        &self.types
    }

    /// Sets the schedule, once.
    pub fn begin(&self, schedule: Schedule) -> &Schedule {
        self.schedule.get_or_init(|| schedule)
    }

    /// The schedule, once set.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.get()
    }

    /// Transactions ended and errors met so far, over the whole drive.
    pub fn totals(&self) -> (u64, u64) {
        (
            self.ended.load(Ordering::Relaxed),
            self.errors.load(Ordering::Relaxed),
        )
    }

    /// Says that a transaction ends now. Returns whether the window is over.
    pub fn ended(&self, worker: usize, kind: usize, run: &Run) -> bool {
        let finished_ns = monotonic_ns();
        let Some(schedule) = self.schedule() else {
            return false;
        };
        self.ended.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(worker);
        let (_, moment) = schedule.transaction_ends();
        shard.open_for(moment);
        let counts = &mut shard.open.counts[kind];
        counts.retried += run.retried;
        counts.statements += run.statements;
        match run.outcome {
            Outcome::Committed => counts.committed += 1,
            Outcome::RolledBack => counts.rolled_back += 1,
            Outcome::Failed => counts.failed += 1,
        }
        if let Some(late_ns) = run.late_ns {
            shard.open.lateness.saturating_record(late_ns);
        }
        if run.outcome != Outcome::Failed {
            let latency_ns = u64::try_from(finished_ns - run.started_ns).unwrap_or_default();
            shard.open.counts[kind].saturated += u64::from(latency_ns > LONGEST_NS);
            shard.open.latencies[kind].saturating_record(latency_ns);
        }
        moment == Moment::After || schedule.missing() == Some(0)
    }

    /// Counts an error of a transaction; errors outside the window only in the total.
    pub fn error(&self, worker: usize, kind: usize, error: &DriverError) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let Some(schedule) = self.schedule() else {
            return;
        };
        if !matches!(schedule.moment(monotonic_ns()), Moment::Measured(_)) {
            return;
        }
        let mut shard = self.shard(worker);
        let entry = shard
            .errors
            .entry((kind, error.code.clone()))
            .or_insert_with(|| ErrorCount {
                transaction: self.types[kind].into(),
                code: error.code.clone(),
                kind: error.kind.name().into(),
                message: error.message.clone(),
                count: 0,
            });
        entry.count += 1;
    }

    /// Ends the window now: with every shard held, no sample is between its clock and its place.
    pub fn end_now(&self) {
        let Some(schedule) = self.schedule() else {
            return;
        };
        let _held: Vec<_> = (0..self.shards.len())
            .map(|worker| self.shard(worker))
            .collect();
        schedule.end_by(monotonic_ns());
    }

    /// Merges all slots of an interval that is over into `merged`. Later slots stay.
    pub fn take(&self, merged: &mut Slot) {
        for worker in 0..self.shards.len() {
            let mut shard = self.shard(worker);
            if shard.open.moment == merged.moment {
                shard.set_aside(Moment::After);
            }
            while let Some(position) = shard
                .over
                .iter()
                .position(|slot| slot.moment == merged.moment)
            {
                let slot = shard.over.swap_remove(position);
                merged.add(&slot);
                shard.spare.push(slot);
            }
        }
    }

    /// Errors inside the window, all workers together.
    pub fn errors(&self) -> Vec<ErrorCount> {
        let mut all: BTreeMap<(usize, String), ErrorCount> = BTreeMap::new();
        for worker in 0..self.shards.len() {
            for (key, error) in &self.shard(worker).errors {
                let sum = all.entry(key.clone()).or_insert_with(|| ErrorCount {
                    count: 0,
                    ..error.clone()
                });
                sum.count += error.count;
            }
        }
        all.into_values().collect()
    }

    fn shard(&self, worker: usize) -> MutexGuard<'_, Shard> {
        // A panic inside a shard ends the drive as a fault; until then its numbers are whole.
        lock(&self.shards[worker % self.shards.len()])
    }
}

impl Shard {
    fn open_for(&mut self, moment: Moment) {
        if self.open.moment != moment {
            self.set_aside(moment);
        }
    }

    fn set_aside(&mut self, next: Moment) {
        if self.open.moment == Moment::After {
            // Nobody takes what ended after the window, and an interval taken early leaves this slot empty: set aside
            // it would stay for ever.
            self.open.reset(next);
            return;
        }
        let types = self.open.counts.len();
        let mut slot = self.spare.pop().unwrap_or_else(|| Slot::new(next, types));
        slot.reset(next);
        let over = std::mem::replace(&mut self.open, slot);
        self.over.push(over);
    }
}

#[cfg(test)]
mod tests {
    mod merging;

    use super::*;
    use crate::drive::schedule::Measure;
    use crate::driver::ErrorKind;
    use std::thread;

    use crate::tpcc::inputs::Kind;

    const HOUR_NS: i64 = 3_600_000_000_000;
    const KINDS: usize = Kind::NAMES.len();

    /// A recorder in its window, of this length, from now on.
    fn recording(shards: usize, length: Measure) -> Recorder {
        let recorder = Recorder::new(shards, &Kind::NAMES);
        let begin_ns = monotonic_ns();
        recorder.begin(Schedule::new(
            begin_ns,
            Measure::DurationNs(0),
            HOUR_NS,
            length,
        ));
        recorder
    }

    /// Records the end of a transaction of nine statements.
    fn end(
        recorder: &Recorder,
        (worker, kind): (usize, Kind),
        outcome: Outcome,
        started_ns: i64,
        retried: u64,
    ) -> bool {
        let run = Run {
            outcome,
            started_ns,
            late_ns: None,
            retried,
            statements: 9,
        };
        recorder.ended(worker, kind as usize, &run)
    }

    fn measured(recorder: &Recorder) -> Slot {
        let mut merged = Slot::new(Moment::Measured(0), KINDS);
        recorder.take(&mut merged);
        merged
    }

    #[test]
    fn every_transaction_asked_for_is_counted_once_however_many_threads_record() {
        let recorder = recording(3, Measure::Transactions(1_000));
        thread::scope(|scope| {
            for worker in 0..5 {
                let recorder = &recorder;
                scope.spawn(move || {
                    while !end(
                        recorder,
                        (worker, Kind::Payment),
                        Outcome::Committed,
                        monotonic_ns(),
                        0,
                    ) {}
                });
            }
        });
        let slot = measured(&recorder);
        assert_eq!(slot.counts[Kind::Payment as usize].committed, 1_000);
        assert_eq!(slot.counts[Kind::Payment as usize].statements, 9_000);
        assert_eq!(slot.latencies[Kind::Payment as usize].len(), 1_000);
        assert!(recorder.totals().0 >= 1_000);
    }

    #[test]
    fn failed_transactions_have_no_latency_and_errors_outside_the_window_only_a_total() {
        let recorder = recording(1, Measure::DurationNs(HOUR_NS));
        let error = DriverError {
            kind: ErrorKind::Deadlock,
            code: "1213".into(),
            message: "m".into(),
            retryable: true,
        };
        recorder.error(0, Kind::Delivery as usize, &error);
        end(
            &recorder,
            (0, Kind::Delivery),
            Outcome::Failed,
            monotonic_ns(),
            2,
        );
        recorder.end_now();
        recorder.error(0, Kind::Delivery as usize, &error);
        assert!(
            end(
                &recorder,
                (0, Kind::Delivery),
                Outcome::Committed,
                monotonic_ns(),
                0
            ),
            "the window is over"
        );
        let slot = measured(&recorder);
        let counts = slot.counts[Kind::Delivery as usize];
        assert_eq!((counts.committed, counts.failed, counts.retried), (0, 1, 2));
        assert!(slot.latencies[Kind::Delivery as usize].is_empty());
        assert_eq!(
            recorder
                .errors()
                .iter()
                .map(|error| error.count)
                .collect::<Vec<_>>(),
            [1]
        );
        assert_eq!(recorder.totals(), (2, 2));
    }

    #[test]
    fn a_latency_beyond_the_longest_is_kept_as_the_longest() {
        let recorder = recording(1, Measure::DurationNs(HOUR_NS));
        end(
            &recorder,
            (0, Kind::NewOrder),
            Outcome::Committed,
            monotonic_ns() - 2 * HOUR_NS,
            0,
        );
        let slot = measured(&recorder);
        assert_eq!(slot.latencies[0].len(), 1);
        assert!(slot.latencies[0].max() >= LONGEST_NS / 1_000 * 999);
        assert_eq!(slot.counts[0].saturated, 1, "and said to be so");
    }
}
