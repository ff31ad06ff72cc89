//! Follows the jobs from the thread that began them: merges intervals, says progress, writes the files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::event::Usage;
use fairtrial_protocol::file::{FileCounters, FileDrive};
use fairtrial_protocol::load::{Driven, Progress, Window};

use super::job::KINDS;
use crate::drive::files::{LatencyLog, Timeline, write_result};
use crate::drive::recorder::{Recorder, Slot};
use crate::drive::schedule::{Moment, Schedule};
use crate::drive::usage;
use crate::error::LoadError;
use crate::progress::{self, RateReport};

/// How often jobs are looked at.
pub const LOOK: Duration = Duration::from_millis(10);

/// What has been followed so far.
pub struct FileCollector<'a> {
    directory: PathBuf,
    parameters: &'a FileDrive,
    progress: &'a mut dyn Write,
    latency: LatencyLog,
    timeline: Timeline,
    merged: Slot,
    window: Slot,
    moment: Moment,
    client: Usage,
}

impl<'a> FileCollector<'a> {
    /// Creates the files.
    pub fn open(parameters: &'a FileDrive, progress: &'a mut dyn Write) -> Result<Self, LoadError> {
        let directory = Path::new(&parameters.output_directory);
        Ok(Self {
            directory: directory.to_owned(),
            parameters,
            progress,
            latency: LatencyLog::create(directory, "latency", &KINDS)?,
            timeline: Timeline::create(directory, &KINDS, &[])?,
            merged: Slot::new(Moment::After, KINDS.len()),
            window: Slot::new(Moment::After, KINDS.len()),
            moment: Moment::Measured(0),
            client: usage::now(),
        })
    }

    /// The window is about to begin: what jobs cost counts from here. Asked before they go on, not after: on one
    /// processor they may have done much before this thread runs again.
    pub fn begin(&mut self) {
        self.client = usage::now();
    }

    /// Follows the window to its end.
    pub fn follow(
        &mut self,
        recorder: &Recorder,
        schedule: &Schedule,
        running: &AtomicUsize,
    ) -> Result<(), LoadError> {
        let time_ns = schedule.window_ns();
        progress::say(self.progress, &Progress::Measuring { time_ns })?;
        let mut rate = RateReport::new(time_ns);
        while monotonic_ns() < schedule.end_ns() && running.load(Ordering::Acquire) > 0 {
            let now_ns = monotonic_ns();
            let end_ns = schedule.span(self.moment).1;
            if now_ns >= end_ns {
                self.write(recorder, schedule)?;
                rate.note(&self.merged.latencies);
                continue;
            }
            rate.say(self.progress, now_ns, || recorder.totals())?;
            let left =
                Duration::from_nanos((end_ns.min(schedule.end_ns()) - now_ns).unsigned_abs());
            thread::sleep(left.min(LOOK));
        }
        self.client = usage::between(&self.client, &usage::now());
        let time_ns = schedule.end_ns().min(monotonic_ns());
        progress::say(self.progress, &Progress::Finishing { time_ns })
    }

    /// Appends the present interval to the files.
    fn write(&mut self, recorder: &Recorder, schedule: &Schedule) -> Result<(), LoadError> {
        self.merged.reset(self.moment);
        recorder.take(&mut self.merged);
        let span = schedule.span(self.moment);
        self.latency.append(&self.merged.latencies, span)?;
        self.window.add(&self.merged);
        self.timeline.append(&self.merged, None, true, span.0)?;
        self.moment = schedule.next(self.moment);
        Ok(())
    }

    /// Writes the counters before and after the window.
    pub fn write_counters(&self, edges: &[FileCounters; 2]) -> Result<(), LoadError> {
        let path = self.directory.join("counters.json");
        let text = serde_json::to_vec(edges).map_err(std::io::Error::other);
        text.and_then(|text| std::fs::write(&path, text))
            .map_err(|source| LoadError::Output { path, source })
    }

    /// Writes what is left once all jobs have ended, and the result.
    pub fn finish(mut self, recorder: &Recorder) -> Result<Driven, LoadError> {
        let Some(schedule) = recorder.schedule() else {
            return Err(LoadError::Panicked("file access"));
        };
        while self.moment != Moment::After {
            self.write(recorder, schedule)?;
        }
        self.timeline.finish()?;
        let driven = Driven {
            window: Window {
                start_ns: schedule.window_ns(),
                end_ns: schedule.end_ns(),
            },
            transactions: KINDS
                .iter()
                .map(ToString::to_string)
                .zip(self.window.counts.iter().copied())
                .collect(),
            arrivals: None,
            search: None,
            errors: recorder.errors(),
            drawn: [].into(),
            effective: effective(self.parameters),
            client: self.client,
            loops: Vec::new(),
        };
        write_result(&self.directory, &driven)?;
        Ok(driven)
    }
}

/// Nothing but the settings that shaped the accesses: what a database's connection would read back.
fn effective(parameters: &FileDrive) -> BTreeMap<String, String> {
    [
        ("block_bytes", parameters.block_bytes.to_string()),
        (
            "blocks_per_file",
            (parameters.bytes / u64::from(parameters.block_bytes)).to_string(),
        ),
        ("seed", parameters.seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
