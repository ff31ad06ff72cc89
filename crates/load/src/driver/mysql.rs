//! MariaDB and MySQL over `mysql_async` and tokio: virtual users are tasks on a few single-threaded reactors.

mod bulk;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::Rows;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Params};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::batch::Batch;
use super::dialect::Dialect;
use super::table::Table;
use super::{
    Access, Cell, Connection, Driver, DriverError, ErrorKind, Row, StatementId, Stop, Value,
};
use crate::calendar;

/// One reactor serves this many users before another thread is worth its switches.
const USERS_PER_REACTOR: usize = 16;

/// How soon sleeping tasks hear of a stop; 50 looks a second cost no measurable CPU.
const STOP_LATENCY: Duration = Duration::from_millis(20);

/// Variables that shape results; those a version lacks are left out by the server.
const EFFECTIVE: &str = "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', \
    'autocommit', 'sql_mode', 'innodb_lock_wait_timeout', 'innodb_snapshot_isolation', 'version')";

/// While loading. The mode is ours, whatever the server's: text that does not fit is an error and never cut, and a
/// backslash escapes, as the rows are written.
const LOADING: &str =
    "SET SESSION unique_checks = 0, foreign_key_checks = 0, sql_mode = 'STRICT_ALL_TABLES'";

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A TCP port.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Opens connections to one server.
#[derive(Clone, Debug)]
pub struct Mysql {
    address: Address,
    user: String,
    password: String,
    database: String,
    stopped: Arc<Notify>,
}

/// One connection.
pub struct MysqlConnection {
    connection: Conn,
    statements: Vec<mysql_async::Statement>,
    /// Whether the server has not refused `LOAD DATA LOCAL` yet.
    local_infile: bool,
}

impl Mysql {
    /// The registered port.
    pub const DEFAULT_PORT: u16 = 3306;

    /// A driver for one user and database of a server.
    pub fn new(address: Address, user: String, password: String, database: String) -> Self {
        Self {
            address,
            user,
            password,
            database,
            stopped: Arc::default(),
        }
    }

    async fn open(&self, database: Option<&str>) -> Result<Conn, DriverError> {
        let builder = OptsBuilder::default()
            .user(Some(&self.user))
            .pass((!self.password.is_empty()).then_some(&self.password))
            .db_name(database)
            .prefer_socket(false)
            .client_found_rows(true)
            // Statements are kept by their number here, for as long as the connection lives.
            .stmt_cache_size(0);
        let builder = match &self.address {
            Address::Socket(path) => builder.socket(Some(path.to_string_lossy())),
            Address::Tcp { host, port } => builder.ip_or_hostname(host).tcp_port(*port),
        };
        Conn::new(Opts::from(builder)).await.map_err(classify)
    }

    /// Says a stop to sleeping tasks; returns when they are to be abandoned.
    async fn watch(&self, stop: &Stop) {
        while !stop.abandoned() {
            tokio::time::sleep(STOP_LATENCY).await;
            if stop.stopping() {
                self.stopped.notify_waiters();
            }
        }
    }
}

fn reactor() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

impl Driver for Mysql {
    type Connection = MysqlConnection;

    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn describe(&self) -> String {
        let (user, database) = (&self.user, &self.database);
        match &self.address {
            Address::Socket(path) => format!("{user}@{}/{database}", path.display()),
            Address::Tcp { host, port } => format!("{user}@{host}:{port}/{database}"),
        }
    }

