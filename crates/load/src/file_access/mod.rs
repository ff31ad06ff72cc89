//! Access to plain files: one file per job, blocks chosen by a distribution that reaches all of them, each block read
//! checked to be the right one, latencies recorded like a database's.
//!
//! Jobs warm up by a number of accesses, wait for each other while the kernel's counters are read, and then are
//! measured: what warming up cost is in no figure.

mod choice;
mod collector;
pub mod content;
pub mod counters;
mod engine;
mod job;
mod permutation;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::file::{FileCounters, FileDrive, FileEngine};
use fairtrial_protocol::load::Driven;

use self::collector::FileCollector;
use self::job::{FileJob, KINDS, StopCondition};
use crate::drive::recorder::Recorder;
use crate::drive::schedule::{Measure, Schedule, nanoseconds};
use crate::error::{LoadError, require, require_count, require_interval};
use crate::gate::Gate;
use crate::stop::end_signal;

/// More jobs than this are more threads than help any machine.
const JOBS_LIMIT: u32 = 4096;

/// Entries that a ring may have.
const DEPTH_LIMIT: u32 = 4096;

/// A window that ends by a number of accesses: a year, which nothing takes.
const ENDLESS_NS: i64 = 31_536_000_000_000_000;

/// What jobs and the thread that follows them share.
struct FileDriveState {
    recorder: Recorder,
    /// Who has warmed up waits here until all have, the counters are read and the window has begun.
    gate: Gate,
    /// Ends warm-up and window early: somebody asked, or a job failed.
    stop: Arc<AtomicBool>,
    failed: AtomicBool,
    running: AtomicUsize,
}

/// Accesses blocks and writes the files; the result is what `result.json` holds.
pub fn drive(parameters: &FileDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    validate(parameters)?;
    let jobs = (0..parameters.jobs)
        .map(|number| FileJob::open(number, parameters))
        .collect::<Result<Vec<_>, _>>()?;
    let stop = end_signal()?;
    let shared = FileDriveState {
        recorder: Recorder::new(jobs.len(), &KINDS),
        gate: Gate::default(),
        stop,
        failed: false.into(),
        running: jobs.len().into(),
    };
    let collector = FileCollector::open(parameters, progress)?;
    thread::scope(|scope| {
        let shared = &shared;
        let mut workers = Vec::new();
        for job in jobs {
            let run = move || live(job, parameters, shared);
            match thread::Builder::new().spawn_scoped(scope, run) {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    shared.stop.store(true, Ordering::Release);
                    shared.gate.open(false);
                    return Err(LoadError::Start {
                        what: "a thread",
                        source,
                    });
                }
            }
        }
        let followed = follow(collector, parameters, shared);
        for worker in workers {
            worker
                .join()
                .map_err(|_| LoadError::Panicked("file access"))??;
        }
        followed?.finish(&shared.recorder)
    })
}

/// A job's life. It comes to the gate whatever happens, because others wait there.
fn live(
    mut job: FileJob,
    parameters: &FileDrive,
    shared: &FileDriveState,
) -> Result<(), LoadError> {
    let until = |accesses| StopCondition {
        accesses,
        stop: &shared.stop,
    };
    let warm = job.run(&until(Some(parameters.warm_up_accesses)), None);
    if warm.is_err() {
        shared.failed.store(true, Ordering::Release);
        shared.stop.store(true, Ordering::Release);
    }
    if !shared.gate.wait() {
        return warm;
    }
    let ran = warm.and_then(|()| job.run(&until(parameters.accesses), Some(&shared.recorder)));
    if ran.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    if shared.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        shared.recorder.end_now();
    }
    ran
}

/// Opens the gate once the window has begun and its counters are read, and follows the jobs to their end.
fn follow<'a>(
    mut collector: FileCollector<'a>,
    parameters: &FileDrive,
    shared: &FileDriveState,
) -> Result<FileCollector<'a>, LoadError> {
    let first = content::path(Path::new(&parameters.directory), 0);
    shared.gate.gathered(parameters.jobs);
    let before = counters::read(&first);
    let length_ns = parameters.duration_s.map_or(ENDLESS_NS, nanoseconds);
    let schedule = shared.recorder.begin(Schedule::new(
        monotonic_ns(),
        Measure::DurationNs(0),
        i64::from(parameters.interval_ms) * 1_000_000,
        Measure::DurationNs(length_ns),
    ));
    if before.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    collector.begin();
    shared.gate.open(true);
    let followed = collector.follow(&shared.recorder, schedule, &shared.running);
    if followed.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    while shared.running.load(Ordering::Acquire) > 0 {
        thread::sleep(collector::LOOK);
    }
    followed?;
    collector.write_counters(&[before?, counters::read(&first)?] as &[FileCounters; 2])?;
    Ok(collector)
}

fn validate(parameters: &FileDrive) -> Result<(), LoadError> {
    choice::validate(&parameters.distribution)?;
    let block = u64::from(parameters.block_bytes);
    let unit = content::UNIT_BYTES as u64;
    let is_whole = block > 0 && block.is_multiple_of(unit);
    let is_queued = parameters.engine == FileEngine::IoUring;
    let time = |seconds: f64| seconds.is_finite() && seconds > 0.0 && seconds < 1e7;
    require_count("jobs", parameters.jobs, JOBS_LIMIT)?;
    require("block_bytes", is_whole, "must be a multiple of 512")?;
    require(
        "bytes",
        is_whole && parameters.bytes > 0 && parameters.bytes.is_multiple_of(block),
        "must be whole blocks, and at least one",
    )?;
    require_count("depth", parameters.depth, DEPTH_LIMIT)?;
    require(
        "depth",
        parameters.depth == 1 || is_queued,
        "must be 1: only io_uring has several accesses under way",
    )?;
    require(
        "direct",
        !(parameters.direct && parameters.engine == FileEngine::Mmap),
        "a mapping is the page cache: mmap cannot bypass it",
    )?;
    require(
        "write_share",
        (0.0..=1.0).contains(&parameters.write_share),
        "must be between 0 and 1",
    )?;
    require_interval(parameters.interval_ms)?;
    require(
        "duration_s",
        parameters.duration_s.is_none_or(time),
        "must be a time in seconds above 0",
    )?;
    require(
        "accesses",
        parameters.accesses.is_some() != parameters.duration_s.is_some(),
        "exactly one of accesses and duration_s must be given",
    )?;
    require(
        "accesses",
        parameters.accesses != Some(0),
        "must be at least 1",
    )
}
