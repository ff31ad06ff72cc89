//! One drive: users on their threads, and whoever follows them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::limits::Limits;
use fairtrial_protocol::load::{Arrivals, ClientLoop, Drive, Driven};

use super::arrivals::{ArrivalQueue, ArrivalStream};
use super::collector::Collector;
use super::fleet;
use super::recorder::Slot;
use super::schedule::{Measure, nanoseconds};
use super::user::{self, DriveState};
use super::validation;
use crate::driver::Driver;
use crate::driver::endpoint::{self, Job};
use crate::error::{LoadError, require, require_interval};
use crate::reactor::Load;
use crate::stop::end_signal;
use crate::workload::{Unfit, Workload};

const JOIN_POLL: Duration = Duration::from_millis(5);

/// A thread per virtual user needs no deep stack: futures of this engine live on it, and SQLite's parser does.
const STACK_BYTES: usize = 512 * 1024;

/// Longest time in a queue: a day.
const QUEUE_TIMEOUT_LIMIT_S: f64 = 86_400.0;

/// Drives once; returns the result with the window's sums. Where a search's `limit_s` is given, those are counted that
/// are older than that when the window is over.
pub fn once<W: Workload>(
    parameters: &Drive,
    workload: W,
    limit_s: Option<f64>,
    progress: &mut dyn Write,
) -> Result<(Driven, Slot), LoadError> {
    let measure = measure(parameters)?;
    let mut stream = ArrivalStream::open(&parameters.arrivals, parameters.seed)?;
    if let Some(share) = &parameters.fleet {
        stream = stream.map(|all| all.one_of(share.client, share.clients));
    }
    endpoint::with(
        &parameters.endpoint,
        DriveJob {
            parameters,
            workload,
            measure,
            stream,
            limit_s,
            progress,
        },
    )
}

fn measure(parameters: &Drive) -> Result<Measure, LoadError> {
    let refuse = |field, problem| Err(LoadError::parameter(field, problem));
    let time = |seconds: f64| seconds.is_finite() && (0.0..1e9).contains(&seconds);
    require(
        "virtual_users",
        parameters.virtual_users > 0,
        "must be at least 1",
    )?;
    require_interval(parameters.interval_ms)?;
    require(
        "ramp_up_s",
        time(parameters.ramp_up_s),
        "must be a time in seconds",
    )?;
    require(
        "ramp_up_s",
        parameters.ramp_up_transactions.is_none() || parameters.ramp_up_s == 0.0,
        "must be 0 where transactions end ramp-up",
    )?;
    require(
        "ramp_up_transactions",
        parameters.ramp_up_transactions != Some(0),
        "must be at least 1",
    )?;
    check_arrivals(parameters)?;
    fleet::check(parameters)?;
    match (parameters.duration_s, parameters.transactions) {
        (Some(duration_s), None) if time(duration_s) && duration_s > 0.0 => {
            Ok(Measure::DurationNs(nanoseconds(duration_s)))
        }
        (None, Some(count)) if count > 0 => Ok(Measure::Transactions(count)),
        (Some(_), None) => refuse("duration_s", "must be a time in seconds above 0"),
        (None, Some(_)) => refuse("transactions", "must be at least 1"),
        _ => refuse(
            "duration_s",
            "exactly one of duration_s and transactions must be given",
        ),
    }
}

/// Whether the loop, open or closed, is one that can be driven.
pub fn check_arrivals(parameters: &Drive) -> Result<(), LoadError> {
    validation::validate(&parameters.arrivals)?;
    let closed = matches!(parameters.arrivals, Arrivals::Closed { .. });
    let problem = match parameters.queue_timeout_s {
        Some(_) if closed => "a closed loop has no queue",
        Some(time_s) if !(time_s > 0.0 && time_s <= QUEUE_TIMEOUT_LIMIT_S) => {
            "must be above 0 and at most one day"
        }
        _ => return Ok(()),
    };
    Err(LoadError::parameter("queue_timeout_s", problem))
}

struct DriveJob<'a, W> {
    parameters: &'a Drive,
    workload: W,
    measure: Measure,
    stream: Option<ArrivalStream>,
    limit_s: Option<f64>,
    progress: &'a mut dyn Write,
}

impl<W: Workload> Job for DriveJob<'_, W> {
    type Output = Result<(Driven, Slot), LoadError>;

    fn run<D: Driver>(mut self, driver: D) -> Self::Output {
        let effective = preflight(&driver, &mut self.workload)?;
        let end_signal = end_signal()?;
        let threads = driver.user_threads(self.parameters.virtual_users as usize);
        let timeout_ns = self.parameters.queue_timeout_s.map(nanoseconds);
        let due_before_ns =
            self.limit_s
                .zip(self.parameters.duration_s)
                .map(|(limit_s, duration_s)| {
                    nanoseconds(self.parameters.ramp_up_s) + nanoseconds(duration_s)
                        - nanoseconds(limit_s)
                });
        let queue = self
            .stream
            .clone()
            .map(|stream| ArrivalQueue::new(stream, timeout_ns, due_before_ns));
        let shared = DriveState::new(driver, self.workload, self.parameters, queue, threads);
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
        let collected = collector.collect(&shared, self.measure, &end_signal);
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
    let looked = looked.map_err(LoadError::start("a reactor"))?;
    looked.map_err(|unfit| match unfit {
        Unfit::Tables(error) => error,
        Unfit::Refused(source) => driver.refused(source),
    })
}

type Worker = thread::JoinHandle<Result<Option<Load>, LoadError>>;

/// Starts the threads; user `u` lives on thread `u` modulo their number.
fn spawn_users<D: Driver, W: Workload>(
    shared: &Arc<DriveState<D, W>>,
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
            ran.map_err(LoadError::start("a reactor"))
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
    shared: &DriveState<D, W>,
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
