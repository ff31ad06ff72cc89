//! Connections, and what opens them.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use fairtrial_protocol::load::Rows;

use super::batch::Batch;
use super::dialect::Dialect;
use super::pipeline::{self, Pipeline};
use super::remote;
use super::table::Table;
use super::{AccessMode, DriverError, Row, StatementId, StatementShape, Value};
use crate::error::LoadError;
use crate::reactor::{self, Load};
use crate::stop::Stop;

/// One connection. Futures stay on the thread that made them.
pub trait Connection {
    /// Whether the server skips the rest of a pipeline after an error in it, a commit too.
    const ERROR_ENDS_PIPELINE: bool = true;

    /// Begins a transaction.
    async fn begin(&mut self, access: AccessMode) -> Result<(), DriverError>;
    /// Commits it.
    async fn commit(&mut self) -> Result<(), DriverError>;
    /// Rolls it back; without a transaction it does nothing.
    async fn rollback(&mut self) -> Result<(), DriverError>;
    /// Runs a prepared statement that gives no rows; returns the number of rows it touched.
    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError>;
    /// Runs a prepared query and returns all its rows.
    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError>;
    /// Runs a prepared query and gives the number of its rows only: a driver that can saves their making.
    async fn read(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        Ok(self.query(statement, values).await?.len() as u64)
    }
    /// Sends statements before it reads the first answer, and appends to `rows` how many rows each gave, or touched where
    /// it gives none, up to the first that failed: its error is the pipeline's. Whatever ran after it, a rollback
    /// undoes, if they are in a transaction. [`send`] calls this, with no more than a socket takes.
    async fn pipeline(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        let _ = (pipeline, rows);
        Err(DriverError::unexpected(
            "this system's driver sends one statement at a time",
        ))
    }
    /// Prepares a statement, for its shape or for what the system says against it.
    async fn shape(&mut self, sql: &str) -> Result<StatementShape, DriverError>;
    /// Runs a statement as text, values as text too; statements without rows give none.
    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError>;
    /// The first cell of a query's answer; `None` if it is not a number.
    async fn number<N: FromStr>(&mut self, sql: &str) -> Result<Option<N>, DriverError> {
        let rows = self.text(sql).await?.rows;
        let cell = rows.first().and_then(|row| row.first()?.as_ref());
        Ok(cell.and_then(|text| text.parse().ok()))
    }
    /// Inserts rows by the system's fastest path.
    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError>;
}

/// Opens connections to one endpoint, and waits for them: in this crate's event loop, unless the driver has none.
pub trait Driver: Clone + Send + Sync + 'static {
    /// What it opens.
    type Connection: Connection;

    /// How its SQL is written.
    fn dialect(&self) -> Dialect;

    /// The endpoint in words, without secrets.
    fn describe(&self) -> String;

    /// The error that a refused connection is.
    fn refused(&self, source: DriverError) -> LoadError {
        LoadError::Connect {
            endpoint: self.describe(),
            source,
        }
    }

    /// Opens a connection and prepares `statements` on it, in their order.
    async fn connect(&self, statements: &[String]) -> Result<Self::Connection, DriverError>;

    /// The connection settings that shape results, as the system reports them.
    async fn effective(
        &self,
        connection: &mut Self::Connection,
    ) -> Result<BTreeMap<String, String>, DriverError>;

    /// Makes a database ready to be filled: creates it if missing.
    async fn begin_load(&self) -> Result<(), DriverError>;

    /// Opens a connection that fills the database, with the settings that make it fast.
    async fn load_connection(&self) -> Result<Self::Connection, DriverError>;

    /// Puts normal operation back after loading; the data are on disk as far as the system promises it.
    async fn end_load(&self, connection: Self::Connection) -> Result<(), DriverError>;

    /// How many connections load at once, of those asked for.
    fn load_threads(&self, most: usize) -> usize {
        most
    }

    /// How many threads serve this many virtual users.
    fn user_threads(&self, users: usize) -> usize {
        remote::user_threads(users)
    }

    /// Runs one future to its end on this thread.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        reactor::block_on(future)
    }

    /// Runs tasks side by side on this thread until all have ended or `stop` abandons them; returns how busy the thread
    /// was, if it waits in a loop of ours.
    fn run(
        &self,
        tasks: Vec<impl Future<Output = ()> + 'static>,
        stop: &Stop,
    ) -> io::Result<Option<Load>> {
        reactor::run(tasks, stop).map(Some)
    }

    /// Waits, but not beyond a stop.
    async fn pause(&self, duration: Duration, stop: &Stop) {
        reactor::pause(duration, stop).await;
    }
}

/// Sends as many statements at once as may be, reads their answers, and goes on with the next ones unless one failed.
/// Appends to `rows` what each gave or touched, up to the first that failed.
///
/// A commit goes along only where the server would skip it after an error; elsewhere it follows once all is well.
pub async fn send<C: Connection>(
    connection: &mut C,
    pipeline: Pipeline<'_>,
    rows: &mut Vec<u64>,
) -> Result<(), DriverError> {
    let Pipeline {
        mut begin,
        requests: mut rest,
        in_transaction,
        commit,
    } = pipeline;
    loop {
        let (requests, later) = rest.split_at(pipeline::fitting(rest));
        let part = Pipeline {
            begin: begin.take(),
            requests,
            in_transaction,
            commit: commit && later.is_empty() && C::ERROR_ENDS_PIPELINE,
        };
        connection.pipeline(part, rows).await?;
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    if commit && !C::ERROR_ENDS_PIPELINE {
        connection.commit().await?;
    }
    Ok(())
}
