//! From a server that has said what it is to the statements that read it.

use fairtrial_protocol::load::Rows;

use super::counters::Counter;
use super::queries::{CounterQueries, first_cells};
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
    pub fn queries<E>(
        self,
        counters: &[Counter],
        mut ask: impl FnMut(&str) -> Result<Rows, E>,
    ) -> Result<CounterQueries, E> {
        if self == Self::Postgres {
            return Ok(postgres::queries(counters, &owned(&ask(postgres::PROBE)?)));
        }
        let mut names = owned(&ask(mysql::STATUS)?);
        if counters.iter().any(Counter::is_in_table)
            && let Some(switched_on) = mysql::switched_on(&ask(mysql::TABLE)?)
        {
            names.extend(owned(&ask(&switched_on)?));
        }
        Ok(mysql::queries(counters, &names))
    }
}

fn owned(names: &Rows) -> Vec<String> {
    first_cells(names).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
