//! Parameters of the OLTP family: tables and statements compatible with sysbench 1.0.20.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Drive, Endpoint};

/// What a transaction does; sysbench's script of the same name (`oltp_…`, `bulk_insert`, `select_random_…`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// One row by its key, without a transaction.
    PointSelect,
    /// Point and range queries in a transaction.
    ReadOnly,
    /// Point and range queries, updates, a deletion and an insertion in a transaction.
    ReadWrite,
    /// Updates, a deletion and an insertion in a transaction.
    WriteOnly,
    /// Updates of an indexed column, without a transaction.
    UpdateIndex,
    /// Updates of a column without an index, without a transaction.
    UpdateNonIndex,
    /// One new row, its key given by the system.
    Insert,
    /// One row deleted by its key, if it is still there.
    Delete,
    /// One statement of as many rows as fit 512 KiB.
    BulkInsert,
    /// Rows of several values of the indexed column.
    SelectRandomPoints,
    /// A count over several ranges of the indexed column.
    SelectRandomRanges,
}

impl Profile {
    /// Its name in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "point_select",
            Self::ReadOnly => "read_only",
            Self::ReadWrite => "read_write",
            Self::WriteOnly => "write_only",
            Self::UpdateIndex => "update_index",
            Self::UpdateNonIndex => "update_non_index",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::BulkInsert => "bulk_insert",
            Self::SelectRandomPoints => "select_random_points",
            Self::SelectRandomRanges => "select_random_ranges",
        }
    }
}

/// How keys are drawn, with sysbench's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Every key alike.
    Uniform {},
    /// The mean of `iterations` uniform draws.
    Gaussian {
        /// Draws per key (`rand-spec-iter`).
        iterations: u32,
    },
    /// A hot part in the middle, the rest gaussian; sysbench's default.
    Special {
        /// Draws per key of the gaussian part (`rand-spec-iter`).
        iterations: u32,
        /// Size of the hot part, percent of the keys (`rand-spec-pct`).
        hot_percent: u32,
        /// Draws that go to the hot part, percent (`rand-spec-res`); below 100.
        hot_draws_percent: u32,
    },
    /// Few keys at the beginning most often: `h` of the keys get `1 - h` of the draws.
    Pareto {
        /// Between 0 and 1 (`rand-pareto-h`).
        h: f64,
    },
    /// The key of rank `r` as often as `r` to the power of `-exponent`.
    Zipfian {
        /// At least 0 (`rand-zipfian-exp`).
        exponent: f64,
    },
}

/// How statements reach the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Prepared once per connection; values travel apart.
    #[default]
    Prepared,
    /// Whole statements as text (`db-ps-mode=disable`).
    Text,
}

/// Which tables `sbtest1`, `sbtest2`, … there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// `id`, `k` with its index, `c` and `pad`: of every profile but `bulk_insert`.
    Rows,
    /// `id` and `k`, empty: of `bulk_insert`, a table per user.
    Bulk,
}

/// Creates and fills the tables, deterministic by seed, replacing those of the same names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OltpLoad {
    /// Where.
    pub endpoint: Endpoint,
    /// Which tables.
    pub layout: Layout,
    /// Number of tables.
    pub tables: u32,
    /// Rows of each table.
    pub table_size: u32,
    /// How the values of `k` are drawn.
    pub distribution: Distribution,
    /// Seed of the data; equal seeds give equal logical content on every system.
    pub seed: u64,
    /// Connections that load in parallel (SQLite uses one).
    pub threads: u32,
}

/// How many statements of each kind a transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Rows read by key (`point_select` always has one).
    pub point_selects: u32,
    /// Ranges read.
    pub simple_ranges: u32,
    /// Ranges summed.
    pub sum_ranges: u32,
    /// Ranges read in order.
    pub order_ranges: u32,
    /// Ranges read in order without repetitions.
    pub distinct_ranges: u32,
    /// Rows of a range.
    pub range_size: u32,
    /// Updates of the indexed column.
    pub index_updates: u32,
    /// Updates of a column without an index.
    pub non_index_updates: u32,
    /// Pairs of a deletion and an insertion of the same key.
    pub delete_inserts: u32,
    /// Values in a statement of `select_random_points`.
    pub random_points: u32,
    /// Ranges in a statement of `select_random_ranges`.
    pub random_ranges: u32,
    /// From a random range's first value to its last.
    pub random_range_delta: u32,
}

/// Runs one profile of the OLTP family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OltpDrive {
    /// What every drive takes.
    pub drive: Drive,
    /// What a transaction does.
    pub profile: Profile,
    /// Number of tables.
    pub tables: u32,
    /// Rows of each table.
    pub table_size: u32,
    /// How keys are drawn.
    pub distribution: Distribution,
    /// How statements reach the system.
    pub protocol: Protocol,
    /// Whether the profiles with transactions do without (`skip_trx`).
    pub skip_transactions: bool,
    /// Whether statements of a transaction go out before the first is answered; an error where nothing can.
    #[serde(default)]
    pub pipelining: bool,
    /// Statements of a transaction.
    pub mix: Mix,
}

/// Checks the tables of layout `rows` after a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OltpCheck {
    /// Where.
    pub endpoint: Endpoint,
    /// The profile that was driven: `insert` and `delete` change the number of rows.
    pub profile: Profile,
    /// Number of tables.
    pub tables: u32,
    /// Rows of each table, as loaded.
    pub table_size: u32,
}
