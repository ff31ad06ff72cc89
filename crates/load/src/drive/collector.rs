//! Follows a drive from the thread that began it: sets the schedule, merges intervals, says progress, ends the window.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::event::Usage;
use fairtrial_protocol::load::{ClientLoop, Drive, Driven, Progress, Window};

use super::arrivals::{ArrivalQueue, ArrivalStream};
use super::backlog::{Backlog, columns};
use super::files::{LatencyLog, Timeline, write_result};
use super::fleet::{self, START_LEAD_NS};
use super::recorder::Slot;
use super::schedule::{Measure, Moment, Schedule, nanoseconds};
use super::usage;
use super::user::DriveState;
use crate::driver::{Driver, DriverError, ErrorKind};
use crate::error::LoadError;
use crate::progress::{self, RateReport};
use crate::shared::lock;
use crate::workload::Workload;
use fairtrial_protocol::limits::Limits;

/// How often the collector looks at signals and the window's end: late by no more than a scheduler's tick or two.
const LOOK: Duration = Duration::from_millis(10);

/// Merges intervals and writes the files.
pub struct Collector<'a> {
    directory: PathBuf,
    progress: &'a mut dyn Write,
    latency: LatencyLog,
    backlog: Option<Backlog>,
    timeline: Timeline,
    merged: Slot,
    window: Slot,
    limits: Limits,
}

/// What following a drive has found.
pub struct Collection {
    moment: Moment,
    client: Usage,
    stalled: Option<LoadError>,
}

/// What the collector remembers between two looks.
struct StallWatch {
    started: Usage,
    measuring: bool,
    rate: RateReport,
    moved_ns: i64,
    ended_before: u64,
}

