//! SQLite, embedded: calls block, so every virtual user has its own thread.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fairtrial_protocol::load::Rows;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ffi};

use super::batch::Batch;
use super::dialect::Dialect;
use super::remote::no_descriptor_left;
use super::table::Table;
use super::{
    AccessMode, Cell, Connection, Driver, DriverError, ErrorKind, Row, StatementId, StatementShape,
    Value,
};
use crate::reactor::Load;
use crate::stop::Stop;

/// Pragmas that shape the file and work only before anything else has touched it.
const SHAPING: [&str; 3] = ["page_size", "auto_vacuum", "encoding"];

/// Pragmas always read back, asked for or not: they decide what a commit costs.
const ALWAYS_READ: [&str; 6] = [
    "busy_timeout",
    "journal_mode",
    "synchronous",
    "cache_size",
    "page_size",
    "locking_mode",
];

/// While loading: nothing is synced, so a crash of the machine costs loading again. A rollback journal lets a load that
/// was killed go on; it holds old pages only, and a load writes new ones.
const LOADING: [(&str, &str); 4] = [
    ("journal_mode", "delete"),
    ("synchronous", "off"),
    ("cache_size", "-65536"),
    ("locking_mode", "exclusive"),
];

/// Opens connections to one file.
#[derive(Clone, Debug)]
pub struct Sqlite {
    /// The database file.
    pub path: PathBuf,
    /// Pragmas as asked.
    pub pragmas: BTreeMap<String, String>,
    /// How long a connection waits for a lock.
    pub busy_timeout: Duration,
}

/// One connection.
#[derive(Debug)]
pub struct SqliteConnection {
    connection: rusqlite::Connection,
    statements: Vec<String>,
}

impl Sqlite {
    fn open(&self) -> Result<rusqlite::Connection, DriverError> {
        let connection = rusqlite::Connection::open(&self.path).map_err(classify)?;
        connection
            .busy_timeout(self.busy_timeout)
            .map_err(classify)?;
        Ok(connection)
    }

    fn ordered_pragmas(&self) -> impl Iterator<Item = (&String, &String)> {
        let first = self.pragmas.iter().filter(|(name, _)| shapes(name));
        first.chain(self.pragmas.iter().filter(|(name, _)| !shapes(name)))
    }
}

impl Driver for Sqlite {
    type Connection = SqliteConnection;

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn describe(&self) -> String {
        format!("SQLite at {}", self.path.display())
    }

    async fn connect(&self, statements: &[String]) -> Result<SqliteConnection, DriverError> {
        let connection = self.open()?;
        for (name, value) in self.ordered_pragmas() {
            set_pragma(&connection, name, value)?;
            let effective = read_pragma(&connection, name)?;
            if normalised(name, &effective) != normalised(name, value) {
                return Err(DriverError {
                    kind: ErrorKind::Other,
                    code: super::SETTING_REFUSED.into(),
                    message: format!(
                        "pragma {name} was set to {value} but reads back as {effective}"
                    ),
                    retryable: false,
                });
            }
        }
        connection.set_prepared_statement_cache_capacity(statements.len() + 1);
        for statement in statements {
            connection.prepare_cached(statement).map_err(classify)?;
        }
        Ok(SqliteConnection {
            connection,
            statements: statements.to_vec(),
        })
    }

