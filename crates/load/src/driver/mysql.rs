//! MariaDB and MySQL: virtual users are tasks of a few single-threaded loops.
//!
//! The greeting's packets and secrets are `mysql_common`'s; what is done for every statement is written here.

mod answer;
mod bulk;
mod channel;
mod connection;
mod login;

use std::collections::BTreeMap;

pub use self::connection::MysqlConnection;
use super::dialect::Dialect;
use super::remote::{self, Account, PREPARED_AT_ONCE, RemoteServer, TextRows, lost, refused};
use super::{Connection as _, Driver, DriverError, ErrorKind};

/// Variables that shape results; those a version lacks are left out by the server.
const EFFECTIVE: &str = "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', \
    'autocommit', 'sql_mode', 'innodb_lock_wait_timeout', 'innodb_snapshot_isolation', 'version')";

/// While loading. The mode is ours, whatever the server's: text that does not fit is an error and never cut, and a
/// backslash escapes, as the rows are written.
const LOADING: &str =
    "SET SESSION unique_checks = 0, foreign_key_checks = 0, sql_mode = 'STRICT_ALL_TABLES'";

/// Opens connections to one server.
#[derive(Clone, Debug)]
pub struct Mysql(pub RemoteServer);

impl Mysql {
    /// The registered port.
    pub const DEFAULT_PORT: u16 = 3306;

    async fn open(&self, database: Option<&str>) -> Result<MysqlConnection, DriverError> {
        MysqlConnection::open(&self.0.address, &self.0.account(database)).await
    }
}

impl Driver for Mysql {
    type Connection = MysqlConnection;

    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    async fn connect(&self, statements: &[String]) -> Result<MysqlConnection, DriverError> {
        let mut connection = self.open(Some(&self.0.database)).await?;
        connection.prepare(statements).await?;
        Ok(connection)
    }

    async fn effective(
        &self,
        connection: &mut MysqlConnection,
    ) -> Result<BTreeMap<String, String>, DriverError> {
        connection.text(EFFECTIVE).await.map(remote::settings)
    }

    async fn begin_load(&self) -> Result<(), DriverError> {
        let mut connection = self.open(None).await?;
        let name = self.0.database.replace('`', "``");
        let sql = format!("CREATE DATABASE IF NOT EXISTS `{name}`");
        connection.run(&sql).await.map(drop)
    }

    async fn load_connection(&self) -> Result<MysqlConnection, DriverError> {
        let mut connection = self.connect(&[]).await?;
        connection.wait_for_ever();
        connection.run(LOADING).await?;
        Ok(connection)
    }

    async fn end_load(&self, _connection: MysqlConnection) -> Result<(), DriverError> {
        Ok(())
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
        // too many connections (of the server, of the user), access denied, server shutting down, killed, idle too long
        1040 | 1203 | 1226 | 1044 | 1045 | 1049 | 1053 | 1927 | 3169 | 4031 => {
            (ErrorKind::Connection, false)
        }
        // ER_DISK_FULL; ER_RECORD_FILE_FULL, as InnoDB calls a file that cannot grow: room may come, but not at once
        1021 | 1114 => (ErrorKind::DiskFull, false),
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
