//! Parameters of `script`: a user's own transactions, as the control plane has read and checked them.
//!
//! SQL comes with a question mark for each value; PostgreSQL's driver numbers them. Names of parameters serve messages
//! and join values to what is drawn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Drive, Endpoint};
use crate::oltp::Distribution;

/// A constant that a choice may draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Constant {
    /// NULL.
    Null {},
    /// A whole number.
    Integer {
        /// The number.
        value: i64,
    },
    /// Text.
    Text {
        /// The text.
        value: String,
    },
}

/// Letters of drawn text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Letters {
    /// Latin letters of both cases, and digits.
    Alphanumeric,
    /// Digits.
    Digits,
}

/// How a value is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// A whole number of a range, both ends included.
    Integer {
        /// Lowest.
        low: i64,
        /// Highest.
        high: i64,
        /// How often each is drawn.
        distribution: Distribution,
    },
    /// An exact decimal of a range, both ends included.
    Decimal {
        /// Lowest, without its point.
        low_units: i64,
        /// Highest, without its point.
        high_units: i64,
        /// Digits behind the point.
        scale: u8,
        /// How often each is drawn.
        distribution: Distribution,
    },
    /// Random text, its length uniform between two, both included.
    Text {
        /// Shortest length.
        shortest: u32,
        /// Longest length.
        longest: u32,
        /// Its letters.
        letters: Letters,
    },
    /// One of some values.
    Choice {
        /// The values.
        values: Vec<Constant>,
        /// How often each is drawn, relative to the others; as many as values.
        weights: Vec<f64>,
    },
    /// The next number: of the row, where tables are filled; never the same twice in a drive, whoever draws.
    Sequence {
        /// First number.
        first: i64,
    },
}

/// A named value, drawn once per transaction (or row).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptParameter {
    /// Its name: a parameter's, or a column's.
    pub name: String,
    /// How it is drawn.
    pub draw: Draw,
}

/// A statement of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptStatement {
    /// Its text, a question mark for each value.
    pub sql: String,
    /// What each question mark stands for: parameters, or values taken before.
    pub values: Vec<String>,
    /// Rows it must give or touch; any number if absent.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Names for the first columns of its first row, values of the statements after it.
    #[serde(default)]
    pub take: Vec<String>,
}

/// Whether the statements of a transaction are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One transaction that reads and writes.
    ReadWrite,
    /// One transaction that only reads.
    ReadOnly,
    /// Each statement for itself.
    None,
}

/// One type of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptTransaction {
    /// Its name in results.
    pub name: String,
    /// How often it is drawn, relative to the others; above 0.
    pub weight: f64,
    /// Whether its statements are one transaction.
    pub scope: Scope,
    /// Share of them that end with a rollback instead of a commit.
    pub rollback_share: f64,
    /// What is drawn before it begins, in this order.
    pub parameters: Vec<ScriptParameter>,
    /// What it does.
    pub statements: Vec<ScriptStatement>,
}

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptFill {
    /// The table.
    pub table: String,
    /// How many.
    pub rows: u64,
    /// Columns that get a value, drawn for each row.
    pub columns: Vec<ScriptParameter>,
}

/// Makes the data of a script in a fresh database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptLoad {
    /// Where.
    pub endpoint: Endpoint,
    /// Statements before any row: tables.
    pub create: Vec<String>,
    /// Rows.
    pub fill: Vec<ScriptFill>,
    /// Statements after the rows: indexes, whatever is computed from rows.
    pub finish: Vec<String>,
    /// Seed of the data; equal seeds give equal rows on every system.
    pub seed: u64,
    /// Connections that load in parallel (SQLite uses one).
    pub threads: u32,
}

/// Prepares every statement once, to hear what the system says to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptPreflight {
    /// Where.
    pub endpoint: Endpoint,
    /// What is to be driven.
    pub transactions: Vec<ScriptTransaction>,
}

/// Result of a preflight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preflighted {
    /// What the system will not take; empty if it takes everything.
    pub refused: Vec<Refused>,
}

/// A statement that the system will not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The transaction's name.
    pub transaction: String,
    /// The statement's number in it, counted from 1.
    pub statement: u32,
    /// The system's code.
    pub code: String,
    /// The system's words.
    pub message: String,
}

/// Runs a script's transactions by their weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptDrive {
    /// What every drive takes.
    pub drive: Drive,
    /// What is driven.
    pub transactions: Vec<ScriptTransaction>,
    /// Whether statements that take nothing from each other's answers go out before the first is answered; an error
    /// where nothing can.
    #[serde(default)]
    pub pipelining: bool,
}
