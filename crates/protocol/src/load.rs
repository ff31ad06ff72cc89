//! Parameters and results of the load engine's subcommands.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::arrivals::{
    Arrivals, Arrived, Percentile, Probe, Quantiles, RateStep, Search, Searched, Spacing,
};
use crate::event::Usage;
pub use crate::fleet::FleetShare;

/// How a database is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Endpoint {
    /// SQLite, embedded in the load engine.
    Sqlite {
        /// Database file.
        path: String,
        /// Pragmas set on every connection, in this order, and read back.
        #[serde(default)]
        pragmas: BTreeMap<String, String>,
        /// How long a connection waits for a lock, milliseconds.
        busy_timeout_ms: u32,
    },
    /// MariaDB or MySQL.
    Mysql {
        /// Unix socket; wins over host and port.
        #[serde(default)]
        socket: Option<String>,
        /// Host name or address.
        #[serde(default)]
        host: Option<String>,
        /// TCP port.
        #[serde(default)]
        port: Option<u16>,
        /// User.
        user: String,
        /// Password; empty for none.
        #[serde(default)]
        password: String,
        /// Encrypts the connection.
        #[serde(default)]
        tls: Option<Tls>,
        /// Database (schema); created by the loader if missing.
        database: String,
    },
    /// PostgreSQL.
    Postgres {
        /// Directory of the Unix socket, whose name holds the port; wins over the host.
        #[serde(default)]
        socket_directory: Option<String>,
        /// Host name or address.
        #[serde(default)]
        host: Option<String>,
        /// Port; 5432 without it.
        #[serde(default)]
        port: Option<u16>,
        /// User.
        user: String,
        /// Password; empty for none.
        #[serde(default)]
        password: String,
        /// Encrypts the connection, which must be TCP: an error beside a socket's directory.
        #[serde(default)]
        tls: Option<Tls>,
        /// Database; created by the loader if missing.
        database: String,
    },
}

impl Endpoint {
    /// A MariaDB or MySQL at a Unix socket, whose user has no password.
    #[must_use]
    pub fn mysql_at(socket: &Path, user: &str, database: &str) -> Self {
        Self::Mysql {
            socket: Some(socket.to_string_lossy().into()),
            host: None,
            port: None,
            user: user.into(),
            password: String::new(),
            tls: None,
            database: database.into(),
        }
    }
}

/// Encryption of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the authorities that may have signed the server's certificate, which must name the host. Without it
    /// any certificate is taken.
    #[serde(default)]
    pub authorities: Option<String>,
}

/// Loads TPC-C's tables (specification clause 4.3), deterministic by seed, replacing what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TpccLoad {
    /// Where.
    pub endpoint: Endpoint,
    /// Scale.
    pub warehouses: u32,
    /// Seed of the data; equal seeds give equal logical content on every system.
    pub seed: u64,
    /// Connections that load in parallel (SQLite uses one).
    pub threads: u32,
}

/// Result of a load: `{"loaded": …}` on standard output, last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// Rows per table.
    pub rows: BTreeMap<String, u64>,
    /// SHA-256 over the logical content of every table, hexadecimal.
    pub content_sha256: String,
}

/// What every drive takes, whatever its workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Where.
    pub endpoint: Endpoint,
    /// Virtual users, each with a connection of its own.
    pub virtual_users: u32,
    /// Seed of the run: every virtual user's stream derives from it.
    pub seed: u64,
    /// Load before measurement, seconds.
    pub ramp_up_s: f64,
    /// Load before measurement as a number of transactions (all types together), instead of a time, which is 0 then.
    #[serde(default)]
    pub ramp_up_transactions: Option<u64>,
    /// Measured seconds; exactly one of this and `transactions`, neither in a search.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Measured transactions (all types together), after ramp-up.
    #[serde(default)]
    pub transactions: Option<u64>,
    /// What makes a transaction begin.
    pub arrivals: Arrivals,
    /// In an open loop: a transaction that has waited longer than this for a user is given up, seconds. Without it
    /// all wait.
    #[serde(default)]
    pub queue_timeout_s: Option<f64>,
    /// Retries of a transaction that the system rolled back (deadlock, busy, lock timeout) before it counts as failed.
    pub retries: u32,
    /// Width of timeline and histogram intervals, milliseconds.
    pub interval_ms: u32,
    /// Directory for `result.json`, `latency.hlog`, `timeline.arrows` and, of open arrivals, `lateness.hlog`; must exist.
    pub output_directory: String,
    /// The share of one client of several; absent where this client drives alone.
    #[serde(default)]
    pub fleet: Option<FleetShare>,
}

