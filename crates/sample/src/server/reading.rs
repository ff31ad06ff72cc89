//! From a server that has said what it is to a few cheap statements, and from their answers to a row.

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
    /// MySQL from 5.7 on.
    Mysql,
    /// MySQL before it.
    EarlierMysql,
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
        } else if ["5.1.", "5.5.", "5.6."]
            .iter()
            .any(|earlier| version.starts_with(earlier))
        {
            Self::EarlierMysql
        } else {
            Self::Mysql
        }
    }

    /// Who waits for whom; columns as `lock_waits` names them.
    #[must_use]
    pub fn lock_waits(self) -> &'static str {
        match self {
            Self::Mariadb => mysql::LOCK_WAITS_MARIADB,
            Self::Mysql => mysql::LOCK_WAITS_MYSQL,
            Self::EarlierMysql => mysql::LOCK_WAITS_EARLIER_MYSQL,
            Self::Postgres => postgres::LOCK_WAITS,
        }
    }

    /// Which statements read every counter that this server has; `ask` asks it.
    pub fn reading<E>(
        self,
        counters: &[Counter],
        mut ask: impl FnMut(&str) -> Result<Rows, E>,
    ) -> Result<Reading, E> {
        if self == Self::Postgres {
            return Ok(postgres::reading(counters, &owned(&ask(postgres::PROBE)?)));
        }
        let mut names = owned(&ask(mysql::STATUS)?);
        if let Some(switched_on) = mysql::switched_on(&ask(mysql::TABLE)?) {
            names.extend(owned(&ask(&switched_on)?));
        }
        Ok(mysql::reading(counters, &names))
    }
}

/// Statements, and which column each name in their answers fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Asked one after the other.
    pub statements: Vec<String>,
    /// Lower-case name in the answers → columns.
    pub columns: BTreeMap<String, Vec<usize>>,
    /// Whether names and values stand in rows, or a single row has a column for each.
    pub in_rows: bool,
}

impl Reading {
    /// Fills a row, one cell for each of `counters`, from the answer to one of the statements. What is no whole number
    /// from 0 up stays as it was.
    pub fn fill(&self, counters: &[Counter], answer: &Rows, row: &mut [Option<u64>]) {
        let mut say = |name: &str, value: Option<&str>| {
            for column in self.columns.get(&name.to_lowercase()).into_iter().flatten() {
                row[*column] = value.and_then(|value| value.parse().ok()).or(row[*column]);
            }
        };
        if self.in_rows {
            for row in &answer.rows {
                match row.as_slice() {
                    [Some(name), value] => say(name, value.as_deref()),
                    [_, _, Some(text)] => mysql::monitor_lines(counters, text)
                        .iter()
                        .for_each(|(name, value)| say(name, Some(value))),
                    _ => {}
                }
            }
        } else if let Some(values) = answer.rows.first() {
            for (name, value) in answer.columns.iter().zip(values) {
                say(name, value.as_deref());
            }
        }
    }
}

fn owned(names: &Rows) -> Vec<String> {
    first_cells(names).map(str::to_owned).collect()
}

/// The first cell of every row that has one.
pub fn first_cells(rows: &Rows) -> impl Iterator<Item = &str> {
    rows.rows
        .iter()
        .filter_map(|row| row.first().and_then(Option::as_deref))
}

#[cfg(test)]
mod tests;