    async fn connect(&self, statements: &[String]) -> Result<MysqlConnection, DriverError> {
        let mut connection = self.open(Some(&self.database)).await?;
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(connection.prep(statement).await.map_err(classify)?);
        }
        Ok(MysqlConnection {
            connection,
            statements: prepared,
            local_infile: true,
        })
    }

    async fn effective(
        &self,
        connection: &mut MysqlConnection,
    ) -> Result<BTreeMap<String, String>, DriverError> {
        let rows = connection.text(EFFECTIVE).await?.rows;
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }

    async fn begin_load(&self) -> Result<(), DriverError> {
        let mut connection = self.open(None).await?;
        let name = self.database.replace('`', "``");
        connection
            .query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))
            .await
            .map_err(classify)?;
        connection.disconnect().await.map_err(classify)
    }

    async fn load_connection(&self) -> Result<MysqlConnection, DriverError> {
        let mut connection = self.connect(&[]).await?;
        connection.text(LOADING).await?;
        Ok(connection)
    }

    async fn end_load(&self, connection: MysqlConnection) -> Result<(), DriverError> {
        connection.connection.disconnect().await.map_err(classify)
    }

    fn load_threads(&self, asked: usize) -> usize {
        asked
    }

    fn user_threads(&self, users: usize) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        users.div_ceil(USERS_PER_REACTOR).clamp(1, processors)
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        Ok(reactor()?.block_on(future))
    }

    fn run(&self, tasks: Vec<impl Future<Output = ()> + 'static>, stop: &Stop) -> io::Result<()> {
        let reactor = reactor()?;
        let local = LocalSet::new();
        let running: Vec<_> = tasks
            .into_iter()
            .map(|task| local.spawn_local(task))
            .collect();
        let all = async {
            for task in running {
                if let Err(error) = task.await
                    && error.is_panic()
                {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
        };
        reactor.block_on(local.run_until(async {
            tokio::select! {
                () = all => {}
                () = self.watch(stop) => {}
            }
        }));
        Ok(())
    }

    async fn pause(&self, duration: Duration, stop: &Stop) {
        if stop.stopping() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.stopped.notified() => {}
        }
    }
}

impl Connection for MysqlConnection {
    async fn begin(&mut self, access: Access) -> Result<(), DriverError> {
        let sql = match access {
            Access::ReadOnly => "START TRANSACTION READ ONLY",
            Access::ReadWrite => "START TRANSACTION",
        };
        self.connection.query_drop(sql).await.map_err(classify)
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        self.connection.query_drop("COMMIT").await.map_err(classify)
    }

    async fn rollback(&mut self) -> Result<(), DriverError> {
        self.connection
            .query_drop("ROLLBACK")
            .await
            .map_err(classify)
    }

    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        let statement = &self.statements[statement.0];
        self.connection
            .exec_drop(statement, parameters(values))
            .await
            .map_err(classify)?;
        Ok(self.connection.affected_rows())
    }

    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        let statement = &self.statements[statement.0];
        let rows: Vec<mysql_async::Row> = self
            .connection
            .exec(statement, parameters(values))
            .await
            .map_err(classify)?;
        rows.into_iter().map(cells).collect()
    }

    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError> {
        let mut result = self.connection.query_iter(sql).await.map_err(classify)?;
        let columns = result.columns().map_or_else(Vec::new, |columns| {
            columns
                .iter()
                .map(|column| column.name_str().into_owned())
                .collect()
        });
        let rows: Vec<mysql_async::Row> = result.collect().await.map_err(classify)?;
        result.drop_result().await.map_err(classify)?;
        let rows = rows
            .into_iter()
            .map(|row| row.unwrap().into_iter().map(as_text).collect())
            .collect();
        Ok(Rows { columns, rows })
    }

    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError> {
        if self.local_infile {
            match bulk::load_data(&mut self.connection, table, batch).await {
                Err(error) if bulk::REFUSED.contains(&error.code.as_str()) => {
                    self.local_infile = false;
                }
                end => return end,
            }
        }
        bulk::insert(&mut self.connection, table, batch).await
    }
}

