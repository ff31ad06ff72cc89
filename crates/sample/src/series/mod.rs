//! What others count: text endpoints and commands, each read by a thread of its own, so that one that hangs, grows or
//! dies costs its own samples and nobody else's.

pub mod command;
mod exporter;
pub mod exposition;
pub mod reader;
mod rows;

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::sample::{SampledCommand, SampledExporter};

use crate::error::{SHORTEST_SERVER_INTERVAL_MS, SampleError};
use crate::table::ReadingTime;
use command::SampledProgram;
use exporter::Exporter;
pub use exporter::http_get;
use exposition::{MOST_SAMPLES, too_many};
use reader::{SeriesReader, SeriesValue};
use rows::SeriesTable;

/// How long a source may need until its first answer: a service may begin to listen after it says that it is ready.
const START_LIMIT_NS: i64 = 5_000_000_000;
const START_PAUSE: Duration = Duration::from_millis(100);
/// Longest reading: what comes later tells of no time that anybody could name.
const LONGEST_READING_NS: i64 = 5_000_000_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
/// A reading has this share of its interval, in tenths, so that it is over before the next begins.
const READING_TENTHS: i64 = 9;

/// Series of the sampler's own, in every reading: whether it gave values, and how many gave none so far.
const UP: &str = "fairtrial_up";
const MISSED: &str = "fairtrial_missed_samples_total";

/// A source being read, by a thread.
pub struct SeriesSampler {
    name: String,
    thread: JoinHandle<Result<u64, SampleError>>,
    stop: Option<Sender<()>>,
    said: Receiver<String>,
}

impl SeriesSampler {
    /// Starts to read an endpoint, whose first answer it waits for.
    pub fn exporter(parameters: &SampledExporter, directory: &Path) -> Result<Self, SampleError> {
        let reader = Exporter::new(parameters).map_err(|reason| SampleError::Series {
            what: parameters.url.clone(),
            reason,
        })?;
        Self::start(&parameters.name, parameters.interval_ms, reader, directory)
    }

    /// Starts to run a command, whose first value it waits for.
    pub fn command(parameters: &SampledCommand, directory: &Path) -> Result<Self, SampleError> {
        let reader = SampledProgram::new(parameters).map_err(|reason| SampleError::Series {
            what: parameters.argv.join(" "),
            reason,
        })?;
        Self::start(&parameters.name, parameters.interval_ms, reader, directory)
    }

    fn start(
        name: &str,
        interval_ms: u32,
        reader: impl SeriesReader,
        directory: &Path,
    ) -> Result<Self, SampleError> {
        if interval_ms < SHORTEST_SERVER_INTERVAL_MS {
            return Err(SampleError::ServerInterval {
                given_ms: interval_ms,
            });
        }
        let (stop, stopped) = channel();
        let (sender, said) = channel();
        let (first, began) = channel();
        let table = SeriesTable::create(&directory.join(format!("telemetry-{name}.arrows")))?;
        let watch = SeriesWatch {
            reader,
            table,
            interval_ns: i64::from(interval_ms) * NANOSECONDS_PER_MILLISECOND,
            seen: HashSet::new(),
            missed: 0,
            gap: None,
            said: sender,
        };
        let thread = thread::Builder::new()
            .name(format!("series-{name}").chars().take(15).collect())
            .spawn(move || watch.run(&stopped, &first))
            .map_err(SampleError::Wait)?;
        let sampler = Self {
            name: name.to_owned(),
            thread,
            stop: Some(stop),
            said,
        };
        match began.recv() {
            Ok(()) => Ok(sampler),
            Err(_) => sampler
                .thread
                .join()
                .map_err(|_| SampleError::Panicked)?
                .and(Err(SampleError::Panicked)),
        }
    }