    async fn effective(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<BTreeMap<String, String>, DriverError> {
        let pragmas = self.pragmas.keys().map(String::as_str);
        let mut effective = BTreeMap::new();
        for name in pragmas.chain(ALWAYS_READ) {
            effective.insert(
                name.to_ascii_lowercase(),
                read_pragma(&connection.connection, name)?,
            );
        }
        effective.insert("sqlite_version".into(), rusqlite::version().into());
        effective.insert("isolation".into(), "SERIALIZABLE".into());
        Ok(effective)
    }

    async fn begin_load(&self) -> Result<(), DriverError> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut name = self.path.clone().into_os_string();
            name.push(suffix);
            match fs::remove_file(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(from_io(&error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn load_connection(&self) -> Result<SqliteConnection, DriverError> {
        let connection = self.open()?;
        let shaping = self.ordered_pragmas().filter(|(name, _)| shapes(name));
        for (name, value) in shaping
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(LOADING)
        {
            set_pragma(&connection, name, value)?;
        }
        Ok(SqliteConnection {
            connection,
            statements: Vec::new(),
        })
    }

    /// Closes the loading connection, syncs the file and puts the asked pragmas in force.
    async fn end_load(&self, connection: SqliteConnection) -> Result<(), DriverError> {
        connection
            .connection
            .close()
            .map_err(|(_, error)| classify(error))?;
        fs::File::open(&self.path)
            .and_then(|file| file.sync_all())
            .map_err(|error| from_io(&error))?;
        self.connect(&[]).await.map(drop)
    }

    fn load_threads(&self, _asked: usize) -> usize {
        1
    }

    fn user_threads(&self, users: usize) -> usize {
        users
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        // Nothing in this driver waits for a reactor: a future is ready when first polled, or its author erred.
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Ok(value),
            Poll::Pending => Err(io::Error::other(
                "a future waited for a reactor, and this driver has none",
            )),
        }
    }

    fn run(
        &self,
        tasks: Vec<impl Future<Output = ()> + 'static>,
        _stop: &Stop,
    ) -> io::Result<Option<Load>> {
        tasks.into_iter().try_for_each(|task| self.block_on(task))?;
        Ok(None)
    }

    async fn pause(&self, duration: Duration, stop: &Stop) {
        stop.wait(duration);
    }
}

impl SqliteConnection {
    fn prepared(&self, statement: StatementId) -> Result<CachedStatement<'_>, DriverError> {
        let sql = &self.statements[statement.0];
        self.connection.prepare_cached(sql).map_err(classify)
    }

    fn text_now(&self, sql: &str) -> Result<Rows, DriverError> {
        let mut statement = self.connection.prepare(sql).map_err(classify)?;
        let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
        let mut answer = Rows {
            columns,
            rows: Vec::new(),
        };
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(classify)? {
            let cells = (0..answer.columns.len()).map(|column| row.get_ref(column).map(as_text));
            answer
                .rows
                .push(cells.collect::<Result<_, _>>().map_err(classify)?);
        }
        Ok(answer)
    }
}

impl Connection for SqliteConnection {
    async fn begin(&mut self, access: AccessMode) -> Result<(), DriverError> {
        // A writer that begins by reading can find its snapshot overtaken and must start again; IMMEDIATE waits its
        // turn in front of the work instead.
        let sql = match access {
            AccessMode::ReadOnly => "BEGIN",
            AccessMode::ReadWrite => "BEGIN IMMEDIATE",
        };
        self.connection.execute_batch(sql).map_err(classify)
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        self.connection.execute_batch("COMMIT").map_err(classify)
    }

    async fn rollback(&mut self) -> Result<(), DriverError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch("ROLLBACK").map_err(classify)
    }

    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        let mut prepared = self.prepared(statement)?;
        let touched = prepared
            .execute(rusqlite::params_from_iter(values))
            .map_err(classify)?;
        Ok(touched as u64)
    }

    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        let mut prepared = self.prepared(statement)?;
        let columns = prepared.column_count();
        let mut rows = prepared
            .query(rusqlite::params_from_iter(values))
            .map_err(classify)?;
        let mut answer = Vec::new();
        while let Some(row) = rows.next().map_err(classify)? {
            let cells =
                (0..columns).map(|column| row.get_ref(column).map_err(classify).and_then(cell));
            answer.push(Row(cells.collect::<Result<_, _>>()?));
        }
        Ok(answer)
    }

    async fn read(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        let mut prepared = self.prepared(statement)?;
        let mut rows = prepared
            .query(rusqlite::params_from_iter(values))
            .map_err(classify)?;
        let mut count = 0;
        while rows.next().map_err(classify)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    async fn shape(&mut self, sql: &str) -> Result<StatementShape, DriverError> {
        let prepared = self.connection.prepare(sql).map_err(classify)?;
        Ok(StatementShape {
            parameters: prepared.parameter_count(),
            integers: Vec::new(),
            columns: prepared.column_count(),
        })
    }

    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError> {
        self.text_now(sql)
    }

    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError> {
        let marks = vec!["?"; table.columns.len()].join(", ");
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({marks})",
            table.name,
            table.column_names()
        );
        let mut prepared = self.connection.prepare_cached(&sql).map_err(classify)?;
        for row in batch.rows(table.columns.len()) {
            prepared
                .execute(rusqlite::params_from_iter(row))
                .map_err(classify)?;
        }
        Ok(())
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(integer),
            Value::Decimal(decimal) => ValueRef::Integer(decimal.units),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Result<Cell, DriverError> {
    match value {
        ValueRef::Null => Ok(Cell::Null),
        ValueRef::Integer(integer) => Ok(Cell::Integer(integer)),
        ValueRef::Text(text) => Ok(Cell::Text(String::from_utf8_lossy(text).into_owned())),
        // Its shortest digits read back as the same number.
        ValueRef::Real(real) => Ok(Cell::Text(real.to_string())),
        other @ ValueRef::Blob(_) => Err(DriverError::unexpected(format!(
            "SQLite answered with a {}",
            other.data_type()
        ))),
    }
}

fn as_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(integer) => Some(integer.to_string()),
        ValueRef::Real(real) => Some(real.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn shapes(name: &str) -> bool {
    SHAPING
        .iter()
        .any(|shaping| shaping.eq_ignore_ascii_case(name))
}

fn set_pragma(
    connection: &rusqlite::Connection,
    name: &str,
    value: &str,
) -> Result<(), DriverError> {
    connection
        .pragma_update(None, name, value)
        .map_err(classify)
}

fn read_pragma(connection: &rusqlite::Connection, name: &str) -> Result<String, DriverError> {
    let read = connection.pragma_query_value(None, name, |row| row.get_ref(0).map(as_text));
    match read {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok("nothing (SQLite does not know it)".into()),
        Err(error) => Err(classify(error)),
    }
}

/// One word for the spellings that SQLite takes as one (`PRAGMA synchronous = FULL` reads back as 2).
fn normalised(name: &str, value: &str) -> String {
    let value = value.trim().trim_matches('\'').to_ascii_lowercase();
    let names: &[&str] = match name.to_ascii_lowercase().as_str() {
        "synchronous" => &["off", "normal", "full", "extra"],
        "temp_store" => &["default", "file", "memory"],
        "auto_vacuum" => &["none", "full", "incremental"],
        "secure_delete" => &["off", "on", "fast"],
        _ => &[],
    };
    if let Some(number) = names.iter().position(|known| *known == value) {
        return number.to_string();
    }
    match value.as_str() {
        "on" | "true" | "yes" => "1".into(),
        "off" | "false" | "no" => "0".into(),
        _ => value,
    }
}

#[allow(clippy::needless_pass_by_value)] // the form that `map_err` takes
fn classify(error: rusqlite::Error) -> DriverError {
    let (failure, message) = match &error {
        rusqlite::Error::SqliteFailure(failure, message) => (failure, message.as_ref()),
        // rusqlite reports an error in a statement's text apart, with the place in it.
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, Some(msg)),
        other => return DriverError::unexpected(other.to_string()),
    };
    let primary = failure.extended_code & 0xff;
    if let (ffi::SQLITE_CANTOPEN, Some(error)) = (primary, no_descriptor_left()) {
        return error;
    }
    let kind = match primary {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => ErrorKind::Busy,
        ffi::SQLITE_CANTOPEN => ErrorKind::Connection,
        ffi::SQLITE_FULL => ErrorKind::DiskFull,
        _ => ErrorKind::Other,
    };
    DriverError {
        kind,
        code: code_name(primary),
        message: message
            .cloned()
            .unwrap_or_else(|| ffi::code_to_str(failure.extended_code).into()),
        retryable: kind == ErrorKind::Busy,
    }
}

fn code_name(primary: i32) -> String {
    let name = match primary {
        ffi::SQLITE_BUSY => "SQLITE_BUSY",
        ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
        ffi::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
        ffi::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
        ffi::SQLITE_CORRUPT => "SQLITE_CORRUPT",
        ffi::SQLITE_ERROR => "SQLITE_ERROR",
        ffi::SQLITE_FULL => "SQLITE_FULL",
        ffi::SQLITE_IOERR => "SQLITE_IOERR",
        ffi::SQLITE_NOTADB => "SQLITE_NOTADB",
        ffi::SQLITE_READONLY => "SQLITE_READONLY",
        other => return format!("SQLITE_{other}"),
    };
    name.into()
}

fn from_io(error: &io::Error) -> DriverError {
    DriverError {
        kind: ErrorKind::Other,
        code: "io".into(),
        message: error.to_string(),
        retryable: false,
    }
}

#[cfg(test)]
mod tests;
