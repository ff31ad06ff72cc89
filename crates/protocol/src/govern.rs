//! Parameters of the governor of purge, and what it says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Endpoint;

/// Adapts InnoDB's purge to the checkpoint age until SIGTERM, and restores what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GovernPurge {
    /// The server: MariaDB or MySQL.
    pub endpoint: Endpoint,
    /// Time between two looks at the server, milliseconds.
    pub period_ms: u32,
    /// How long a look waits for the server, milliseconds.
    pub answer_limit_ms: u32,
    /// Purge threads; `most` is the server's own number without one.
    pub threads: Bounds,
    /// Undo log pages of a batch: `most` while purge runs, the server's own without one; `least` while it is held.
    pub batch_size: Bounds,
    /// Checkpoint age up to which all threads work, percent of the largest.
    pub low_water_percent: u32,
    /// Checkpoint age from which purge is held, percent of the largest.
    pub stop_percent: u32,
    /// How far below `stop_percent` the age must fall before purge is let go again, points.
    pub hysteresis_percent: u32,
    /// Decides and says so, and sets nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Ends by itself after so many seconds.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Directory for `governor-decisions.jsonl` and `telemetry-governor.arrows`; must exist. Without it decisions go to
    /// standard output.
    #[serde(default)]
    pub output_directory: Option<String>,
    /// File that holds the original values, and how the server is reached, from before the first change until all is
    /// restored: what `govern-restore` takes.
    #[serde(default)]
    pub originals: Option<String>,
}

/// A range of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Smallest value.
    pub least: u32,
    /// Largest value.
    #[serde(default)]
    pub most: Option<u32>,
}

/// Something the governor decided, or that happened to it: one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// On the place's monotonic clock.
    pub time_ns: i64,
    /// What.
    pub decision: Decided,
    /// Why, in words.
    pub reason: String,
    /// Checkpoint age, percent of the largest.
    #[serde(default)]
    pub checkpoint_age_percent: Option<u64>,
    /// Undo logs not yet purged.
    #[serde(default)]
    pub history_list_length: Option<u64>,
    /// Purge threads that are asked for from here on.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Batch size that is asked for from here on.
    #[serde(default)]
    pub batch_size: Option<u32>,
}

/// What a line of the governor tells of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// It governs; the values are the server's own.
    Started,
    /// One thread more.
    More,
    /// One thread less.
    Fewer,
    /// Purge is held on the lowest rung.
    Hold,
    /// Purge is let go again.
    Release,
    /// The server refused a value.
    Refused,
    /// The server did not answer in time.
    Late,
    /// The connection was lost.
    Lost,
    /// The server answers again, and is the same.
    Back,
    /// The server answers again, and has been started anew: it has values of its own.
    Restarted,
    /// The original values are in effect again.
    Restored,
    /// The original values could not be set, or are no longer this governor's to set.
    NotRestored,
}

/// The governor's last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Governed {
    /// Looks that the server answered.
    pub looks: u64,
    /// Looks that were due and that it did not answer.
    pub missed_looks: u64,
    /// Steps of the ladder.
    pub decisions: u64,
    /// Values set.
    pub sets: u64,
    /// Values refused.
    pub refused: u64,
    /// Processor time, nanoseconds.
    pub cpu_ns: u64,
    /// Whether the server has its original values, or no longer exists; else other values were set in the meantime.
    pub restored: bool,
}