    /// As its file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was said since the last time.
    pub fn take_warnings(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Tells the thread to read once more and to end the file, and does not wait for it.
    pub fn stop(&mut self) {
        self.stop = None; // that is the sign
    }

    /// Waits until the file has ended; returns how many readings gave nothing, and what was said since.
    pub fn finish(mut self) -> Result<(u64, Vec<String>), SampleError> {
        self.stop();
        let missed = self.thread.join().map_err(|_| SampleError::Panicked)??;
        Ok((missed, self.said.try_iter().collect()))
    }
}

struct SeriesWatch<R> {
    reader: R,
    table: SeriesTable,
    interval_ns: i64,
    seen: HashSet<String>,
    missed: u64,
    gap: Option<SeriesGap>,
    said: Sender<String>,
}

/// A time without values.
struct SeriesGap {
    began_ns: i64,
    missed_before: u64,
    /// The first different ones.
    reasons: Vec<String>,
}

/// A source that goes wrong in more ways at once is not understood by reading them all.
const MOST_REASONS: usize = 3;

impl<R: SeriesReader> SeriesWatch<R> {
    /// Reads until `stop` says so, then once more; returns how many readings are missing.
    fn run(mut self, stop: &Receiver<()>, first: &Sender<()>) -> Result<u64, SampleError> {
        self.reader.begin();
        self.first()?;
        let _ = first.send(());
        let mut deadline_ns = monotonic_ns() + self.interval_ns;
        loop {
            let left_ns = u64::try_from(deadline_ns - monotonic_ns()).unwrap_or_default();
            match stop.recv_timeout(Duration::from_nanos(left_ns)) {
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            let passed = (monotonic_ns() - deadline_ns) / self.interval_ns; // deadlines that passed meanwhile
            self.missed += u64::try_from(passed).unwrap_or_default();
            deadline_ns += (passed + 1) * self.interval_ns;
        }
        self.tick()?;
        self.end_gap(monotonic_ns());
        self.table.finish()?;
        Ok(self.missed)
    }

    /// Reads until there are values, or it is clear that there will be none.
    fn first(&mut self) -> Result<(), SampleError> {
        let until_ns = monotonic_ns() + START_LIMIT_NS;
        loop {
            let (at, values) = self.read();
            match values {
                Ok(values) => return self.append(at, values),
                Err(_) if monotonic_ns() < until_ns => thread::sleep(START_PAUSE),
                Err(reason) => {
                    let what = self.reader.what().to_owned();
                    return Err(SampleError::Series { what, reason });
                }
            }
        }
    }

    /// Reads once; an error only if the file cannot be written.
    fn tick(&mut self) -> Result<(), SampleError> {
        let (at, values) = self.read();
        match values {
            Ok(values) => {
                self.end_gap(at.began_ns);
                self.append(at, values)
            }
            Err(reason) => {
                let gap = self.gap.get_or_insert(SeriesGap {
                    began_ns: at.began_ns,
                    missed_before: self.missed,
                    reasons: Vec::new(),
                });
                if gap.reasons.len() < MOST_REASONS && !gap.reasons.contains(&reason) {
                    gap.reasons.push(reason);
                }
                self.missed += 1;
                let own = self.own(false);
                self.table.append(at, &own)
            }
        }
    }

    fn read(&mut self) -> (ReadingTime, Result<Vec<SeriesValue>, String>) {
        let limit_ns = (self.interval_ns / 10 * READING_TENTHS).min(LONGEST_READING_NS);
        let began_ns = monotonic_ns();
        let answer = self.reader.ask(Duration::from_nanos(
            u64::try_from(limit_ns).unwrap_or_default(),
        ));
        let ended_ns = monotonic_ns();
        let values = answer.and_then(|answer| self.reader.values(answer));
        let values = values.and_then(|values| self.limited(values));
        (ReadingTime { began_ns, ended_ns }, values)
    }

    /// The values, unless they bring more series than a source may have.
    fn limited(&mut self, values: Vec<SeriesValue>) -> Result<Vec<SeriesValue>, String> {
        let new: HashSet<String> = values
            .iter()
            .filter(|each| !self.seen.contains(&each.series))
            .map(|each| each.series.clone())
            .collect();
        if self.seen.len() + new.len() > MOST_SAMPLES {
            return Err(too_many());
        }
        self.seen.extend(new);
        Ok(values)
    }

    fn append(&mut self, at: ReadingTime, mut values: Vec<SeriesValue>) -> Result<(), SampleError> {
        values.extend(self.own(true));
        self.table.append(at, &values)
    }

    fn own(&self, up: bool) -> [SeriesValue; 2] {
        let missed = u32::try_from(self.missed).unwrap_or(u32::MAX);
        [
            (UP, false, f64::from(u8::from(up))),
            (MISSED, true, f64::from(missed)),
        ]
        .map(|(series, counter, value)| SeriesValue {
            series: series.to_owned(),
            counter,
            value,
        })
    }

    fn end_gap(&mut self, now_ns: i64) {
        if let Some(gap) = self.gap.take() {
            let milliseconds = (now_ns - gap.began_ns) / NANOSECONDS_PER_MILLISECOND;
            let readings = self.missed - gap.missed_before;
            let what = self.reader.what();
            // Nobody listens any more when the sampler ends on an error.
            let _ = self.said.send(format!(
                "{what} gave no sample for {milliseconds} ms ({readings} readings): {}",
                gap.reasons.join("; ")
            ));
        }
    }
}
