//! Fills the tables, in parallel where the system can, and hashes what it made.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use fairtrial_protocol::load::{Endpoint, Loaded, Progress};

use super::Population;
use super::content::{self, Digest};
use crate::driver::endpoint::{self, Job};
use crate::driver::{Access, Connection, Driver, DriverError};
use crate::error::LoadError;
use crate::progress;

/// Creates and fills the tables on this many threads, replacing what is there.
pub fn load<P: Population>(
    endpoint: &Endpoint,
    population: &P,
    threads: u32,
    progress: &mut dyn Write,
) -> Result<Loaded, LoadError> {
    if threads == 0 {
        return Err(LoadError::Parameter {
            field: "threads",
            problem: "must be 1 at least".into(),
        });
    }
    endpoint::with(
        endpoint,
        Loading {
            population,
            threads: threads as usize,
            progress,
        },
    )
}

struct Loading<'a, P> {
    population: &'a P,
    threads: usize,
    progress: &'a mut dyn Write,
}

/// What threads share: the units and which of them is next.
struct Plan<'a, P> {
    population: &'a P,
    next: AtomicUsize,
}

/// A unit is in: its position and its digests; or why a thread gave up.
type Report = Result<(usize, Vec<Digest>), DriverError>;

impl<P: Population> Job for Loading<'_, P> {
    type Output = Result<Loaded, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let failed = |doing: &str| {
            let doing = format!("{doing} in {}", driver.describe());
            move |source| LoadError::Statement { doing, source }
        };
        let population = self.population;
        blocking(&driver, create(&driver, population))?.map_err(failed("creating the tables"))?;
        let plan = Plan {
            population,
            next: 0.into(),
        };
        let threads = driver.load_threads(self.threads).min(population.units());
        let digests =
            fill(&driver, &plan, threads, self.progress)?.map_err(failed("filling the tables"))?;
        blocking(&driver, finish(&driver, population))?.map_err(failed("creating the indexes"))?;
        let tables = population.tables();
        let mut rows: BTreeMap<String, u64> = tables
            .iter()
            .map(|table| (table.name.to_owned(), 0))
            .collect();
        for digest in digests.iter().flatten() {
            *rows.entry(digest.table.to_owned()).or_default() += digest.rows;
        }
        Ok(Loaded {
            rows,
            content_sha256: content::combine(&tables, &digests),
        })
    }
}

fn blocking<D: Driver, T>(driver: &D, future: impl Future<Output = T>) -> Result<T, LoadError> {
    driver.block_on(future).map_err(|source| LoadError::Start {
        what: "a reactor",
        source,
    })
}

async fn create<D: Driver, P: Population>(driver: &D, population: &P) -> Result<(), DriverError> {
    driver.begin_load().await?;
    let mut connection = driver.load_connection().await?;
    for statement in population.create(driver.dialect()) {
        connection.text(&statement).await?;
    }
    Ok(())
}

async fn finish<D: Driver, P: Population>(driver: &D, population: &P) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    for statement in population.finish(driver.dialect()) {
        connection.text(&statement).await?;
    }
    driver.end_load(connection).await
}

/// Fills all units on `threads` connections; the digests come back in the units' order.
fn fill<D: Driver, P: Population>(
    driver: &D,
    plan: &Plan<'_, P>,
    threads: usize,
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
        let mut digests = vec![Vec::new(); units];
        let total: f64 = (0..units).map(|unit| plan.population.weight(unit)).sum();
        let (mut done, mut told) = (0.0, 0.0);
        for report in reports {
            match report {
                Ok((position, unit)) => {
                    digests[position] = unit;
                    done += plan.population.weight(position);
                }
                Err(error) => {
                    // The other threads find no further unit and end.
                    plan.next.store(units, Ordering::Relaxed);
                    return Ok(Err(error));
                }
            }
            if done - told >= plan.population.tell_every() {
                told = done;
                progress::say(out, &Progress::Loading { done, total })?;
            }
        }
        progress::say(out, &Progress::Loading { done: total, total })?;
        Ok(Ok(digests))
    })
}

async fn work<D: Driver, P: Population>(
    driver: &D,
    plan: &Plan<'_, P>,
    report: &mpsc::Sender<Report>,
) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    let mut rows = P::Rows::default();
    loop {
        let unit = plan.next.fetch_add(1, Ordering::Relaxed);
        if unit >= plan.population.units() {
            return Ok(());
        }
        plan.population.fill(unit, &mut rows);
        let mut digests = Vec::new();
        connection.begin(Access::ReadWrite).await?;
        for (position, (table, _)) in plan.population.selections(unit).into_iter().enumerate() {
            let batch = plan.population.batch(&rows, position);
            connection.insert(table, batch).await?;
            digests.push(content::of_batch(table, batch));
        }
        connection.commit().await?;
        if report.send(Ok((unit, digests))).is_err() {
            return Ok(());
        }
    }
}
