//! A drive: users on their threads, a schedule, and three files of results.

mod arrivals;
mod asked;
mod backlog;
mod collector;
pub mod files;
mod rates;
pub mod recorder;
mod replay;
pub mod schedule;
mod search;
pub mod usage;
mod user;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Arrivals, ClientLoop, Drive, Driven};
use signal_hook::consts::{SIGINT, SIGTERM};

use self::arrivals::{Queue, Stream};
use self::collector::Collector;
use self::recorder::Slot;
use self::schedule::Measure;
use self::user::Shared;
use crate::driver::Driver;
use crate::driver::endpoint::{self, Job};
use crate::error::LoadError;
use crate::reactor::Load;
use crate::workload::{Unfit, Workload};
use fairtrial_protocol::limits::Limits;

/// Narrower intervals cost more than they show.
const NARROWEST_INTERVAL_MS: u32 = 10;

const JOIN_POLL: Duration = Duration::from_millis(5);

/// A thread per virtual user needs no deep stack: futures of this engine live on it, and SQLite's parser does.
const STACK_BYTES: usize = 512 * 1024;

/// Longest time in a queue: a day.
const QUEUE_TIMEOUT_LIMIT_S: f64 = 86_400.0;

/// Drives what `make` makes of the parameters, once or in search of a rate, and writes the files; the result is what
/// `result.json` holds.
pub fn drive<W: Workload>(
    parameters: &Drive,
    make: impl Fn(&Drive) -> Result<W, LoadError>,
    progress: &mut dyn Write,
) -> Result<Driven, LoadError> {
    if let Arrivals::Search { search } = &parameters.arrivals {
        return search::search(parameters, search, make, progress);
    }
    let (driven, _) = once(parameters, make(parameters)?, progress)?;
    Ok(driven)
}

/// One drive; returns the result with the window's sums.
fn once<W: Workload>(
    parameters: &Drive,
    workload: W,
    progress: &mut dyn Write,
) -> Result<(Driven, Slot), LoadError> {
    let measure = measure(parameters)?;
    let stream = Stream::open(&parameters.arrivals, parameters.seed)?;
    endpoint::with(
        &parameters.endpoint,
        Driving {
            parameters,
            workload,
            measure,
            stream,
            progress,
        },
    )
}

fn measure(parameters: &Drive) -> Result<Measure, LoadError> {
    let refuse = |field, problem: &str| {
        Err(LoadError::Parameter {
            field,
            problem: problem.into(),
        })
    };
    let time = |seconds: f64| seconds.is_finite() && (0.0..1e9).contains(&seconds);
    if parameters.virtual_users == 0 {
        return refuse("virtual_users", "must be 1 at least");
    }
    if parameters.interval_ms < NARROWEST_INTERVAL_MS {
        return refuse("interval_ms", "must be 10 at least");
    }
    if !time(parameters.ramp_up_s) {
        return refuse("ramp_up_s", "must be a time in seconds");
    }
    if parameters.ramp_up_transactions.is_some() && parameters.ramp_up_s != 0.0 {
        return refuse("ramp_up_s", "must be 0 where transactions end ramp-up");
    }
    if parameters.ramp_up_transactions == Some(0) {
        return refuse("ramp_up_transactions", "must be 1 at least");
    }
    check_arrivals(parameters)?;
    match (parameters.duration_s, parameters.transactions) {
        (Some(duration_s), None) if time(duration_s) && duration_s > 0.0 => {
            Ok(Measure::DurationNs(nanoseconds(duration_s)))
        }
        (None, Some(count)) if count > 0 => Ok(Measure::Transactions(count)),
        (Some(_), None) => refuse("duration_s", "must be a time in seconds above 0"),
        (None, Some(_)) => refuse("transactions", "must be 1 at least"),
        _ => refuse(
            "duration_s",
            "exactly one of duration_s and transactions must be given",
        ),
    }
}

fn check_arrivals(parameters: &Drive) -> Result<(), LoadError> {
    asked::validate(&parameters.arrivals)?;
    let closed = matches!(parameters.arrivals, Arrivals::Closed { .. });
    let problem = match parameters.queue_timeout_s {
        Some(_) if closed => "a closed loop has no queue",
        Some(time_s) if !(time_s > 0.0 && time_s <= QUEUE_TIMEOUT_LIMIT_S) => {
            "must be a time above 0, of a day at most"
        }
        _ => return Ok(()),
    };
    Err(LoadError::Parameter {
        field: "queue_timeout_s",
        problem: problem.into(),
    })
}

#[allow(clippy::cast_possible_truncation)] // below 10^9 seconds, which `measure` has checked
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

struct Driving<'a, W> {
    parameters: &'a Drive,
    workload: W,
    measure: Measure,
    stream: Option<Stream>,
    progress: &'a mut dyn Write,
}