fn parameters(values: &[Value<'_>]) -> Params {
    if values.is_empty() {
        return Params::Empty;
    }
    let one = |value: &Value<'_>| match *value {
        Value::Null => mysql_async::Value::NULL,
        Value::Integer(integer) => mysql_async::Value::Int(integer),
        Value::Decimal(decimal) => {
            let mut text = String::new();
            decimal.write(&mut text);
            mysql_async::Value::Bytes(text.into_bytes())
        }
        Value::Text(text) => mysql_async::Value::Bytes(text.into()),
    };
    Params::Positional(values.iter().map(one).collect())
}

fn cells(row: mysql_async::Row) -> Result<Row, DriverError> {
    let columns = row.columns();
    let cells = row
        .unwrap()
        .into_iter()
        .zip(columns.iter())
        .map(|(value, column)| cell(value, column.column_type()));
    cells.collect::<Result<_, _>>().map(Row)
}

fn cell(value: mysql_async::Value, kind: ColumnType) -> Result<Cell, DriverError> {
    match value {
        mysql_async::Value::NULL => Ok(Cell::Null),
        mysql_async::Value::Int(integer) => Ok(Cell::Integer(integer)),
        mysql_async::Value::UInt(integer) => i64::try_from(integer)
            .map(Cell::Integer)
            .map_err(|_| DriverError::unexpected(format!("{integer} exceeds 63 bits"))),
        mysql_async::Value::Bytes(bytes) if kind == ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            units(&bytes).map(Cell::Integer)
        }
        mysql_async::Value::Bytes(bytes) => Ok(Cell::Text(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )),
        mysql_async::Value::Date(year, month, day, hour, minute, second, _) => {
            let (date, time) = ((year.into(), month, day), (hour, minute, second));
            Ok(Cell::Text(calendar::text(date, time)))
        }
        other => Err(DriverError::unexpected(format!(
            "the server answered with {other:?}"
        ))),
    }
}

/// A decimal's units: its digits without the point, of which the server always sends the column's full number.
fn units(text: &[u8]) -> Result<i64, DriverError> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut units = 0_i64;
    for byte in digits.iter().filter(|byte| **byte != b'.') {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
        let next = digit.and_then(|digit| units.checked_mul(10)?.checked_add(digit));
        let unreadable =
            || DriverError::unexpected(format!("{} is no decimal", String::from_utf8_lossy(text)));
        units = next.ok_or_else(unreadable)?;
    }
    Ok(if negative { -units } else { units })
}

fn as_text(value: mysql_async::Value) -> Option<String> {
    match value {
        mysql_async::Value::NULL => None,
        mysql_async::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    }
}

fn classify(error: mysql_async::Error) -> DriverError {
    let (code, message) = match error {
        mysql_async::Error::Server(server) => return classify_server(server.code, server.message),
        mysql_async::Error::Io(error) => ("connection_lost", error.to_string()),
        mysql_async::Error::Driver(mysql_async::DriverError::ConnectionClosed) => {
            ("connection_lost", "the server closed the connection".into())
        }
        other => return DriverError::unexpected(other.to_string()),
    };
    DriverError {
        kind: ErrorKind::Connection,
        code: code.into(),
        message,
        retryable: false,
    }
}

fn classify_server(code: u16, message: String) -> DriverError {
    let (kind, retryable) = match code {
        // ER_LOCK_DEADLOCK; XA_RBDEADLOCK
        1213 | 1614 => (ErrorKind::Deadlock, true),
        // ER_LOCK_WAIT_TIMEOUT
        1205 => (ErrorKind::LockTimeout, true),
        // ER_CHECKREAD: MariaDB's snapshot isolation found the row changed since the snapshot
        1020 => (ErrorKind::Other, true),
        // too many connections (of the server, of the user), access denied, server shutting down, killed
        1040 | 1203 | 1226 | 1044 | 1045 | 1049 | 1053 | 1927 | 3169 => {
            (ErrorKind::Connection, false)
        }
        _ => (ErrorKind::Other, false),
    };
    DriverError {
        kind,
        code: code.to_string(),
        message,
        retryable,
    }
}

#[cfg(test)]
mod tests;
