//! Fills the tables, in parallel where the system can, and hashes what it made. A load that was killed goes on where it
//! was: what is in is known to its journal.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use fairtrial_protocol::load::{Endpoint, Loaded};

use super::Population;
use super::content::{self, Digest};
use super::journal::{self, Done};
use super::pace::Pace;
use crate::driver::batch::Batch;
use crate::driver::endpoint::{self, Job};
use crate::driver::table::Table;
use crate::driver::{AccessMode, Connection, Driver, DriverError, ErrorKind};
use crate::error::LoadError;
use crate::progress;

/// Connections that find a table empty may wait for each other's lock on all of it (MariaDB from 10.6 on fills empty
/// tables that way); each deadlock lets one of them through, and there are fewer connections than this.
const REPEATS: u32 = 100;

/// Creates and fills the tables on this many threads, replacing what is there unless it is an interrupted load of the
/// same rows.
pub fn load<P: Population>(
    endpoint: &Endpoint,
    population: &P,
    threads: u32,
    progress: &mut dyn Write,
) -> Result<Loaded, LoadError> {
    if threads == 0 {
        return Err(LoadError::parameter("threads", "must be at least 1"));
    }
    endpoint::with(
        endpoint,
        LoadJob {
            population,
            threads: threads as usize,
            progress,
        },
    )
}

struct LoadJob<'a, P> {
    population: &'a P,
    threads: usize,
    progress: &'a mut dyn Write,
}

/// What threads share: the units that are missing and which of them is next.
struct UnitQueue<'a, P> {
    population: &'a P,
    missing: Vec<usize>,
    next: AtomicUsize,
}

/// A unit is in: its position and its digests; or why a thread gave up.
type Report = Result<(usize, Vec<Digest>), DriverError>;

impl<P: Population> Job for LoadJob<'_, P> {
    type Output = Result<Loaded, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let failed = |doing: &str| {
            let doing = format!("{doing} in {}", driver.describe());
            move |source| LoadError::Statement { doing, source }
        };
        let population = self.population;
        let journal = if population.resumes() {
            blocking(&driver, journal::find(&driver, population))?
        } else {
            None
        };
        if journal.is_none() {
            let created = blocking(&driver, create(&driver, population))?;
            created.map_err(failed("creating the tables"))?;
        }
        let done = journal.unwrap_or_default();
        let plan = UnitQueue {
            population,
            missing: (0..population.units())
                .filter(|unit| !done.contains_key(unit))
                .collect(),
            next: 0.into(),
        };
        let threads = driver.load_threads(self.threads).min(plan.missing.len());
        let filled = fill(&driver, &plan, (threads, done), self.progress)?;
        let digests = filled.map_err(failed("filling the tables"))?;
        blocking(&driver, finish(&driver, population))?.map_err(failed("creating the indexes"))?;
        let tables = population.tables();
        let mut rows: BTreeMap<String, u64> = tables
            .iter()
            .map(|table| (table.name.to_owned(), 0))
            .collect();
        for digest in digests.iter().flatten() {
            let sum = rows.entry(digest.table.to_owned()).or_default();
            *sum = sum.saturating_add(digest.rows);
        }
        Ok(Loaded {
            rows,
            content_sha256: content::combine(&tables, &digests),
        })
    }
}

fn blocking<D: Driver, T>(driver: &D, future: impl Future<Output = T>) -> Result<T, LoadError> {
    driver
        .block_on(future)
        .map_err(LoadError::start("a reactor"))
}

async fn create<D: Driver, P: Population>(driver: &D, population: &P) -> Result<(), DriverError> {
    driver.begin_load().await?;
    let mut connection = driver.load_connection().await?;
    // The old journal goes first and the new one comes last: a journal never speaks of tables that are not its own.
    let statements = [journal::forget()]
        .into_iter()
        .chain(population.create(driver.dialect()))
        .chain(journal::begin(population, driver.dialect()));
    for statement in statements {
        connection.text(&statement).await?;
    }
    Ok(())
}

