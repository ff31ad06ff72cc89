//! The tables, and the only place of this family that writes SQL differently for different systems.

use fairtrial_protocol::oltp::Layout;

use crate::driver::AccessMode;
use crate::driver::dialect::{Dialect, Type};
use crate::driver::table::{Column, Table};

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: false,
    }
}

static ROWS: [Column; 4] = [
    column("id", Type::Integer),
    column("k", Type::Integer),
    column("c", Type::Fixed(120)),
    column("pad", Type::Fixed(60)),
];

static BULK: [Column; 2] = [column("id", Type::Integer), column("k", Type::Integer)];

/// The name of a table, counted from 1.
pub fn name(number: u32) -> String {
    format!("sbtest{number}")
}

/// Tables 1 to `count`. They live as long as the process: it loads once, and bulk inserts ask for static tables.
pub fn tables(layout: Layout, count: u32) -> Vec<&'static Table> {
    let columns: &'static [Column] = match layout {
        Layout::Rows => &ROWS,
        Layout::Bulk => &BULK,
    };
    let table = |number| -> &'static Table {
        Box::leak(Box::new(Table {
            name: name(number).leak(),
            columns,
            primary_key: &["id"],
            indexes: &[],
        }))
    };
    (1..=count).map(table).collect()
}

/// The statement that creates a table. A system that has `AUTO_INCREMENT` or its like gives keys that are left out.
pub fn create(dialect: Dialect, layout: Layout, table: &str) -> String {
    let (key, options) = match dialect {
        Dialect::Sqlite => ("INTEGER NOT NULL", " STRICT"),
        Dialect::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", ""),
        Dialect::Postgres => ("SERIAL", ""),
    };
    let text = |length| dialect.column_type(Type::Fixed(length));
    match layout {
        Layout::Rows => format!(
            "CREATE TABLE {table} (id {key}, k INTEGER DEFAULT '0' NOT NULL, \
             c {} DEFAULT '' NOT NULL, pad {} DEFAULT '' NOT NULL, PRIMARY KEY (id)){options}",
            text(120),
            text(60)
        ),
        Layout::Bulk => format!(
            "CREATE TABLE {table} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id)){options}"
        ),
    }
}

/// The statement that creates the index on `k`.
pub fn create_index(number: u32) -> String {
    format!("CREATE INDEX k_{number} ON {} (k)", name(number))
}

/// The statement that lets a table's keys go on after those that were loaded, where the system does not see to it.
pub fn next_key(dialect: Dialect, number: u32) -> Option<String> {
    let table = name(number);
    (dialect == Dialect::Postgres).then(|| {
        format!(
            "SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT MAX(id) FROM {table}))"
        )
    })
}

/// Columns of a new row, and what stands for the key the system is to give.
pub fn new_row(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Mysql => ("id, k, c, pad", "0, "),
        Dialect::Sqlite | Dialect::Postgres => ("k, c, pad", ""),
    }
}

/// How a transaction that only reads begins: plainly, as sysbench begins it, where beginning plainly takes no lock.
pub fn reading(dialect: Dialect) -> AccessMode {
    match dialect {
        Dialect::Mysql | Dialect::Postgres => AccessMode::ReadWrite,
        Dialect::Sqlite => AccessMode::ReadOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_made_by_the_servers_default_engine() {
        let oltp = [Layout::Rows, Layout::Bulk].map(|layout| create(Dialect::Mysql, layout, "t"));
        let others = [true, false].map(|key| Dialect::Mysql.table_options(key).to_owned());
        for sql in oltp.iter().chain(&others) {
            assert!(!sql.contains("ENGINE"), "{sql}");
        }
    }
}
