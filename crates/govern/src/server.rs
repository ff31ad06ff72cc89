//! The server as the governor sees it: what it is, what it says at a look, and what it is told.
//!
//! One connection, whose thread may wait as long as it likes while nobody else does ([`Client`]). It must not know why
//! a value is set.

use std::time::Duration;

use fairtrial_load::{Client, ClientError, ErrorKind, LoadError, in_full};
use fairtrial_protocol::clock::{boottime_ns, monotonic_ns};
use fairtrial_protocol::load::{Endpoint, Rows};
use fairtrial_sample::server::counters::{self, Counter};
use fairtrial_sample::server::family::{Family, VERSION};
use fairtrial_sample::server::queries::CounterQueries;
use rustix::time::{ClockId, clock_gettime};

use crate::error::GovernError;
use crate::knobs::{BATCH_SIZE, THREADS, Values};

/// Shares are of what the server says of itself, or of its log's size; not of what monitoring switches on.
const LARGEST: &str = "checkpoint_age_max_bytes";

/// What a look reads, by the columns of the sampler's list.
const COLUMNS: [&str; 5] = [
    "history_list_length",
    "checkpoint_age_bytes",
    LARGEST,
    "lsn_current",
    "lsn_checkpoint",
];

/// A MariaDB says which of its variables can be set while it runs.
const SETTABLE: &str = "SELECT READ_ONLY FROM information_schema.SYSTEM_VARIABLES \
    WHERE VARIABLE_NAME = 'INNODB_PURGE_THREADS'";

/// How much log there is where a server does not say how old its checkpoint may become: MySQL since 8.0.30, and before.
/// The variable of the newer ones is not what they use where the older variables were given; the status is.
const CAPACITIES: [&str; 3] = [
    "SELECT VARIABLE_VALUE FROM performance_schema.global_status \
        WHERE VARIABLE_NAME = 'Innodb_redo_log_capacity_resized'",
    "SELECT @@global.innodb_redo_log_capacity",
    "SELECT @@global.innodb_log_file_size * @@global.innodb_log_files_in_group",
];

/// One start of a server: what tells it from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Incarnation {
    /// Number of a connection to it; numbers only grow, and begin anew with the server.
    pub connection: u64,
    /// When it began, seconds since 1970, as far as its `Uptime` tells: both are of the wall clock, so that a clock that
    /// is set, or a machine that slept, moves neither.
    pub began_s: i64,
}

/// `Uptime` is in whole seconds, and read a moment before the clock.
const SAME_START_S: i64 = 3;

/// How long that moment may be; it is looked for again a few times where the machine stood still in between.
const MOMENT_NS: i64 = 1_000_000_000;
const LOOKS: usize = 3;

impl Incarnation {
    /// Whether this is a later look at the same start of the server.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.connection >= earlier.connection
            && (self.began_s - earlier.began_s).abs() <= SAME_START_S
    }
}

/// What a server is, asked once per connection.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Its own words.
    pub version: String,
    /// Which start of it.
    pub incarnation: Incarnation,
    /// Values in effect when it was asked.
    pub values: Values,
    /// Whether threads can be set.
    pub threads_settable: bool,
    /// `innodb_max_purge_lag`.
    pub lag_limit: u64,
    /// Largest checkpoint age, or what stands for it, of a server that does not say it.
    pub capacity_bytes: Option<u64>,
    /// What a look asks.
    pub queries: CounterQueries,
}

/// What is in effect now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Which start of the server.
    pub incarnation: Incarnation,
    /// Its values.
    pub values: Values,
}

/// What a look saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Undo logs not yet purged.
    pub history: u64,
    /// Checkpoint age, bytes.
    pub age_bytes: u64,
    /// Its largest, bytes.
    pub most_bytes: u64,
    /// Position of the log's end, where the server says it.
    pub lsn: Option<u64>,
    /// How long the server took to answer.
    pub answer_ns: u64,
}

