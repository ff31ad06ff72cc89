//! Fills the tables, in parallel where the system can, and hashes what it made.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use fairtrial_protocol::load::{Loaded, Progress, TpccLoad};

use super::content::{self, Digest};
use super::populate::{Rows, Unit};
use super::schema::TABLES;
use crate::driver::endpoint::{self, Job};
use crate::driver::{Access, Connection, Driver, DriverError};
use crate::error::LoadError;
use crate::progress;

/// More warehouses than this do not fit the 32-bit keys of other tools' tables, nor any disk.
const WAREHOUSES_LIMIT: u32 = 1_000_000;

/// Progress is told at this fraction of a warehouse.
const TELL_EVERY: f64 = 0.1;

/// Creates and fills the tables, replacing what is there.
pub fn load(parameters: &TpccLoad, progress: &mut dyn Write) -> Result<Loaded, LoadError> {
    if !(1..=WAREHOUSES_LIMIT).contains(&parameters.warehouses) {
        let problem = format!(
            "must lie between 1 and {WAREHOUSES_LIMIT}, not be {}",
            parameters.warehouses
        );
        return Err(LoadError::Parameter {
            field: "warehouses",
            problem,
        });
    }
    if parameters.threads == 0 {
        return Err(LoadError::Parameter {
            field: "threads",
            problem: "must be 1 at least".into(),
        });
    }
    endpoint::with(
        &parameters.endpoint,
        Loading {
            parameters,
            progress,
        },
    )
}

struct Loading<'a> {
    parameters: &'a TpccLoad,
    progress: &'a mut dyn Write,
}

/// What threads share: the units and which of them is next.
struct Plan {
    units: Vec<Unit>,
    next: AtomicUsize,
    seed: u64,
}

/// A unit is in: its position and its digests; or why a thread gave up.
type Report = Result<(usize, Vec<Digest>), DriverError>;

impl Job for Loading<'_> {
    type Output = Result<Loaded, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let failed = |doing: &str| {
            let doing = format!("{doing} in {}", driver.describe());
            move |source| LoadError::Statement { doing, source }
        };
        blocking(&driver, create(&driver))?.map_err(failed("creating the tables"))?;
        let plan = Plan {
            units: Unit::all(self.parameters.warehouses),
            next: 0.into(),
            seed: self.parameters.seed,
        };
        let threads = driver
            .load_threads(self.parameters.threads as usize)
            .min(plan.units.len());
        let digests =
            fill(&driver, &plan, threads, self.progress)?.map_err(failed("filling the tables"))?;
        blocking(&driver, finish(&driver))?.map_err(failed("creating the indexes"))?;
        let mut rows = BTreeMap::new();
        for digest in digests.iter().flatten() {
            *rows.entry(digest.table.to_owned()).or_default() += digest.rows;
        }
        Ok(Loaded {
            rows,
            content_sha256: content::combine(&digests),
        })
    }
}

fn blocking<D: Driver, T>(driver: &D, future: impl Future<Output = T>) -> Result<T, LoadError> {
    driver.block_on(future).map_err(|source| LoadError::Start {
        what: "a reactor",
        source,
    })
}

async fn create<D: Driver>(driver: &D) -> Result<(), DriverError> {
    driver.begin_load().await?;
    let mut connection = driver.load_connection().await?;
    for table in TABLES {
        connection
            .text(&format!("DROP TABLE IF EXISTS {}", table.name))
            .await?;
        connection.text(&table.create(driver.dialect())).await?;
    }
    Ok(())
}

async fn finish<D: Driver>(driver: &D) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    for table in TABLES {
        for statement in table.create_indexes() {
            connection.text(&statement).await?;
        }
    }
    driver.end_load(connection).await
}

/// Fills all units on `threads` connections; the digests come back in the units' order.
fn fill<D: Driver>(
    driver: &D,
    plan: &Plan,
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
        let mut digests = vec![Vec::new(); plan.units.len()];
        let total: f64 = plan.units.iter().map(|unit| unit.weight()).sum();
        let (mut done, mut told) = (0.0, 0.0);
        for report in reports {
            match report {
                Ok((position, unit)) => {
                    digests[position] = unit;
                    done += plan.units[position].weight();
                }
                Err(error) => {
                    // The other threads find no further unit and end.
                    plan.next.store(plan.units.len(), Ordering::Relaxed);
                    return Ok(Err(error));
                }
            }
            if done - told >= TELL_EVERY {
                told = done;
                progress::say(out, &Progress::Loading { done, total })?;
            }
        }
        progress::say(out, &Progress::Loading { done: total, total })?;
        Ok(Ok(digests))
    })
}

async fn work<D: Driver>(
    driver: &D,
    plan: &Plan,
    report: &mpsc::Sender<Report>,
) -> Result<(), DriverError> {
    let mut connection = driver.load_connection().await?;
    let mut rows = Rows::default();
    loop {
        let position = plan.next.fetch_add(1, Ordering::Relaxed);
        let Some(unit) = plan.units.get(position) else {
            return Ok(());
        };
        rows.fill(*unit, plan.seed);
        let mut digests = Vec::new();
        connection.begin(Access::ReadWrite).await?;
        for (table_position, (table, _)) in unit.selections().into_iter().enumerate() {
            let batch = rows.batch(table_position);
            connection.insert(table, batch).await?;
            digests.push(content::of_batch(table, batch));
        }
        connection.commit().await?;
        if report.send(Ok((position, digests))).is_err() {
            return Ok(());
        }
    }
}
