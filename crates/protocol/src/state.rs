//! Parameters of the subcommands that bring a place to a known state.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Copies a prepared directory to a work directory: reflink where the file system can, else a parallel sparse copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Prepared directory.
    pub from: String,
    /// Work directory; replaced if it exists.
    pub to: String,
    /// Owner of the copy, for agents that run as root.
    #[serde(default)]
    pub user: Option<String>,
}

/// Result of a restore, on standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// `reflink` or `sparse_copy`.
    pub method: String,
    /// Files copied.
    pub files: u64,
    /// Bytes of data (holes not counted).
    pub bytes: u64,
}

/// Brings the page cache to rest: sync, wait until dirty and writeback pages are few, drop the page cache if allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// Rest means dirty plus writeback below this.
    pub dirty_bytes: u64,
    /// Give up after this long.
    pub timeout_s: f64,
    /// Drop page cache, dentries and inodes afterwards (root).
    pub drop_caches: bool,
}

/// Result of settling, on standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    /// Dirty plus writeback at the end.
    pub dirty_bytes: u64,
    /// How long it took.
    pub waited_s: f64,
    /// Whether the page cache was dropped.
    pub dropped: bool,
}

/// What a place is like right before a trial, printed by `fairtrial-agent covariates`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Covariates {
    /// How long a fixed amount of work took, half of it arithmetic and half of it in 32 MiB of memory.
    pub calibration_loop_ns: i64,
    /// Seconds since the kernel started.
    pub time_since_boot_s: f64,
    /// Share of free memory in pieces smaller than a huge page of 2 MiB; null where the kernel does not say.
    pub memory_fragmentation: Option<f64>,
    /// Mean over processors; null where the kernel does not say.
    pub processor_frequency_hz: Option<f64>,
}

/// Facts of a place, printed by `fairtrial-agent facts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Host name.
    pub host: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `/proc/cmdline`.
    pub kernel_command_line: String,
    /// `uname -m`.
    pub machine: String,
    /// From `/etc/os-release`.
    pub distribution: String,
    /// Processors online.
    pub processors: Vec<u32>,
    /// Model name.
    pub processor_model: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of swap.
    pub swap_bytes: u64,
    /// Hypervisor or `none`.
    pub virtualisation: String,
    /// Clock source in use.
    pub clock_source: String,
    /// File system type of the state directory.
    pub file_system: String,
    /// Free bytes there.
    pub free_bytes: u64,
    /// Numeric user id of the agent.
    pub user_id: u32,
    /// Clock ticks per second, the unit of `/proc/stat`.
    pub ticks_per_s: u64,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// NUMA nodes with their processors: node to numbers. One node of all processors where the kernel knows none.
    pub nodes: BTreeMap<u32, Vec<u32>>,
    /// Controllers of control groups, by name (`memory`, `io`, `blkio`, `cpuset`).
    pub controllers: BTreeMap<String, Controller>,
}

/// Where a controller of control groups is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Controller {
    /// 1: a hierarchy of its own, or shared with few; 2: the unified one.
    pub version: u8,
    /// Where its hierarchy is mounted.
    pub directory: String,
    /// Whether groups right below have its files; of version 1, always.
    pub enabled: bool,
}