impl ServerStatus {
    /// Checkpoint age in percent of its largest, as the server rounds it.
    pub fn age_percent(&self) -> u64 {
        let percent = u128::from(self.age_bytes) * 100 / u128::from(self.most_bytes.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

/// A server.
pub struct GovernedServer {
    endpoint: Endpoint,
    limit: Duration,
    client: Option<Client>,
    /// Whether the connection is the one over which the server was met.
    met: bool,
    counters: Vec<Counter>,
}

/// What came of asking.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// No answer in time; the connection is kept.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// There is no connection: refused, or lost.
    #[error("{0}")]
    Lost(String),
    /// The server said no, in its words.
    #[error("{0}")]
    Refused(String),
}

impl GovernedServer {
    /// A server that is not connected yet, and that may take `limit` for an answer.
    pub fn new(endpoint: Endpoint, limit: Duration) -> Self {
        let counters = counters::all()
            .into_iter()
            .filter(|counter| COLUMNS.contains(&counter.column.as_str()))
            .map(|counter| match counter.column.as_str() {
                LARGEST => counter.of_status_only(),
                _ => counter.without_monitor(),
            })
            .collect();
        Self {
            endpoint,
            limit,
            client: None,
            met: false,
            counters,
        }
    }

    /// Whether the connection is still the one over which the server was met: then it is the same server.
    pub fn is_met(&self) -> bool {
        self.met && self.client.is_some()
    }

    /// Whether a connection is there, or being made.
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Waits longer, or less long, from here on.
    pub fn wait_for(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Ends the connection: the next question makes another.
    pub fn forget(&mut self) {
        self.client = None;
    }

    /// Finds out what it is.
    pub fn meet(&mut self) -> Result<Result<ServerFacts, GovernError>, Trouble> {
        let version = cell(&self.ask(VERSION)?, 0).unwrap_or_default();
        let family = Family::of(&version);
        if family == Family::Postgres {
            return Ok(Err(GovernError::NotInnodb { version }));
        }
        let Current {
            incarnation,
            values,
        } = self.current()?;
        let lag_limit = number(&self.ask("SELECT @@global.innodb_max_purge_lag")?, 0);
        let counters = self.counters.clone();
        let queries = family.queries(&counters, |sql| self.ask(sql))?;
        let row = self.read(&queries)?;
        let threads_settable = family == Family::Mariadb
            && cell(&self.ask(SETTABLE)?, 0).is_some_and(|answer| answer == "NO");
        let mut facts = ServerFacts {
            version,
            incarnation,
            values,
            threads_settable,
            lag_limit,
            capacity_bytes: None,
            queries,
        };
        if self.column(&row, LARGEST).is_none() {
            facts.capacity_bytes = self.capacity()?;
        }
        Ok(match self.status(&facts, &row, 0) {
            Some(_) => {
                self.met = true;
                Ok(facts)
            }
            None => Err(GovernError::Blind {
                version: facts.version,
            }),
        })
    }

    fn capacity(&mut self) -> Result<Option<u64>, Trouble> {
        for sql in CAPACITIES {
            match self.ask(sql) {
                Ok(rows) if number(&rows, 0) > 0 => return Ok(Some(number(&rows, 0))),
                Ok(_) | Err(Trouble::Refused(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(None)
    }

    /// Looks. A server that was met says all of it.
    pub fn look(&mut self, facts: &ServerFacts) -> Result<ServerStatus, Trouble> {
        let asked_ns = monotonic_ns();
        let row = self.read(&facts.queries)?;
        let answer_ns = u64::try_from(monotonic_ns() - asked_ns).unwrap_or_default();
        self.status(facts, &row, answer_ns)
            .ok_or_else(|| Trouble::Lost("the server no longer says its checkpoint age".into()))
    }

    /// Sets a variable.
    pub fn set(&mut self, variable: &str, value: u32) -> Result<(), Trouble> {
        self.ask(&format!("SET GLOBAL {variable} = {value}"))
            .map(drop)
    }

    /// Which start of the server answers, and the values in effect.
    pub fn current(&mut self) -> Result<Current, Trouble> {
        let sql = format!("SELECT CONNECTION_ID(), @@global.{THREADS}, @@global.{BATCH_SIZE}");
        let values = self.ask(&sql)?;
        let (uptime_s, now_s) = in_a_moment(boottime_ns, || {
            let uptime_s = number(&self.ask("SHOW GLOBAL STATUS LIKE 'Uptime'")?, 1);
            Ok((uptime_s, clock_gettime(ClockId::Realtime).tv_sec))
        })?;
        let value = |column| u32::try_from(number(&values, column)).unwrap_or(u32::MAX);
        Ok(Current {
            incarnation: Incarnation {
                connection: number(&values, 0),
                began_s: now_s - i64::try_from(uptime_s).unwrap_or_default(),
            },
            values: Values {
                threads: value(1),
                batch_size: value(2),
            },
        })
    }

    fn status(
        &self,
        facts: &ServerFacts,
        row: &[Option<u64>],
        answer_ns: u64,
    ) -> Option<ServerStatus> {
        let lsn = self.column(row, "lsn_current");
        let distance = || Some(lsn?.saturating_sub(self.column(row, "lsn_checkpoint")?));
        Some(ServerStatus {
            history: self.column(row, "history_list_length")?,
            age_bytes: self.column(row, "checkpoint_age_bytes").or_else(distance)?,
            most_bytes: self.column(row, LARGEST).or(facts.capacity_bytes)?,
            lsn,
            answer_ns,
        })
    }

    fn column(&self, row: &[Option<u64>], name: &str) -> Option<u64> {
        let at = self.counters.iter().position(|each| each.column == name)?;
        row.get(at).copied().flatten()
    }

    fn read(&mut self, queries: &CounterQueries) -> Result<Vec<Option<u64>>, Trouble> {
        let mut row = vec![None; self.counters.len()];
        for statement in &queries.statements {
            let rows = self.ask(statement)?;
            queries.fill(&self.counters, &rows, &mut row);
        }
        Ok(row)
    }

    fn ask(&mut self, sql: &str) -> Result<Rows, Trouble> {
        let mut client = if let Some(client) = self.client.take() {
            client
        } else {
            self.met = false;
            Client::open(&self.endpoint).map_err(|error| Trouble::Lost(error.to_string()))?
        };
        let answer = client.ask(sql, self.limit);
        let trouble = match answer {
            Ok(rows) => {
                self.client = Some(client);
                return Ok(rows);
            }
            Err(ClientError::Late { limit }) => Trouble::Late(limit),
            Err(ClientError::Ended) => Trouble::Lost("the connection has ended".into()),
            Err(ClientError::Failed(LoadError::Statement { source, .. }))
                if source.kind != ErrorKind::Connection =>
            {
                Trouble::Refused(source.to_string())
            }
            Err(ClientError::Failed(LoadError::Connect { source, endpoint }))
                if source.kind != ErrorKind::Connection =>
            {
                return Err(Trouble::Refused(format!(
                    "cannot connect to {endpoint}: {source}"
                )));
            }
            Err(ClientError::Failed(error)) => Trouble::Lost(in_full(&error)),
        };
        if !matches!(trouble, Trouble::Lost(_)) {
            self.client = Some(client);
        }
        Err(trouble)
    }
}

fn cell(rows: &Rows, column: usize) -> Option<String> {
    rows.rows.first()?.get(column)?.clone()
}

/// What a look that took no longer than a moment saw, or the last of a few.
fn in_a_moment<T>(
    now_ns: impl Fn() -> i64,
    mut look: impl FnMut() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    for _ in 1..LOOKS {
        let began_ns = now_ns();
        let seen = look()?;
        if now_ns() - began_ns <= MOMENT_NS {
            return Ok(seen);
        }
    }
    look()
}

fn number(rows: &Rows, column: usize) -> u64 {
    cell(rows, column)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_later_connection_to_the_same_start_continues_an_earlier_one() {
        let first = Incarnation {
            connection: 40,
            began_s: 1000,
        };
        let later = |connection, began_s| Incarnation {
            connection,
            began_s,
        };
        assert!(later(41, 1000).continues(&first));
        assert!(
            later(90, 1002).continues(&first),
            "whole seconds, read a moment later"
        );
        assert!(
            !later(5, 1001).continues(&first),
            "numbers of connections began anew"
        );
        assert!(!later(90, 1030).continues(&first), "it began later");
        assert!(later(40, 1000).continues(&first), "the same connection");
    }

    #[test]
    fn what_a_machine_that_stood_still_saw_is_looked_for_again_a_few_times() {
        let last_of = |took_s: &'static [i64]| {
            let (clock_s, looks) = (Cell::new(0), Cell::new(0));
            in_a_moment(
                || clock_s.get() * 1_000_000_000,
                || {
                    clock_s.set(clock_s.get() + took_s[looks.get()]);
                    looks.set(looks.get() + 1);
                    Ok(looks.get())
                },
            )
            .ok()
        };
        assert_eq!(last_of(&[1, 9]), Some(1));
        assert_eq!(
            last_of(&[5, 0, 9]),
            Some(2),
            "the first was none of a moment"
        );
        assert_eq!(last_of(&[5, 5, 5]), Some(3), "not for ever");
    }

    #[test]
    fn the_age_is_rounded_down_to_whole_percents_of_what_there_is() {
        let status = |age_bytes, most_bytes| ServerStatus {
            history: 0,
            age_bytes,
            most_bytes,
            lsn: None,
            answer_ns: 0,
        };
        assert_eq!(status(25_999, 100_000).age_percent(), 25);
        assert_eq!(status(26_000, 100_000).age_percent(), 26);
        assert_eq!(status(u64::MAX, u64::MAX).age_percent(), 100);
        assert_eq!(
            status(130, 100).age_percent(),
            130,
            "a log may be fuller than it should"
        );
        assert_eq!(status(1, 0).age_percent(), 100);
    }
}