impl<'a> Collector<'a> {
    /// Creates the files in a directory that exists, for transactions of these types and, in an open loop, this stream
    /// of arrivals and its queue.
    pub fn open(
        directory: &Path,
        types: &[&'static str],
        (stream, queue): (Option<&ArrivalStream>, Option<&ArrivalQueue>),
        limits: Limits,
        progress: &'a mut dyn Write,
    ) -> Result<Self, LoadError> {
        let has_timeout = queue.is_some_and(ArrivalQueue::has_timeout);
        let backlog = stream.map(|stream| Backlog::create(directory, stream, has_timeout));
        Ok(Self {
            directory: directory.to_owned(),
            progress,
            latency: LatencyLog::create(directory, "latency", types)?,
            backlog: backlog.transpose()?,
            timeline: Timeline::create(directory, types, columns(queue))?,
            merged: Slot::new(Moment::After, types.len()),
            window: Slot::new(Moment::After, types.len()),
            limits,
        })
    }

    /// Follows the drive until its window is over and everyone has been asked to stop.
    pub fn collect<D: Driver, W: Workload>(
        &mut self,
        shared: &DriveState<D, W>,
        measure: Measure,
        end_signal: &AtomicBool,
    ) -> Result<Collection, LoadError> {
        wait_for_users(shared, end_signal, self.limits.connected)?;
        let parameters = shared.parameters();
        let start_ns = match &parameters.fleet {
            None => monotonic_ns() + START_LEAD_NS,
            Some(share) => {
                fleet::agreed_start(share, self.progress, end_signal, self.limits.connected)?
            }
        };
        let interval_ns = i64::from(parameters.interval_ms) * 1_000_000;
        let ramp = parameters.ramp_up_transactions.map_or(
            Measure::DurationNs(nanoseconds(parameters.ramp_up_s)),
            Measure::Transactions,
        );
        let schedule = Schedule::new(start_ns, ramp, interval_ns, measure);
        let schedule = shared.recorder.begin(schedule);
        progress::say(
            self.progress,
            &Progress::RampUp {
                time_ns: schedule.ramp_ns,
            },
        )?;
        let measured = self.follow(shared, schedule, end_signal)?;
        shared.stop.stop();
        progress::say(
            self.progress,
            &Progress::Finishing {
                time_ns: schedule.end_ns(),
            },
        )?;
        Ok(measured)
    }

    fn follow<D: Driver, W: Workload>(
        &mut self,
        shared: &DriveState<D, W>,
        schedule: &Schedule,
        end_signal: &AtomicBool,
    ) -> Result<Collection, LoadError> {
        let mut watch = StallWatch {
            started: usage::now(),
            measuring: false,
            rate: RateReport::new(schedule.ramp_ns),
            moved_ns: schedule.ramp_ns,
            ended_before: 0,
        };
        let mut moment = schedule.moment(schedule.ramp_ns);
        let mut stalled = None;
        loop {
            let now_ns = monotonic_ns();
            // Who has left before the end has found that nothing will arrive any more; several clients have one window.
            let all_left = shared.left.load(Ordering::Acquire) == shared.users;
            if end_signal.load(Ordering::Relaxed)
                || (all_left && shared.parameters().fleet.is_none())
            {
                shared.recorder.end_now();
            }
            if !watch.measuring && now_ns >= schedule.window_ns() {
                watch.measuring = true;
                watch.started = usage::now();
                progress::say(
                    self.progress,
                    &Progress::Measuring {
                        time_ns: schedule.window_ns(),
                    },
                )?;
            }
            if now_ns >= schedule.end_ns() {
                let client = usage::between(&watch.started, &usage::now());
                return Ok(Collection {
                    moment,
                    client,
                    stalled,
                });
            }
            if now_ns >= schedule.span(moment).1 {
                self.write(shared, schedule, moment)?;
                watch.rate.note(&self.merged.latencies);
                moment = schedule.next(moment);
                continue;
            }
            let totals = shared.recorder.totals();
            if totals.0 != watch.ended_before {
                (watch.ended_before, watch.moved_ns) = (totals.0, now_ns);
            }
            watch.rate.say(self.progress, now_ns, || totals)?;
            if self.is_at_rest(shared, schedule, now_ns) {
                watch.moved_ns = now_ns; // a pause is no stall
            }
            if let Some(error) = self.stall(schedule, &watch, shared.parameters(), now_ns) {
                stalled = Some(error);
                shared.recorder.end_now();
                shared.stop.abandon();
                continue;
            }
            let next_ns = schedule.span(moment).1.min(schedule.end_ns());
            let left = Duration::from_nanos(u64::try_from(next_ns - now_ns).unwrap_or_default());
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Whether the system has nothing to answer: in an open loop everyone has begun who should have, in a closed one all
    /// users key or think.
    fn is_at_rest<D: Driver, W: Workload>(
        &mut self,
        shared: &DriveState<D, W>,
        schedule: &Schedule,
        now_ns: i64,
    ) -> bool {
        let (Some(backlog), Some(queue)) = (&mut self.backlog, &shared.queue) else {
            return shared.busy.load(Ordering::Relaxed) == 0;
        };
        schedule.missing().is_some() && backlog.waiting(queue, now_ns - schedule.ramp_ns) == 0
    }

    /// The error of a drive that waits for transactions which do not come.
    fn stall(
        &self,
        schedule: &Schedule,
        watch: &StallWatch,
        parameters: &Drive,
        now_ns: i64,
    ) -> Option<LoadError> {
        let seconds = self.limits.stall.as_secs_f64();
        let missing = schedule.missing()?;
        (now_ns - watch.moved_ns.max(schedule.ramp_ns) > nanoseconds(seconds)).then_some(
            LoadError::Stalled {
                seconds,
                missing,
                transactions: parameters.ramp_up_transactions.unwrap_or_default()
                    + parameters.transactions.unwrap_or_default(),
            },
        )
    }

    /// Merges one interval that is over and appends it to the files.
    fn write<D: Driver, W: Workload>(
        &mut self,
        shared: &DriveState<D, W>,
        schedule: &Schedule,
        moment: Moment,
    ) -> Result<(), LoadError> {
        self.merged.reset(moment);
        shared.recorder.take(&mut self.merged);
        let span = schedule.span(moment);
        let measured = matches!(moment, Moment::Measured(_));
        let arrivals = match (&mut self.backlog, &shared.queue) {
            (Some(backlog), Some(queue)) => {
                Some(backlog.close(queue, schedule, span, &self.merged)?)
            }
            _ => None,
        };
        if measured {
            self.latency.append(&self.merged.latencies, span)?;
            self.window.add(&self.merged);
        }
        self.timeline
            .append(&self.merged, arrivals, measured, span.0)
    }

    /// Writes what is left once all users have ended, and the result; returns it with the window's sums.
    pub fn finish<D: Driver, W: Workload>(
        mut self,
        shared: &DriveState<D, W>,
        measured: Collection,
        (effective, loops): (BTreeMap<String, String>, Vec<ClientLoop>),
    ) -> Result<(Driven, Slot), LoadError> {
        let Some(schedule) = shared.recorder.schedule() else {
            return Err(LoadError::Panicked("collector"));
        };
        let mut moment = measured.moment;
        while moment != Moment::After {
            self.write(shared, schedule, moment)?;
            moment = schedule.next(moment);
        }
        self.timeline.finish()?;
        let end_ns = schedule.end_ns();
        let driven = Driven {
            window: Window {
                start_ns: schedule.window_ns().min(end_ns),
                end_ns,
            },
            transactions: shared
                .recorder
                .types()
                .iter()
                .map(ToString::to_string)
                .zip(self.window.counts.iter().copied())
                .collect(),
            arrivals: self
                .backlog
                .map(|backlog| backlog.sums(shared.queue.as_ref())),
            search: None,
            errors: shared.recorder.errors(),
            drawn: drawn(shared),
            effective,
            client: measured.client,
            loops,
        };
        write_result(&self.directory, &driven)?;
        measured.stalled.map_or(Ok((driven, self.window)), Err)
    }
}

/// What was drawn by all users, and the constants it was drawn with.
fn drawn<D: Driver, W: Workload>(shared: &DriveState<D, W>) -> BTreeMap<String, u64> {
    let drawn = lock(&shared.drawn);
    let constants = shared.workload.constants();
    drawn
        .iter()
        .chain(&constants)
        .map(|(name, count)| ((*name).into(), *count))
        .collect()
}

/// Waits until all users are connected, or the end is asked for; an error if one is refused.
fn wait_for_users<D: Driver, W: Workload>(
    shared: &DriveState<D, W>,
    end_signal: &AtomicBool,
    limit: Duration,
) -> Result<(), LoadError> {
    let began_ns = monotonic_ns();
    while shared.connected.load(Ordering::Acquire) < shared.users {
        let refused = lock(&shared.refused).take();
        let late = monotonic_ns() - began_ns > nanoseconds(limit.as_secs_f64());
        if let Some(source) = refused.or_else(|| late.then(|| too_late(limit))) {
            return Err(shared.driver.refused(source));
        }
        if end_signal.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn too_late(limit: Duration) -> DriverError {
    DriverError {
        kind: ErrorKind::Connection,
        code: "connect_timeout".into(),
        message: format!(
            "not all users were connected after {} s",
            limit.as_secs_f64()
        ),
        retryable: false,
    }
}