impl<W: Workload> Job for Driving<'_, W> {
    type Output = Result<(Driven, Slot), LoadError>;

    fn run<D: Driver>(mut self, driver: D) -> Self::Output {
        let effective = preflight(&driver, &mut self.workload)?;
        let end_asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&end_asked)).map_err(|source| {
                LoadError::Start {
                    what: "a signal handler",
                    source,
                }
            })?;
        }
        let threads = driver.user_threads(self.parameters.virtual_users as usize);
        let timeout_ns = self.parameters.queue_timeout_s.map(nanoseconds);
        let queue = self
            .stream
            .clone()
            .map(|stream| Queue::new(stream, timeout_ns));
        let shared = Shared::new(driver, self.workload, self.parameters, queue, threads);
        let shared = Arc::new(shared);
        let limits = Limits::from_environment().map_err(LoadError::Limits)?;
        let mut collector = Collector::open(
            Path::new(&self.parameters.output_directory),
            shared.recorder.types(),
            (self.stream.as_ref(), shared.queue.as_ref()),
            limits,
            self.progress,
        )?;
        let workers = spawn_users(&shared, threads)?;
        let collected = collector.collect(&shared, self.measure, &end_asked);
        if collected.is_err() {
            shared.stop.abandon();
        }
        let loops = join(&shared, workers, limits.finish)?;
        let measured = collected?;
        collector.finish(&shared, measured, (effective, loops))
    }
}

/// Looks before the first user does: that the scale is right, and what is in force on a connection.
fn preflight<D: Driver, W: Workload>(
    driver: &D,
    workload: &mut W,
) -> Result<BTreeMap<String, String>, LoadError> {
    let looked = driver.block_on(async {
        let mut connection = driver.connect(&[]).await?;
        workload
            .preflight(&mut connection, driver.dialect())
            .await?;
        Ok::<_, Unfit>(driver.effective(&mut connection).await?)
    });
    let looked = looked.map_err(|source| LoadError::Start {
        what: "a reactor",
        source,
    })?;
    looked.map_err(|unfit| match unfit {
        Unfit::Tables(error) => error,
        Unfit::Refused(source) => LoadError::Connect {
            endpoint: driver.describe(),
            source,
        },
    })
}

type Worker = thread::JoinHandle<Result<Option<Load>, LoadError>>;

/// Starts the threads; user `u` lives on thread `u` modulo their number.
fn spawn_users<D: Driver, W: Workload>(
    shared: &Arc<Shared<D, W>>,
    threads: usize,
) -> Result<Vec<Worker>, LoadError> {
    let mut workers = Vec::with_capacity(threads);
    for thread in 0..threads {
        let shared_here = Arc::clone(shared);
        let run = move || {
            let users = (thread..shared_here.users).step_by(threads);
            let tasks = users
                .map(|user| user::live(Arc::clone(&shared_here), user, thread))
                .collect();
            let ran = shared_here.driver.run(tasks, &shared_here.stop);
            ran.map_err(|source| LoadError::Start {
                what: "a reactor",
                source,
            })
        };
        let spawned = thread::Builder::new()
            .name(format!("users-{thread}"))
            .stack_size(STACK_BYTES)
            .spawn(run);
        match spawned {
            Ok(worker) => workers.push(worker),
            Err(source) => {
                // Users that did start hear it and leave; no one is left to wait for them.
                shared.stop.abandon();
                return Err(LoadError::Start {
                    what: "a thread for virtual users",
                    source,
                });
            }
        }
    }
    Ok(workers)
}

/// Waits for the users to finish what they began, but not for ever; returns how busy their threads were.
fn join<D: Driver, W: Workload>(
    shared: &Shared<D, W>,
    workers: Vec<Worker>,
    limit: Duration,
) -> Result<Vec<ClientLoop>, LoadError> {
    let late_ns = monotonic_ns() + nanoseconds(limit.as_secs_f64());
    while workers.iter().any(|worker| !worker.is_finished()) {
        if monotonic_ns() > late_ns {
            shared.stop.abandon();
        }
        thread::sleep(JOIN_POLL);
    }
    let mut loops = Vec::new();
    for worker in workers {
        let load = worker
            .join()
            .map_err(|_| LoadError::Panicked("virtual user"))??;
        loops.extend(load.map(client_loop));
    }
    Ok(loops)
}

fn client_loop(load: Load) -> ClientLoop {
    let seconds = |nanoseconds: i64| Duration::from_nanos(nanoseconds.unsigned_abs()).as_secs_f64();
    ClientLoop {
        busy_s: seconds(load.busy_ns),
        idle_s: seconds(load.idle_ns),
        longest_turn_s: seconds(load.longest_turn_ns),
        latest_timer_s: seconds(load.latest_timer_ns),
        interface: load.interface,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
