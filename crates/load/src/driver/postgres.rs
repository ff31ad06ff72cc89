//! PostgreSQL: virtual users are tasks of a few single-threaded loops.
//!
//! Secrets are `postgres-protocol`'s; the messages are written here.

mod answer;
mod channel;
mod connection;
mod copy;
pub mod login;

use std::collections::BTreeMap;
use std::path::Path;

pub use self::connection::PostgresConnection;
use super::dialect::Dialect;
use super::remote::{self, Account, PREPARED_AT_ONCE, RemoteServer, TextRows, lost, refused};
use super::{Connection as _, Driver, DriverError};
use crate::reactor::Address;

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
pub struct Postgres(pub RemoteServer);

impl Postgres {
    /// The registered port.
    pub const DEFAULT_PORT: u16 = 5432;

    /// The address of the Unix socket that a server makes for its port in a directory.
    pub fn socket(directory: &str, port: u16) -> Address {
        Address::Socket(Path::new(directory).join(format!(".s.PGSQL.{port}")))
    }

    async fn open(&self, database: &str) -> Result<PostgresConnection, DriverError> {
        PostgresConnection::open(&self.0.address, &self.0.account(Some(database))).await
    }
}

impl Driver for Postgres {
    type Connection = PostgresConnection;

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    async fn connect(&self, statements: &[String]) -> Result<PostgresConnection, DriverError> {
        let mut connection = self.open(&self.0.database).await?;
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
        match self.open(&self.0.database).await {
            Err(error) if error.code == NO_DATABASE => {}
            opened => return opened.map(drop),
        }
        let mut connection = self.open(MAINTENANCE).await?;
        connection.wait_for_ever();
        let name = self.0.database.replace('"', "\"\"");
        // Text compares by bytes, so that "sorted by first name" means the same on every system.
        let how = "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'";
        let sql = format!("CREATE DATABASE \"{name}\" {how}");
        connection.run(&sql).await.map(drop)
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
        Ok(())
    }
}
