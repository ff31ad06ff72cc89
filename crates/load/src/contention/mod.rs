//! Threads that take locks and do nothing else: the mechanism of a lock without a database around it.
//!
//! Each thread computes outside, takes a lock that its seed draws, computes inside while it writes what the lock guards,
//! and gives it back. What is done between is counted in turns of a loop, the same for every kind, and not in
//! nanoseconds, which would be calibrated anew for each arm. docs/guides/locks.md says what the figures mean.

mod collector;
mod kinds;
mod section;
mod tally;
mod worker;

use std::collections::BTreeMap;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use fairtrial_locks::{
    Clh, FAST_SPINS, FastConstant, FastLocal, FastPublished, MOST_SPINS, Mcs, Node, QUEUE_LOOKS,
    Spin,
};
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Driven;
use fairtrial_protocol::locks::{Contention, LockDrive, LockKind};

use self::collector::ContentionCollector;
use self::kinds::{
    Fast, Futex, Lock, LockRow, PackedRow, PaddedRow, PthreadMutex, ThreadContext, TicketMutex,
};
use self::section::Sections;
use self::tally::Shelf;
use self::worker::{ContentionState, WorkerTotals};
use crate::drive::schedule::{Measure, Schedule, nanoseconds};
use crate::error::{LoadError, require, require_count, require_interval};
use crate::gate::Gate;
use crate::stop::end_signal;

/// More threads are more histograms than a small machine has memory for, 0.3 MiB each.
const THREADS_LIMIT: u32 = 512;

/// 65,536 locks of 64 lines would take half a GiB: fewer lines for more locks.
const LOCKS_LIMIT: u32 = 65_536;
const LINES_LIMIT: u32 = 64;
const ALL_LINES_LIMIT: u64 = 1 << 20;

/// A section of a tenth of a second, about.
const TURNS_LIMIT: u32 = 100_000_000;

const SAMPLE_LIMIT: u32 = 1_000_000;

/// A window that ends by a number of acquisitions: a year, which nothing takes.
const ENDLESS_NS: i64 = 31_536_000_000_000_000;

/// Takes locks and writes the files; the result is what `result.json` holds.
pub fn drive(parameters: &LockDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
    check_locks(parameters)?;
    check_window(parameters)?;
    match parameters.kind {
        LockKind::Pthread => laid_out::<PthreadMutex<false>>(parameters, progress),
        LockKind::Adaptive => laid_out::<PthreadMutex<true>>(parameters, progress),
        LockKind::Fast => laid_out::<Fast<FastPublished>>(parameters, progress),
        LockKind::FastLocal => laid_out::<Fast<FastLocal>>(parameters, progress),
        LockKind::FastConstant => laid_out::<Fast<FastConstant>>(parameters, progress),
        LockKind::Ticket => laid_out::<TicketMutex>(parameters, progress),
        LockKind::Mcs => laid_out::<Mcs<Futex>>(parameters, progress),
        LockKind::Clh => laid_out::<Clh<Futex>>(parameters, progress),
        LockKind::Spin => laid_out::<Spin<Futex>>(parameters, progress),
    }
}

fn laid_out<L: Lock>(
    parameters: &LockDrive,
    progress: &mut dyn Write,
) -> Result<Driven, LoadError> {
    if parameters.padding {
        Locks::<L, PaddedRow<L>>::new(parameters)?.drive(parameters, progress)
    } else {
        Locks::<L, PackedRow<L>>::new(parameters)?.drive(parameters, progress)
    }
}

/// All locks, and the nodes that threads queue with: one of each thread, then one of each lock.
struct Locks<L, R> {
    row: R,
    nodes: Vec<Node<Futex>>,
    looks: u32,
    kind: PhantomData<fn() -> L>,
}

impl<L: Lock, R: LockRow<L>> Locks<L, R> {
    fn new(parameters: &LockDrive) -> Result<Self, LoadError> {
        let looks = spins(parameters).unwrap_or_default();
        let threads = parameters.threads;
        let row = R::of(parameters.locks, |number| {
            L::new(threads + number + 1, looks)
        });
        for number in 0..parameters.locks as usize {
            row.at(number).settle().map_err(LoadError::start(
                "a mutex of this kind: the agent's C library has none",
            ))?;
        }
        Ok(Self {
            row,
            nodes: (0..threads + parameters.locks)
                .map(|_| Node::new())
                .collect(),
            looks,
            kind: PhantomData,
        })
    }

    fn drive(&self, parameters: &LockDrive, progress: &mut dyn Write) -> Result<Driven, LoadError> {
        let end_signal = end_signal()?;
        let shared = ContentionState {
            parameters,
            sections: Sections::new(parameters.locks, parameters.lines),
            shelves: (0..parameters.threads).map(|_| Shelf::new()).collect(),
            schedule: OnceLock::new(),
            gate: Gate::default(),
            stop: AtomicBool::new(false),
        };
        let calibrated = section::calibrate();
        let mut collector = ContentionCollector::open(&parameters.output_directory, progress)?;
        let left = self.run(&shared, &mut collector, &end_signal)?;
        let (guarded, torn_lines) = shared.sections.counted();
        let contention = Contention {
            threads: left.iter().map(|left| left.turns).collect(),
            sample_every: parameters.sample_every,
            turn_ns: calibrated.0,
            clock_ns: calibrated.1,
            lock_bytes: R::STRIDE as u64,
            acquired: left.iter().map(|left| left.acquired).sum(),
            guarded,
            intruded: left.iter().map(|left| left.intruded).sum(),
            torn_lines,
        };
        collector.finish(&shared, &contention, effective(parameters, R::STRIDE))
    }

