//! What makes transactions begin, what became of those that should have, and searches for the highest rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Window;

/// How times between events are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// All alike: where the rate changes, an arrival is where the cumulative rate passes a whole number.
    Constant,
    /// Exponential, as of a Poisson process.
    Exponential,
}

/// What makes a transaction begin. Rates are transactions per second, all users together; time counts from the start
/// of ramp-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// A user's last one has ended and it has thought; the workload's own waits (TPC-C's) come on top.
    Closed {
        /// Mean time a user thinks after a transaction, seconds.
        think_s: f64,
        /// How thinking times are spread.
        spacing: Spacing,
    },
    /// Its time has come, whether or not a user is free: one that must wait for a user is late, and its latency counts
    /// from when it should have begun. The workload's own waits are left out.
    Open {
        /// Transactions per second, all users together.
        rate_per_s: f64,
        /// How times between arrivals are spread.
        spacing: Spacing,
    },
    /// The same with a rate that changes by steps, from the beginning again after the last one.
    Steps {
        /// In their order.
        steps: Vec<RateStep>,
        /// How times between arrivals are spread.
        spacing: Spacing,
    },
    /// The same with a rate that changes evenly and then stays.
    Ramp {
        /// Rate at the beginning.
        from_per_s: f64,
        /// Rate at the end, and from then on; after a ramp to 0 none arrives.
        to_per_s: f64,
        /// Length of the change, seconds.
        over_s: f64,
        /// How times between arrivals are spread.
        spacing: Spacing,
    },
    /// The same with a rate of `mean + amplitude · sin(2π · time / period)`.
    Sine {
        /// Mean rate.
        mean_per_s: f64,
        /// Largest difference from it, at most itself.
        amplitude_per_s: f64,
        /// Length of a wave, seconds.
        period_s: f64,
        /// How times between arrivals are spread.
        spacing: Spacing,
    },
    /// The same at times that were recorded.
    Replay {
        /// File at the place: nanoseconds since the first arrival as little-endian 64-bit integers, none smaller than
        /// the one before it.
        path: String,
        /// Whether they begin again, after the mean time between two of them; if not, the window ends when the last has
        /// ended.
        again: bool,
    },
    /// Open loops at constant rates, one after the other, until the highest that meets an objective is known.
    Search {
        /// What is searched for, and how.
        search: Search,
    },
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::Closed {
            think_s: 0.0,
            spacing: Spacing::Constant,
        }
    }
}

/// A rate and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Transactions per second; 0 is a pause.
    pub rate_per_s: f64,
    /// Seconds.
    pub length_s: f64,
}

/// A percentile of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Percentile {
    /// Median.
    P50,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

/// A search for the highest rate that meets an objective: geometric steps up to the first rate that does not, then
/// bisection. A rate is probed until two of its probes agree, at most three times, before a bound is believed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The percentile of latency, counted from when a transaction should have begun (one that fails, is given up or is
    /// overdue at a window's end has exceeded every limit), …
    pub percentile: Percentile,
    /// … that must not exceed this, seconds.
    pub limit_s: f64,
    /// Rate of the first probe.
    pub lowest_per_s: f64,
    /// No higher rate is probed.
    pub highest_per_s: f64,
    /// The bounds found differ by this share of the lower one at most.
    pub precision: f64,
    /// Measured seconds of a probe.
    pub window_s: f64,
    /// Load before them at the probe's rate, seconds.
    pub settle_s: f64,
    /// How times between arrivals are spread.
    pub spacing: Spacing,
}

/// What became of the transactions that should have begun. None is dropped: each has begun, waits, or was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrived {
    /// Should have begun inside the window.
    pub offered: u64,
    /// Should have begun, in the window or before it, and waited for a user when it was over.
    pub waiting: u64,
    /// Most that waited at the end of any interval of the window.
    pub waiting_most: u64,
    /// Given up inside the window, because they had waited longer than the drive's `queue_timeout_s`; they have neither
    /// latency nor lateness. Absent where all wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<u64>,
    /// Begun, in the window or before it, and not ended when it was over; they have no latency. Absent in records of
    /// older engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<u64>,
    /// In a probe of a search: neither ended nor given up when the window was over, although they should have begun
    /// longer before that than the objective's limit. Absent elsewhere, and in records of older engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue: Option<u64>,
}

/// What a search has found. Both bounds are believed: two probes agreed on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// What was asked for.
    pub asked: Search,
    /// Highest rate that met the objective; absent if not even the lowest one did.
    #[serde(default)]
    pub met_per_s: Option<f64>,
    /// Lowest rate that missed it; absent if not even the highest one did.
    #[serde(default)]
    pub missed_per_s: Option<f64>,
    /// Whether the search came to its end.
    pub complete: bool,
    /// Every probe, in the order of time.
    pub probes: Vec<Probe>,
}

/// One window of a search; its raw files are those of a drive, in a directory of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Its directory, below the drive's.
    pub directory: String,
    /// Rate asked for.
    pub rate_per_s: f64,
    /// Measured window.
    pub window: Window,
    /// Should have begun inside the window.
    pub offered: u64,
    /// Ended inside it: committed, or rolled back by the workload's rule.
    pub done: u64,
    /// Waited for a user when it was over.
    pub waiting: u64,
    /// Given up because they had waited too long.
    pub timed_out: u64,
    /// Latencies from when transactions should have begun, all types; absent if none ended.
    #[serde(default)]
    pub latency: Option<Quantiles>,
    /// How much later than they should transactions began; absent if none ended.
    #[serde(default)]
    pub lateness: Option<Quantiles>,
    /// How busy the client's busiest thread was; absent where users block threads of their own.
    #[serde(default)]
    pub client_busy_share: Option<f64>,
    /// Transactions that lost their connection.
    pub connections_lost: u64,
    /// Whether it met the objective.
    pub met: bool,
}

/// Percentiles, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50_ns: u64,
    /// 95 %.
    pub p95_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Quantiles {
    /// One of the percentiles, nanoseconds.
    #[must_use]
    pub fn of(&self, percentile: Percentile) -> u64 {
        match percentile {
            Percentile::P50 => self.p50_ns,
            Percentile::P95 => self.p95_ns,
            Percentile::P99 => self.p99_ns,
            Percentile::P999 => self.p999_ns,
        }
    }
}
