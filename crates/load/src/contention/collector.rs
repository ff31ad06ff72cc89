//! Follows the threads from the one that began them: merges intervals, says progress, writes the files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::event::Usage;
use fairtrial_protocol::load::{Driven, Outcomes, Progress, Window};
use fairtrial_protocol::locks::Contention;

use super::worker::ContentionState;
use crate::drive::files::{LatencyLog, Timeline, write_json, write_result};
use crate::drive::recorder::Slot;
use crate::drive::schedule::{Moment, Schedule};
use crate::drive::usage;
use crate::error::LoadError;
use crate::progress::{self, RateReport};

/// The one type of transaction.
pub const KINDS: [&str; 1] = ["acquisition"];

/// How often it looks whether the drive is over: rarely, as it takes a processor from a thread when it does.
const LOOK: Duration = Duration::from_millis(50);

/// What has been followed so far.
pub struct ContentionCollector<'a> {
    directory: PathBuf,
    progress: &'a mut dyn Write,
    latency: LatencyLog,
    timeline: Timeline,
    /// Intervals that not all threads have left behind.
    pending: BTreeMap<Moment, Slot>,
    spare: Vec<Slot>,
    moment: Moment,
    /// Acquisitions of the window, and of the whole drive as far as they are handed over.
    window: Outcomes,
    handed: u64,
    rate: RateReport,
    client: Option<Usage>,
    spent: Usage,
}

impl<'a> ContentionCollector<'a> {
    /// Creates the files.
    pub fn open(directory: &str, progress: &'a mut dyn Write) -> Result<Self, LoadError> {
        let directory = Path::new(directory);
        Ok(Self {
            directory: directory.to_owned(),
            progress,
            latency: LatencyLog::create(directory, "latency", &KINDS)?,
            timeline: Timeline::create(directory, &KINDS, &[])?,
            pending: BTreeMap::new(),
            spare: Vec::new(),
            moment: Moment::RampUp(0),
            window: Outcomes::default(),
            handed: 0,
            rate: RateReport::default(),
            client: None,
            spent: usage::between(&usage::now(), &usage::now()),
        })
    }

    /// Follows the drive to its end, which it brings about when the time has come or somebody asks.
    pub fn follow(
        &mut self,
        shared: &ContentionState<'_>,
        schedule: &Schedule,
        end_signal: &Arc<AtomicBool>,
    ) -> Result<(), LoadError> {
        self.moment = schedule.moment(schedule.ramp_ns);
        self.rate = RateReport::new(schedule.ramp_ns);
        let time_ns = schedule.ramp_ns;
        progress::say(self.progress, &Progress::RampUp { time_ns })?;
        while !shared.stop.load(Ordering::Acquire) {
            let now_ns = monotonic_ns();
            if end_signal.load(Ordering::Acquire) {
                schedule.end_by(now_ns);
            }
            if now_ns >= schedule.end_ns() {
                break;
            }
            if now_ns >= schedule.window_ns() && self.client.is_none() {
                self.client = Some(usage::now());
                let time_ns = schedule.window_ns();
                progress::say(self.progress, &Progress::Measuring { time_ns })?;
            }
            self.collect(shared);
            self.write_what_is_over(shared, schedule)?;
            self.rate.say(self.progress, now_ns, || (self.handed, 0))?;
            let next_ns = if self.client.is_none() {
                schedule.window_ns().min(schedule.end_ns())
            } else {
                schedule.end_ns()
            };
            let left = Duration::from_nanos((next_ns - monotonic_ns()).max(0).unsigned_abs());
            thread::sleep(left.min(LOOK));
        }
        shared.stop.store(true, Ordering::Release);
        if let Some(before) = &self.client {
            self.spent = usage::between(before, &usage::now());
        }
        let time_ns = schedule.end_ns().min(monotonic_ns());
        progress::say(self.progress, &Progress::Finishing { time_ns })
    }

    fn collect(&mut self, shared: &ContentionState<'_>) {
        for shelf in &shared.shelves {
            shelf.take(|slot| {
                self.handed += slot.counts[0].committed;
                if slot.moment == Moment::After {
                    return;
                }
                let spare = &mut self.spare;
                let sum = self.pending.entry(slot.moment).or_insert_with(|| {
                    let mut fresh = spare.pop().unwrap_or_else(|| Slot::new(slot.moment, 1));
                    fresh.reset(slot.moment);
                    fresh
                });
                sum.add(slot);
            });
        }
    }

    /// Writes the intervals that every thread has left behind. Those before the end only: which one is the last is not
    /// known yet.
    fn write_what_is_over(
        &mut self,
        shared: &ContentionState<'_>,
        schedule: &Schedule,
    ) -> Result<(), LoadError> {
        let open = shared.shelves.iter().map(super::tally::Shelf::open).min();
        while open.is_some_and(|open| self.moment < open) && self.moment != Moment::After {
            // Handed over since they were collected: what is open was read after that.
            self.collect(shared);
            self.write(schedule)?;
        }
        Ok(())
    }

    /// Appends the present interval to the files.
    fn write(&mut self, schedule: &Schedule) -> Result<(), LoadError> {
        let slot = self
            .pending
            .remove(&self.moment)
            .or_else(|| self.spare.pop());
        let mut slot = slot.unwrap_or_else(|| Slot::new(self.moment, 1));
        if slot.moment != self.moment {
            slot.reset(self.moment);
        }
        let span = schedule.span(self.moment);
        let is_measured = matches!(self.moment, Moment::Measured(_));
        if is_measured {
            self.latency.append(&slot.latencies, span)?;
            self.window.committed += slot.counts[0].committed;
            self.window.saturated += slot.counts[0].saturated;
        }
        self.timeline.append(&slot, None, is_measured, span.0)?;
        self.spare.push(slot);
        self.moment = schedule.next(self.moment);
        Ok(())
    }

    /// Writes what is left once all threads have ended, and the result.
    pub fn finish(
        mut self,
        shared: &ContentionState<'_>,
        contention: &Contention,
        effective: BTreeMap<String, String>,
    ) -> Result<Driven, LoadError> {
        let Some(schedule) = shared.schedule.get() else {
            return Err(LoadError::Panicked("lock"));
        };
        self.collect(shared);
        self.fold(schedule);
        while self.moment != Moment::After {
            self.write(schedule)?;
        }
        self.timeline.finish()?;
        write_json(&self.directory.join("contention.json"), contention)?;
        let driven = Driven {
            window: Window {
                start_ns: schedule.window_ns(),
                end_ns: schedule.end_ns(),
            },
            transactions: [(KINDS[0].to_owned(), self.window)].into(),
            arrivals: None,
            search: None,
            errors: Vec::new(),
            drawn: [].into(),
            effective,
            client: self.spent,
            loops: Vec::new(),
        };
        write_result(&self.directory, &driven)?;
        Ok(driven)
    }

    /// A thread that read its clock just before another one ended the window may have seen an interval that there is not:
    /// what it counted there belongs to the last one.
    fn fold(&mut self, schedule: &Schedule) {
        let last = schedule.moment(schedule.end_ns() - 1);
        let beyond: Vec<_> = self
            .pending
            .keys()
            .copied()
            .filter(|moment| *moment > last)
            .collect();
        for moment in beyond {
            if let Some(slot) = self.pending.remove(&moment) {
                let sum = self
                    .pending
                    .entry(last)
                    .or_insert_with(|| Slot::new(last, 1));
                sum.add(&slot);
            }
        }
    }
}