    /// Starts the threads, follows them, and returns what they leave.
    fn run(
        &self,
        shared: &ContentionState<'_>,
        collector: &mut ContentionCollector<'_>,
        end_signal: &Arc<AtomicBool>,
    ) -> Result<Vec<WorkerTotals>, LoadError> {
        let parameters = shared.parameters;
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for number in 0..parameters.threads {
                let context = ThreadContext::new(number, &self.nodes, self.looks);
                let live = move || worker::live::<L, R>(&self.row, number, context, shared);
                let spawned = thread::Builder::new()
                    .name(format!("locks-{number}"))
                    .spawn_scoped(scope, live);
                match spawned {
                    Ok(worker) => workers.push(worker),
                    Err(source) => {
                        shared.gate.open(false);
                        return Err(LoadError::Start {
                            what: "a thread",
                            source,
                        });
                    }
                }
            }
            shared.gate.gathered(parameters.threads);
            let schedule = shared.schedule.get_or_init(|| schedule(parameters));
            shared.gate.open(true);
            let followed = collector.follow(shared, schedule, end_signal);
            shared.stop.store(true, Ordering::Release);
            let left: Result<Vec<_>, _> = workers
                .into_iter()
                .map(|worker| worker.join().map_err(|_| LoadError::Panicked("lock")))
                .collect();
            followed?;
            left
        })
    }
}

fn schedule(parameters: &LockDrive) -> Schedule {
    Schedule::new(
        monotonic_ns(),
        Measure::DurationNs(nanoseconds(parameters.ramp_up_s)),
        i64::from(parameters.interval_ms) * 1_000_000,
        Measure::DurationNs(parameters.duration_s.map_or(ENDLESS_NS, nanoseconds)),
    )
}

/// Tries, or looks, that are in force; none where a kind has none of its own.
fn spins(parameters: &LockDrive) -> Option<u32> {
    let default = match parameters.kind {
        LockKind::Pthread | LockKind::Adaptive | LockKind::Spin => return None,
        LockKind::Fast | LockKind::FastLocal | LockKind::FastConstant => FAST_SPINS,
        LockKind::Ticket | LockKind::Mcs | LockKind::Clh => QUEUE_LOOKS,
    };
    Some(parameters.spins.unwrap_or(default))
}

fn check_locks(parameters: &LockDrive) -> Result<(), LoadError> {
    let all_lines = u64::from(parameters.locks) * u64::from(parameters.lines);
    let turns = parameters.critical_turns.max(parameters.outside_turns);
    let most = parameters.spins.unwrap_or_default();
    require_count("threads", parameters.threads, THREADS_LIMIT)?;
    require_count("locks", parameters.locks, LOCKS_LIMIT)?;
    require_count("lines", parameters.lines, LINES_LIMIT)?;
    require(
        "lines",
        all_lines <= ALL_LINES_LIMIT,
        "must be at most 1048576 for all locks together",
    )?;
    require(
        "critical_turns",
        turns <= TURNS_LIMIT,
        "critical_turns and outside_turns must be at most 100000000",
    )?;
    require(
        "spins",
        parameters.spins.is_none() || spins(parameters).is_some(),
        "is for kinds that try or look before they sleep",
    )?;
    require("spins", most <= MOST_SPINS, "must be at most 1000000")
}

fn check_window(parameters: &LockDrive) -> Result<(), LoadError> {
    let time = |seconds: f64| seconds.is_finite() && (0.0..1e7).contains(&seconds);
    let length = parameters.duration_s;
    let every = parameters.sample_every;
    require_count("sample_every", parameters.sample_every, SAMPLE_LIMIT)?;
    require_interval(parameters.interval_ms)?;
    require(
        "ramp_up_s",
        time(parameters.ramp_up_s),
        "must be a time in seconds",
    )?;
    require(
        "duration_s",
        length.is_none_or(|length| time(length) && length > 0.0),
        "must be a time in seconds above 0",
    )?;
    require(
        "acquisitions",
        parameters.acquisitions.is_some() != length.is_some(),
        "exactly one of acquisitions and duration_s must be given",
    )?;
    require(
        "acquisitions",
        parameters
            .acquisitions
            .is_none_or(|acquisitions| acquisitions >= every.into()),
        "must be at least sample_every: only a timed acquisition can be the last",
    )
}

/// What shaped the drive and is not in its parameters.
fn effective(parameters: &LockDrive, stride: usize) -> BTreeMap<String, String> {
    [
        ("lock_bytes", stride.to_string()),
        (
            "spins",
            spins(parameters)
                .map_or_else(|| "the lock's own".to_owned(), |spins| spins.to_string()),
        ),
        ("mutexes_of", kinds::library()),
        ("seed", parameters.seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
