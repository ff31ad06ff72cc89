//! The seam between workloads and systems: connections, values and classified errors.
//!
//! A driver is one file. It owns its client library, its reactor and its blocking calls; nothing of them is visible
//! here. Workloads are generic over [`Connection`], so that a statement costs no dynamic dispatch.

pub mod batch;
pub mod dialect;
pub mod endpoint;
pub mod mysql;
pub mod pipeline;
pub mod postgres;
mod remote;
pub mod sqlite;
pub mod table;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use fairtrial_protocol::load::Rows;

pub use value::{Cell, Decimal, Row, Value};

use self::batch::Batch;
use self::dialect::Dialect;
use self::pipeline::Pipeline;
use self::table::Table;
use crate::reactor::Load;
use crate::stop::Stop;

/// Code of a connection setting that does not read back as asked.
pub const SETTING_REFUSED: &str = "setting_refused";

/// Code of a connection for which the process has no file descriptor left.
pub const OPEN_FILES: &str = "open_files_limit";

/// What went wrong, whatever the system calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The system chose this transaction as a deadlock's victim.
    Deadlock,
    /// A lock was not granted in time.
    LockTimeout,
    /// The database was held by another writer (SQLite).
    Busy,
    /// The connection was refused, lost or killed.
    Connection,
    /// The system has no room left on its disk.
    DiskFull,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// Its name in `result.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::LockTimeout => "lock_timeout",
            Self::Busy => "busy",
            Self::Connection => "connection",
            Self::DiskFull => "disk_full",
            Self::Other => "other",
        }
    }
}

/// An error of a system or its client library, classified by the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The system's code (`1213`, `SQLITE_BUSY`) or the driver's (`connection_lost`).
    pub code: String,
    /// The system's message.
    pub message: String,
    /// Whether the same transaction may succeed when run again.
    pub retryable: bool,
}

impl DriverError {
    /// An answer that does not have the form the statement promises; never retried.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Other,
            code: "unexpected_answer".into(),
            message: message.into(),
            retryable: false,
        }
    }

    /// Whether the session is gone, and no answer comes any more.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.kind == ErrorKind::Connection
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for DriverError {}

/// A prepared statement's place in the list its connection was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub usize);

/// Whether a transaction will write; SQLite takes its write lock at the start of one that will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Reads and writes.
    ReadWrite,
}

/// What a prepared statement takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Values.
    pub parameters: usize,
    /// Those of them, by their places, that must be whole numbers: where the system decides so when it prepares.
    pub integers: Vec<usize>,
    /// Columns of its rows; 0 for a statement that gives none.
    pub columns: usize,
}

/// One connection. Futures stay on the thread that made them.
pub trait Connection {
    /// Whether the server skips the rest of a pipeline after an error in it, a commit too.
    const ERROR_ENDS_PIPELINE: bool = true;

    /// Begins a transaction.
    async fn begin(&mut self, access: Access) -> Result<(), DriverError>;
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
    /// undoes, if they are in a transaction. [`pipeline::send`] calls this, with no more than a socket takes.
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
    async fn shape(&mut self, sql: &str) -> Result<Shape, DriverError>;
    /// Runs a statement as text, values as text too; statements without rows give none.
    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError>;
    /// Inserts rows by the system's fastest path.
    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError>;
}

/// Opens connections to one endpoint, and waits for them: the reactor, or its absence, belongs to the driver.
pub trait Driver: Clone + Send + Sync + 'static {
    /// What it opens.
    type Connection: Connection;

    /// How its SQL is written.
    fn dialect(&self) -> Dialect;

    /// The endpoint in words, without secrets.
    fn describe(&self) -> String;

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
    fn load_threads(&self, asked: usize) -> usize;

    /// How many threads serve this many virtual users.
    fn user_threads(&self, users: usize) -> usize;

    /// Runs one future to its end on this thread.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> io::Result<T>;

    /// Runs tasks side by side on this thread until all have ended or `stop` abandons them; returns how busy the thread
    /// was, if it waits in a loop of ours.
    fn run(
        &self,
        tasks: Vec<impl Future<Output = ()> + 'static>,
        stop: &Stop,
    ) -> io::Result<Option<Load>>;

    /// Waits, but not beyond a stop.
    async fn pause(&self, duration: Duration, stop: &Stop);
}
