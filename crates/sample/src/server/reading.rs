//! From a server that has said what it is to one cheap statement, and from its answer to a row.

use std::collections::BTreeMap;

use fairtrial_protocol::load::Rows;

use super::counters::Counter;
use super::{mysql, postgres};

/// Asks a server what it is; every family answers this.
pub const VERSION: &str = "SELECT version()";

/// A family of servers that share their statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

impl Family {
    /// From the server's own words (`10.11.6-MariaDB-0+deb12u1`, `8.4.2`, `PostgreSQL 15.8 on …`).
    #[must_use]
    pub fn of(version: &str) -> Self {
        if version.contains("PostgreSQL") {
            Self::Postgres
        } else if version.contains("MariaDB") {
            Self::Mariadb
        } else {
            Self::Mysql
        }
    }

    /// A statement that says which of the names in the list exist here, first column.
    #[must_use]
    pub fn probe(self, counters: &[Counter]) -> String {
        match self {
            Self::Mariadb | Self::Mysql => mysql::probe(self, counters),
            Self::Postgres => postgres::PROBE.to_owned(),
        }
    }

    /// The same for servers that do not understand that one: a MariaDB up to 10.2, whose table of counters is `MySQL`'s.
    #[must_use]
    pub fn older_probe(self, counters: &[Counter]) -> Option<String> {
        (self == Self::Mariadb).then(|| mysql::older_probe(counters))
    }

    /// Who waits for whom; columns as `lock_waits` names them.
    #[must_use]
    pub fn lock_waits(self) -> &'static str {
        match self {
            Self::Mariadb => mysql::LOCK_WAITS_MARIADB,
            Self::Mysql => mysql::LOCK_WAITS_MYSQL,
            Self::Postgres => postgres::LOCK_WAITS,
        }
    }

    /// The statement that reads every counter this server has.
    #[must_use]
    pub fn reading(self, counters: &[Counter], names: &Rows) -> Reading {
        let names: Vec<String> = first_cells(names).map(str::to_owned).collect();
        match self {
            Self::Mariadb | Self::Mysql => mysql::reading(self, counters, &names),
            Self::Postgres => postgres::reading(counters, &names),
        }
    }
}

/// One statement, and which column each name in its answer fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The statement.
    pub sql: String,
    /// Lower-case name in the answer → columns.
    pub columns: BTreeMap<String, Vec<usize>>,
    /// Whether names and values stand in rows, or a single row has a column for each.
    pub in_rows: bool,
}

impl Reading {
    /// Fills a row, all of it nothing before, from an answer. What is no whole number from 0 up stays nothing.
    pub fn fill(&self, answer: &Rows, row: &mut [Option<u64>]) {
        let mut say = |name: &str, value: Option<&str>| {
            for column in self.columns.get(&name.to_lowercase()).into_iter().flatten() {
                row[*column] = value.and_then(|value| value.parse().ok());
            }
        };
        if self.in_rows {
            for pair in &answer.rows {
                if let [Some(name), value] = pair.as_slice() {
                    say(name, value.as_deref());
                }
            }
        } else if let Some(values) = answer.rows.first() {
            for (name, value) in answer.columns.iter().zip(values) {
                say(name, value.as_deref());
            }
        }
    }
}

/// The first cell of every row that has one.
pub fn first_cells(rows: &Rows) -> impl Iterator<Item = &str> {
    rows.rows
        .iter()
        .filter_map(|row| row.first().and_then(Option::as_deref))
}

#[cfg(test)]
mod tests;
