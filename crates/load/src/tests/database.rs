//! A database small enough to read: one warehouse, two districts, one customer and two orders in each.

use std::collections::BTreeMap;
use std::time::Duration;

use fairtrial_protocol::load::Endpoint;
use tempfile::TempDir;

use crate::driver::dialect::Dialect;
use crate::tpcc::schema::TABLES;

/// Text columns that nothing looks at.
const TIME: &str = "'2026-01-01 00:00:00'";

/// A database file of the test's own.
pub struct Tiny {
    /// Holds the file.
    pub directory: TempDir,
    connection: rusqlite::Connection,
}

impl Tiny {
    /// The tables with their rows; all twelve conditions hold. Money is in cents, as SQLite holds it.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let connection =
            rusqlite::Connection::open(directory.path().join("t.db")).expect("SQLite opens a file");
        let tiny = Self {
            directory,
            connection,
        };
        tiny.run("PRAGMA synchronous = OFF; BEGIN");
        for table in TABLES {
            tiny.run(&table.create(Dialect::Sqlite));
        }
        tiny.run("INSERT INTO warehouse VALUES (1, 'W', '', '', '', '', '', 1000, 3000)");
        for item in 1..=3 {
            tiny.run(&format!(
                "INSERT INTO item VALUES ({item}, 1, 'item', {item}25, 'data')"
            ));
            let information: Vec<String> = (1..=10)
                .map(|district| format!("'info {district:02}'"))
                .collect();
            let information = information.join(", ");
            tiny.run(&format!(
                "INSERT INTO stock VALUES ({item}, 1, 50, {information}, 0, 0, 0, 'data')"
            ));
        }
        for (district, paid) in [(1, 1_000), (2, 2_000)] {
            tiny.fill_district(district, paid);
        }
        tiny.run("COMMIT");
        tiny
    }

    /// Order 1 is delivered, of two lines for 150 and 250; order 2 is not, of one line for 70.
    fn fill_district(&self, district: i64, paid: i64) {
        self.run(&format!("INSERT INTO district VALUES ({district}, 1, 'D{district}', '', '', '', '', '', 500, {paid}, 3)"));
        // One order has gone, where a loaded district has 2,100 before any delivery (condition 11).
        let deliveries = 1 - 2_100;
        self.run(&format!(
            "INSERT INTO customer VALUES (1, {district}, 1, 'FIRST', 'OE', 'BARBARBAR', '', '', '', '', '', '', {TIME}, \
             'GC', 5000000, 100, {balance}, {paid}, 1, {deliveries}, 'remarks')",
            balance = 400 - paid
        ));
        self.run(&format!(
            "INSERT INTO history VALUES (1, {district}, 1, {district}, 1, {TIME}, {paid}, '')"
        ));
        self.run(&format!(
            "INSERT INTO orders VALUES (1, {district}, 1, 1, {TIME}, 5, 2, 1), (2, {district}, 1, 1, {TIME}, NULL, 1, 1)"
        ));
        self.run(&format!("INSERT INTO new_order VALUES (2, {district}, 1)"));
        self.run(&format!(
            "INSERT INTO order_line VALUES (1, {district}, 1, 1, 1, 1, {TIME}, 5, 150, ''), \
             (1, {district}, 1, 2, 2, 1, {TIME}, 5, 250, ''), (2, {district}, 1, 1, 3, 1, NULL, 5, 70, '')"
        ));
    }

    /// Runs one statement.
    pub fn run(&self, sql: &str) {
        self.connection
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// One row, every column as text.
    pub fn row(&self, sql: &str) -> Vec<String> {
        let shown = |row: &rusqlite::Row<'_>| {
            let columns = 0..row.as_ref().column_count();
            let cell = |column| row.get::<_, rusqlite::types::Value>(column).map(show);
            columns.map(cell).collect::<Result<Vec<String>, _>>()
        };
        self.connection
            .query_row(sql, [], shown)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// How it is reached.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Sqlite {
            path: self.directory.path().join("t.db").to_string_lossy().into(),
            pragmas: BTreeMap::new(),
            busy_timeout_ms: 1_000,
        }
    }

    /// A driver for it.
    pub fn driver(&self) -> crate::driver::sqlite::Sqlite {
        crate::driver::sqlite::Sqlite {
            path: self.directory.path().join("t.db"),
            pragmas: BTreeMap::new(),
            busy_timeout: Duration::from_secs(1),
        }
    }
}

fn show(value: rusqlite::types::Value) -> String {
    match value {
        rusqlite::types::Value::Null => "NULL".into(),
        rusqlite::types::Value::Integer(integer) => integer.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{other:?} in a table of TPC-C"),
    }
}