/// Runs TPC-C's mix (clause 5.2.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TpccDrive {
    /// What every drive takes; a virtual user is an emulated terminal.
    pub drive: Drive,
    /// Scale of the loaded data.
    pub warehouses: u32,
    /// Seed the data were loaded with: the NURand constant of the run must differ from the load's by the clause 2.1.6.1 rule.
    pub load_seed: u64,
    /// Keying and thinking times per clause 5.2.5, multiplied by this; 0 turns them off.
    pub think_time_scale: f64,
    /// Whether each transaction is one call of a stored procedure, created before the drive, or sent statement by
    /// statement.
    #[serde(default)]
    pub procedures: bool,
    /// Whether a user's home warehouse is drawn anew for each transaction (HammerDB's `allwarehouse`) or fixed.
    pub all_warehouses: bool,
}

/// `result.json` of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Driven {
    /// The measured window.
    pub window: Window,
    /// Counts inside the window, by transaction type: TPC-C's five (`new_order`, `payment`, `order_status`, `delivery`,
    /// `stock_level`), or the OLTP family's profile (`read_write`).
    pub transactions: BTreeMap<String, Outcomes>,
    /// Arrivals inside the window; absent where users begin when they like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrived>,
    /// The search that this window is a probe of: the last one at the highest rate found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Searched>,
    /// Errors inside the window, by transaction type and the system's code.
    pub errors: Vec<ErrorCount>,
    /// What was drawn, over the whole drive, for the fidelity report: name → count.
    pub drawn: BTreeMap<String, u64>,
    /// Effective connection settings as read back (pragmas, isolation).
    pub effective: BTreeMap<String, String>,
    /// CPU, memory and switches of the load process over the window.
    pub client: Usage,
    /// How busy each of the client's threads was; empty where users block threads of their own.
    #[serde(default)]
    pub loops: Vec<ClientLoop>,
}

/// One thread of the client: whether it could have done more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientLoop {
    /// Seconds of the window on a processor or ready for one; of the whole drive if it began none.
    pub busy_s: f64,
    /// The rest of these seconds: waiting for something to happen.
    pub idle_s: f64,
    /// Longest time of the whole drive in which it did not look for what had happened; handing over what a turn has to send is not in it.
    pub longest_turn_s: f64,
    /// Longest time of the whole drive by which a timer was late.
    pub latest_timer_s: f64,
    /// How it waited.
    #[serde(default)]
    pub interface: Interface,
}

/// The kernel's interface that a thread of the client waits with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// Readiness of sockets, then one call to send or receive.
    #[default]
    Epoll,
    /// Nothing but sending and receiving: a user alone on a thread, which sleeps in the receive.
    Blocking,
    /// Sends and receives of all its users in one call; Linux 6.1 and permission are needed.
    IoUring,
}

/// A span of the place's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// First nanosecond.
    pub start_ns: i64,
    /// First nanosecond after it.
    pub end_ns: i64,
}

/// How transactions of one type ended. A transaction counts in the window if it ended there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Committed.
    pub committed: u64,
    /// Rolled back by the workload's own rule (1 % of new orders, clause 2.4.1.4).
    pub rolled_back: u64,
    /// Given up after all retries, or refused outright.
    pub failed: u64,
    /// Attempts repeated after the system rolled one back.
    pub retried: u64,
    /// Statements sent, those that begin and end a transaction and those of repeated attempts included.
    #[serde(default)]
    pub statements: u64,
    /// Committed or rolled back by rule, but slower than histograms tell apart (an hour): recorded as an hour.
    #[serde(default)]
    pub saturated: u64,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// Transaction type.
    pub transaction: String,
    /// The system's code: `1213` (MariaDB), `SQLITE_BUSY`, `connection_lost`.
    pub code: String,
    /// Its kind: `deadlock`, `lock_timeout`, `busy`, `connection`, `disk_full`, `other`.
    pub kind: String,
    /// One message, as an example.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// A line of progress on a subcommand's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "progress", rename_all = "snake_case")]
