//! Parameters of the sampler.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Endpoint;

/// Samples the place until SIGTERM. Each source appends to `telemetry-<source>.arrows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Width of an interval, milliseconds; at least 10.
    pub interval_ms: u32,
    /// What to sample.
    pub sources: Vec<Source>,
    /// Processes to follow: name → process id; each gives `telemetry-process-<name>.arrows`.
    #[serde(default)]
    pub processes: BTreeMap<String, i32>,
    /// Processes to follow with their children, whose counters are summed: name → process id; the names are others than
    /// those of `processes`, and the files are called alike.
    #[serde(default)]
    pub process_trees: BTreeMap<String, i32>,
    /// A server whose own counters are sampled too.
    #[serde(default)]
    pub server: Option<SampledServer>,
    /// Directory for the files; must exist.
    pub output_directory: String,
}

/// A server whose counters are read over one connection, into `telemetry-server.arrows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampledServer {
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Width of an interval, milliseconds; at least 100: a query costs a server some tenths of a millisecond.
    pub interval_ms: u32,
    /// Whether to ask each time who waits for whose lock too, into `telemetry-lock_waits.arrows`.
    #[serde(default)]
    pub lock_waits: bool,
}

/// A source of counters.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `/proc/stat`: per class, clock ticks, all processors together.
    Cpu,
    /// `/proc/meminfo`, bytes.
    Memory,
    /// `/proc/vmstat`, every counter.
    Vmstat,
    /// `/proc/diskstats`, columns `<device>.<field>`.
    Disks,
    /// `/proc/pressure/{cpu,memory,io}`, columns `<resource>.<some|full>.total_us`.
    Pressure,
}
