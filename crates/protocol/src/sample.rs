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
    /// Endpoints whose counters are sampled too.
    #[serde(default)]
    pub exporters: Vec<SampledExporter>,
    /// Commands whose output gives a value at each sample.
    #[serde(default)]
    pub commands: Vec<SampledCommand>,
    /// Columns of the place and of the server, or what stands behind their last dot, whose values are said on standard
    /// output once a second, for people who look on.
    #[serde(default)]
    pub shown: Vec<String>,
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

/// A text endpoint of counters and gauges, Prometheus' or `OpenMetrics`, read into `telemetry-<name>.arrows`: a row for
/// each series and reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampledExporter {
    /// Part of the file's name.
    pub name: String,
    /// `http://host:port/path`, or the same by `https`.
    pub url: String,
    /// PEM file of the authorities that may have signed the certificate of an `https` endpoint, which must name the
    /// host. Without it none is believed.
    #[serde(default)]
    pub authorities: Option<String>,
    /// Width of an interval, milliseconds; at least 100. A reading has less time than that, and 5 s at most.
    pub interval_ms: u32,
    /// Names of metrics to keep, `*` for any part of one; all where there is none.
    #[serde(default)]
    pub matching: Vec<String>,
}

/// A command run at each sample, whose output gives one value, into `telemetry-<name>.arrows` as an endpoint's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampledCommand {
    /// Part of the file's name.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Width of an interval, milliseconds; at least 100. A run has less time than that, and 5 s at most.
    pub interval_ms: u32,
    /// What the value is called.
    pub series: String,
    /// Whether the value only grows.
    #[serde(default)]
    pub counter: bool,
    /// Where it stands in JSON output: `a.b[0]`.
    #[serde(default)]
    pub json_path: Option<String>,
    /// What matches it in text: its first group, else the whole match. Without either the output is the number.
    #[serde(default)]
    pub regex: Option<String>,
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

/// Asks a URL once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpGet {
    /// Of a page, `http://…`.
    pub url: String,
    /// For the whole answer.
    pub timeout_ms: u64,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpAnswer {
    /// HTTP's own status; absent where nobody answers.
    pub status: Option<u16>,
}
