//! Servers that tests share, whichever system they are: what both must do is written once against these.

use std::sync::{Mutex, OnceLock, PoisonError};

use fairtrial_protocol::load::Endpoint;

use super::contents::TABLES;
use super::mariadb::{self, keep};
use super::{hold, load, number, postgres, sql, wait_until};

/// The database that others are copies of.
const WAREHOUSES: &str = "warehouses";

/// A system whose server tests may share, each with databases of its own.
pub trait System: Sized + Sync + 'static {
    /// A database that is always there.
    const MAINTENANCE: &'static str;
    /// The setting that says how transactions are isolated, as a drive records it, and its value here.
    const ISOLATION: (&'static str, &'static str);
    /// Codes of what users who meet get over.
    const CONFLICTS: &'static [&'static str];
    /// The code of a key that is there already, and how often a transaction that meets it is begun with two retries.
    const DUPLICATE: (&'static str, u64);
    /// Transactions of a crowd: as many as its deadlocks, each found after a while, leave time for.
    const CROWD: u64;
    /// Twelve digits of a row's hash as a number.
    const HASH: &'static str;
    /// A statement that gives no rows.
    const NOTHING: &'static str;
    /// What ends all connections to a database that is dropped.
    const FORCE: &'static str;
    /// Where the names of databases are.
    const DATABASES: &'static str;

    /// The server that all share; `None`, said on standard error, where none is installed.
    fn common() -> Option<&'static Self>;

    /// The endpoint of one database.
    fn at(&self, database: &str) -> Endpoint;

    /// A query for the number of indexes in a database.
    fn indexes(database: &str) -> String;

    /// A database of two warehouses, 0.25 GB: a copy of one that is loaded once.
    fn with_warehouses(&self, database: &str) -> Endpoint {
        static COPYING: Mutex<()> = Mutex::new(());
        let _alone = COPYING.lock().unwrap_or_else(PoisonError::into_inner);
        let known = format!("SELECT COUNT(*) FROM {} = '{WAREHOUSES}'", Self::DATABASES);
        if number(&self.at(Self::MAINTENANCE), &known) == 0 {
            load(self.at(WAREHOUSES), 2, 2);
        }
        self.copy(WAREHOUSES, database);
        self.at(database)
    }

    /// Copies a database that nobody is connected to.
    fn copy(&self, from: &str, to: &str);

    /// Drops a database that a test made: the disk of these machines is small.
    fn forget(&self, database: &str) {
        let drop = format!("DROP DATABASE {database}{}", Self::FORCE);
        sql(&self.at(Self::MAINTENANCE), &[&drop]);
    }

    /// Fails unless the tables of a database have the indexes of TPC-C.
    fn assert_indexed(&self, database: &str) {
        let indexes = number(&self.at(database), &Self::indexes(database));
        assert_eq!(indexes, 10, "eight primary keys and two indexes");
    }
}

impl System for mariadb::Server {
    const MAINTENANCE: &'static str = "mysql";
    const ISOLATION: (&'static str, &'static str) = ("tx_isolation", "REPEATABLE-READ");
    const CONFLICTS: &'static [&'static str] = &["1213", "1205", "1020"];
    const DUPLICATE: (&'static str, u64) = ("1062", 1);
    const CROWD: u64 = 1_100;
    const HASH: &'static str = "CAST(CONV(LEFT(MD5(ROW_TEXT), 12), 16, 10) AS DECIMAL(20))";
    const NOTHING: &'static str = "DO 0";
    const FORCE: &'static str = "";
    const DATABASES: &'static str = "information_schema.schemata WHERE schema_name";

    fn common() -> Option<&'static Self> {
        static COMMON: OnceLock<Option<mariadb::Server>> = OnceLock::new();
        COMMON.get_or_init(|| keep(mariadb::start_shared)).as_ref()
    }

    fn at(&self, database: &str) -> Endpoint {
        self.endpoint(database)
    }

    /// By the files of its tables: to insert rows again takes as long as to load them.
    fn copy(&self, from: &str, to: &str) {
        let each = |make: &dyn Fn(&str) -> String| {
            let statements: Vec<_> = TABLES.iter().map(|(table, _)| make(table)).collect();
            let statements: Vec<_> = statements.iter().map(String::as_str).collect();
            sql(&self.at(Self::MAINTENANCE), &statements);
        };
        let create = format!("CREATE DATABASE {to}");
        sql(&self.at(Self::MAINTENANCE), &[&create]);
        each(&|table| format!("CREATE TABLE {to}.{table} LIKE {from}.{table}"));
        each(&|table| format!("ALTER TABLE {to}.{table} DISCARD TABLESPACE"));
        let tables = TABLES
            .map(|(table, _)| format!("{from}.{table}"))
            .join(", ");
        let export = format!("FLUSH TABLES {tables} FOR EXPORT");
        let held = hold(&self.at(Self::MAINTENANCE), &[&export]);
        for (table, _) in TABLES {
            for kind in ["ibd", "cfg"] {
                let file = |database: &str| self.data().join(format!("{database}/{table}.{kind}"));
                mariadb::copy(&file(from), &file(to));
            }
        }
        drop(held);
        each(&|table| format!("ALTER TABLE {to}.{table} IMPORT TABLESPACE"));
    }

    fn indexes(database: &str) -> String {
        format!(
            "SELECT COUNT(DISTINCT table_name, index_name) FROM information_schema.statistics \
             WHERE table_schema = '{database}'"
        )
    }
}

impl System for postgres::Server {
    const MAINTENANCE: &'static str = "postgres";
    const ISOLATION: (&'static str, &'static str) = ("transaction_isolation", "read committed");
    const CONFLICTS: &'static [&'static str] = &["40P01", "23505"];
    const DUPLICATE: (&'static str, u64) = ("23505", 3);
    const CROWD: u64 = 500;
    const HASH: &'static str = "('x' || LEFT(MD5(ROW_TEXT), 12))::bit(48)::bigint";
    const NOTHING: &'static str = "SET jit = off";
    const FORCE: &'static str = " WITH (FORCE)";
    const DATABASES: &'static str = "pg_database WHERE datname";

    fn common() -> Option<&'static Self> {
        static COMMON: OnceLock<Option<postgres::Server>> = OnceLock::new();
        COMMON.get_or_init(|| keep(postgres::start_common)).as_ref()
    }

    fn at(&self, database: &str) -> Endpoint {
        self.endpoint(database)
    }

    fn copy(&self, from: &str, to: &str) {
        let copy = format!("CREATE DATABASE {to} TEMPLATE {from}");
        let left = format!("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{from}'");
        let maintenance = self.at(Self::MAINTENANCE);
        wait_until("nobody is connected", || number(&maintenance, &left) == 0);
        sql(&maintenance, &[&copy]);
    }

    fn indexes(_: &str) -> String {
        "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = 'public'".into()
    }
}

/// Makes tests of both systems from functions that take a server.
#[macro_export]
macro_rules! on_both_systems {
    ($($(#[$mark:meta])* $test:ident),+ $(,)?) => {
        $crate::on_both_systems!(mariadb: $($(#[$mark])* $test),+);
        $crate::on_both_systems!(postgres: $($(#[$mark])* $test),+);
    };
    ($system:ident: $($(#[$mark:meta])* $test:ident),+) => {
        mod $system {
            use $crate::support::$system::Server;
            use $crate::support::system::System as _;

            $(
                #[test]
                $(#[$mark])*
                fn $test() {
                    if let Some(server) = Server::common() {
                        super::$test(server);
                    }
                }
            )+
        }
    };
}
