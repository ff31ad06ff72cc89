//! PostgreSQL: virtual users are tasks of a few single-threaded loops.
//!
//! Secrets are `postgres-protocol`'s; the messages are written here.

mod answer;
mod channel;
mod connection;
mod copy;
mod login;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

pub use self::connection::PostgresConnection;
use super::dialect::Dialect;
use super::remote::{self, lost};
use super::{Connection as _, Driver, DriverError};
use crate::reactor::{self, Address, Load};
use crate::stop::Stop;

/// Settings that shape results.
const EFFECTIVE: &str = "SELECT name, setting FROM pg_settings WHERE name IN ('server_version', \
    'transaction_isolation', 'default_transaction_isolation', 'synchronous_commit', 'fsync', 'full_page_writes', \
    'lock_timeout', 'deadlock_timeout', 'statement_timeout', 'plan_cache_mode', 'autovacuum', 'jit')";

/// While loading: what is loaded is durable by the last statement, which waits for the disk.
const LOADING: &str = "SET synchronous_commit = off";

/// After loading: a commit that is on disk puts all before it there. Rows that nobody has to freeze or look up the
/// writers of, and statistics, so that no trial begins with the load's work left to do.
const LOADED: [&str; 2] = ["SET synchronous_commit = on", "VACUUM (FREEZE, ANALYZE)"];

/// The code of a database that is not there.
const NO_DATABASE: &str = "3D000";

/// The database that every server has, to make others from.
const MAINTENANCE: &str = "postgres";

/// Opens connections to one server.
#[derive(Clone, Debug)]
pub struct Postgres {
    address: Address,
    user: String,
    password: String,
    database: String,
    tls: Option<Arc<ClientConfig>>,
}

/// Who logs in.
pub struct Account<'a> {
    user: &'a str,
    password: &'a str,
    database: &'a str,
    host: &'a str,
    tls: Option<Arc<ClientConfig>>,
    is_local: bool,
}

impl Account<'_> {
    /// Whether nobody else can read the connection.
    fn is_private(&self) -> bool {
        self.is_local || self.tls.is_some()
    }
}

impl Postgres {
    /// The registered port.
    pub const DEFAULT_PORT: u16 = 5432;

    /// A driver for one user and database of a server.
    pub fn new(address: Address, user: String, password: String, database: String) -> Self {
        Self {
            address,
            user,
            password,
            database,
            tls: None,
        }
    }

    /// The same over encrypted connections, which must be TCP.
    pub fn encrypted(self, config: Arc<ClientConfig>) -> Self {
        Self {
            tls: Some(config),
            ..self
        }
    }

    /// The address of the Unix socket that a server makes for its port in a directory.
    pub fn socket(directory: &str, port: u16) -> Address {
        Address::Socket(Path::new(directory).join(format!(".s.PGSQL.{port}")))
    }

    async fn open(&self, database: &str) -> Result<PostgresConnection, DriverError> {
        let is_local = matches!(self.address, Address::Socket(_));
        let account = Account {
            user: &self.user,
            password: &self.password,
            database,
            host: match &self.address {
                Address::Socket(_) => "localhost",
                Address::Tcp { host, .. } => host,
            },
            tls: self.tls.clone(),
            is_local,
        };
        PostgresConnection::open(&self.address, &account).await
    }
}

impl Driver for Postgres {
    type Connection = PostgresConnection;

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn describe(&self) -> String {
        format!("{}@{}/{}", self.user, self.address, self.database)
    }

    async fn connect(&self, statements: &[String]) -> Result<PostgresConnection, DriverError> {
        let mut connection = self.open(&self.database).await?;
        connection.prepare(statements).await?;
        Ok(connection)
    }

    async fn effective(
        &self,
        connection: &mut PostgresConnection,
    ) -> Result<BTreeMap<String, String>, DriverError> {
        connection.text(EFFECTIVE).await.map(remote::settings)
    }

    async fn begin_load(&self) -> Result<(), DriverError> {
        match self.open(&self.database).await {
            Err(error) if error.code == NO_DATABASE => {}
            opened => return opened?.quit().await,
        }
        let mut connection = self.open(MAINTENANCE).await?;
        connection.wait_for_ever();
        let name = self.database.replace('"', "\"\"");
        // Text compares by bytes, so that "sorted by first name" means the same on every system.
        let how = "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'";
        let sql = format!("CREATE DATABASE \"{name}\" {how}");
        connection.run(&sql).await?;
        connection.quit().await
    }

    async fn load_connection(&self) -> Result<PostgresConnection, DriverError> {
        let mut connection = self.connect(&[]).await?;
        connection.wait_for_ever();
        connection.run(LOADING).await?;
        Ok(connection)
    }

    async fn end_load(&self, mut connection: PostgresConnection) -> Result<(), DriverError> {
        for statement in LOADED {
            connection.run(statement).await?;
        }
        connection.quit().await
    }

    fn load_threads(&self, asked: usize) -> usize {
        asked
    }

    fn user_threads(&self, users: usize) -> usize {
        remote::user_threads(users)
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        reactor::block_on(future)
    }

    fn run(
        &self,
        tasks: Vec<impl Future<Output = ()> + 'static>,
        stop: &Stop,
    ) -> io::Result<Option<Load>> {
        reactor::run(tasks, stop).map(Some)
    }

    async fn pause(&self, duration: Duration, stop: &Stop) {
        reactor::pause(duration, stop).await;
    }
}