pub enum Progress {
    /// Loading.
    Loading {
        /// Units done (warehouses, rows).
        done: f64,
        /// Units in all.
        total: f64,
        /// Rows in the tables so far, those of an earlier, interrupted load included.
        rows: u64,
        /// Rows per second since this load began.
        rows_per_s: f64,
        /// Seconds left at this pace; absent until there is one. Indexes come after that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_s: Option<f64>,
    },
    /// All users of one client of several are connected: it waits for the start that they agree on.
    Ready {
        /// Monotonic time.
        time_ns: i64,
    },
    /// All users are connected and ramp-up begins.
    RampUp {
        /// Monotonic time.
        time_ns: i64,
    },
    /// The measured window begins.
    Measuring {
        /// Monotonic time.
        time_ns: i64,
    },
    /// Rate over the last second.
    Rate {
        /// Transactions per second, all types.
        per_s: f64,
        /// Errors so far.
        errors: u64,
        /// 95th percentile of the latencies in the intervals that ended since the last report; absent without any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p95_ns: Option<u64>,
        /// 99th percentile of the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p99_ns: Option<u64>,
    },
    /// The measured window is over; users finish what they began.
    Finishing {
        /// Monotonic time.
        time_ns: i64,
    },
    /// A search begins a probe: a drive, whose own lines follow.
    Probing {
        /// Its number, from 1.
        probe: u32,
        /// Transactions per second that it offers.
        rate_per_s: f64,
    },
    /// A search has judged a probe.
    Probed {
        /// Its number, from 1.
        probe: u32,
        /// Transactions per second that it offered.
        rate_per_s: f64,
        /// The objective's percentile.
        percentile: Percentile,
        /// What that percentile was; absent if nothing ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency_ns: Option<u64>,
        /// Whether it met the objective.
        met: bool,
        /// Highest rate that is believed to meet the objective so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        met_per_s: Option<f64>,
        /// Lowest rate that is believed to miss it so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed_per_s: Option<f64>,
    },
}

/// Checks TPC-C's consistency conditions (clause 3.3.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TpccCheck {
    /// Where.
    pub endpoint: Endpoint,
    /// Scale of the loaded data.
    pub warehouses: u32,
}

/// Result of a check, on standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// One entry per condition.
    pub conditions: Vec<Condition>,
}

/// One consistency condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// Clause, e.g. `3.3.2.1`.
    pub clause: String,
    /// The condition in words.
    pub statement: String,
    /// How many groups of rows violate it.
    pub violations: u64,
    /// Up to 20 violating rows, `column=value` pairs.
    pub examples: Vec<String>,
}

/// Runs statements and prints rows as JSON: `{"rows": [[…], …], "columns": […]}` per statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// Where.
    pub endpoint: Endpoint,
    /// Statements, run in order on one connection.
    pub statements: Vec<String>,
    /// Keep trying to connect for this long, milliseconds (a server that is starting).
    #[serde(default)]
    pub connect_timeout_ms: u32,
}

/// One statement's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rows {
    /// Column names.
    pub columns: Vec<String>,
    /// Values as text; null stays null.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Measures what the client can do at most: against a server that does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// An empty directory to work in.
    pub directory: String,
    /// File that keeps the result: if it is there, it is the answer. Its name should say what it holds for.
    pub kept: String,
}

/// What the client can do at most on a host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCeiling {
    /// Prepared selects of one row by key, per second of its own processor time.
    pub operations_per_core_s: f64,
    /// Users it was measured with.
    pub virtual_users: u32,
    /// How its threads waited.
    pub interface: Interface,
}

/// Serves MySQL's protocol without doing anything, until SIGTERM or until standard input ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noop {
    /// Unix socket to listen on; must not exist yet.
    pub socket: String,
}
