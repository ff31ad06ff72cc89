//! Which of a server's own counters become which column: one list for every server, in `counters.json`, which the
//! reference page of telemetry shows too (with the fields that only a reader needs).

use serde::Deserialize;

/// One column of `telemetry-server.arrows`, and where each family of servers keeps it: the first name a server has.
#[derive(Clone, Debug, Deserialize)]
pub struct Counter {
    /// The column.
    pub column: String,
    /// Status variables (`SHOW GLOBAL STATUS`), counters of a table (`INNODB_METRICS.<name>`), or what a line of the
    /// monitor's text begins with (`INNODB STATUS.<words>`).
    pub mysql: Vec<String>,
    /// SQL over the views that `postgres` knows; all columns it names must exist.
    pub postgres: Vec<String>,
}

/// How the list marks a counter of that table.
pub const METRIC: &str = "INNODB_METRICS.";

/// How the list marks a line of InnoDB's monitor.
pub const LINE: &str = "INNODB STATUS.";

impl Counter {
    /// Whether the table of counters may have it.
    #[must_use]
    pub fn is_in_table(&self) -> bool {
        self.mysql.iter().any(|name| name.starts_with(METRIC))
    }

    /// The same without lines of the monitor, which is too dear to be asked for many times a second.
    #[must_use]
    pub fn without_monitor(mut self) -> Self {
        self.mysql.retain(|name| !name.starts_with(LINE));
        self
    }

    /// The same by status variables alone: whether a metric is there depends on what somebody has switched on, and it
    /// and the monitor are only for who has the privilege PROCESS.
    #[must_use]
    pub fn of_status_only(mut self) -> Self {
        self.mysql
            .retain(|name| !name.starts_with(LINE) && !name.starts_with(METRIC));
        self
    }
}

/// Every column, in the file's order.
///
/// # Panics
///
/// Never: the list is part of this program.
#[must_use]
pub fn all() -> Vec<Counter> {
    serde_json::from_str(include_str!("counters.json")).expect("a test reads it")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;

    #[test]
    fn every_column_is_named_once_and_comes_from_somewhere() {
        let counters = all();
        let columns: BTreeSet<_> = counters.iter().map(|each| &each.column).collect();
        assert_eq!(columns.len(), counters.len());
        for counter in &counters {
            let named = counter.mysql.len() + counter.postgres.len();
            assert!(named > 0, "{} comes from nowhere", counter.column);
        }
    }
}