async fn finish<D: Driver, P: Population>(driver: &D, population: &P) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    for statement in population.finish(driver.dialect()) {
        match connection.text(&statement).await {
            Err(error) if !(population.resumes() && journal::is_already_there(&error)) => {
                return Err(error);
            }
            _ => {}
        }
    }
    connection.text(&journal::forget()).await?;
    driver.end_load(connection).await
}

/// Fills all units that are not done on `threads` connections; the digests come back in the units' order.
fn fill<D: Driver, P: Population>(
    driver: &D,
    plan: &UnitQueue<'_, P>,
    (threads, done): (usize, Done),
    out: &mut dyn Write,
) -> Result<Result<Vec<Vec<Digest>>, DriverError>, LoadError> {
    let (report, reports) = mpsc::channel::<Report>();
    thread::scope(|scope| {
        for _ in 0..threads {
            let report = report.clone();
            scope.spawn(move || {
                let end = driver.block_on(work(driver, plan, &report));
                let end =
                    end.unwrap_or_else(|error| Err(DriverError::unexpected(error.to_string())));
                if let Err(error) = end {
                    // The receiver is gone only when another thread's error has ended the load.
                    let _ = report.send(Err(error));
                }
            });
        }
        drop(report);
        let units = plan.population.units();
        let weight = |unit| plan.population.weight(unit);
        let mut pace = Pace::begin(
            (0..units).map(weight).sum(),
            done.keys().map(|unit| weight(*unit)).sum(),
            done.values().map(|unit| rows_of(unit)).sum(),
        );
        let mut digests = vec![Vec::new(); units];
        for (position, unit) in done {
            digests[position] = unit;
        }
        let mut reported = pace.done();
        for report in reports {
            match report {
                Ok((position, unit)) => {
                    pace.add(weight(position), rows_of(&unit));
                    digests[position] = unit;
                }
                Err(error) => {
                    // The other threads find no further unit and end.
                    plan.next.store(units, Ordering::Relaxed);
                    return Ok(Err(error));
                }
            }
            if pace.done() - reported >= plan.population.tell_every() {
                reported = pace.done();
                progress::say(out, &pace.progress())?;
            }
        }
        progress::say(out, &pace.progress())?;
        Ok(Ok(digests))
    })
}

fn rows_of(digests: &[Digest]) -> u64 {
    digests.iter().map(|digest| digest.rows).sum()
}

/// Writes a unit and its entry, which are given up together where the server prefers another's transaction.
async fn store<C: Connection>(
    connection: &mut C,
    entry: &str,
    batches: &[(&'static Table, &Batch)],
) -> Result<(), DriverError> {
    connection.begin(AccessMode::ReadWrite).await?;
    match connection.text(entry).await {
        // The interrupted load's last commit came after this one had looked: the unit is in.
        Err(error) if journal::is_already_there(&error) => return connection.rollback().await,
        entered => entered?,
    };
    for (table, batch) in batches {
        connection.insert(table, batch).await?;
    }
    connection.commit().await
}

async fn work<D: Driver, P: Population>(
    driver: &D,
    plan: &UnitQueue<'_, P>,
    report: &mpsc::Sender<Report>,
) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    let mut rows = P::Rows::default();
    loop {
        let next = plan.next.fetch_add(1, Ordering::Relaxed);
        let Some(&unit) = plan.missing.get(next) else {
            return Ok(());
        };
        plan.population.fill(unit, &mut rows);
        let tables = plan.population.selections(unit).into_iter().enumerate();
        let batches: Vec<_> = tables
            .map(|(position, (table, _))| (table, plan.population.batch(&rows, position)))
            .collect();
        let digests: Vec<_> = batches
            .iter()
            .map(|(table, batch)| content::of_batch(table, batch))
            .collect();
        let entry = journal::enter(unit, &digests);
        let mut repeats = 0;
        while let Err(error) = store(&mut connection, &entry, &batches).await {
            let gave_way = matches!(error.kind, ErrorKind::Deadlock | ErrorKind::LockTimeout);
            if !gave_way || repeats == REPEATS {
                return Err(error);
            }
            connection.rollback().await?;
            repeats += 1;
        }
        if report.send(Ok((unit, digests))).is_err() {
            return Ok(());
        }
    }
}
