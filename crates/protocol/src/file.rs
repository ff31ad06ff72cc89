//! Parameters and results of the subcommands that read and write plain files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes files of stamped blocks, one per job: `job.0`, `job.1` and so on. Each 512 bytes begin with their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileLoad {
    /// Where; must exist.
    pub directory: String,
    /// How many.
    pub files: u32,
    /// Length of each; a multiple of 4096.
    pub bytes: u64,
    /// Seed of the content; equal seeds give equal bytes.
    pub seed: u64,
}

/// How blocks are chosen. Ranks are spread over the file by a permutation: every block can be met, at any size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileDistribution {
    /// Every block alike.
    Random {},
    /// The block of rank k is met in proportion to k to the power of −theta.
    Zipf {
        /// The exponent; above 0.
        theta: f64,
    },
    /// The share `h` of the blocks gets the share 1 − `h` of the accesses.
    Pareto {
        /// Between 0 and 1.
        h: f64,
    },
    /// A bell over the ranks, its middle in their middle.
    Normal {
        /// Standard deviation, percent of the ranks.
        deviation_percent: f64,
    },
}

/// How a block reaches the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEngine {
    /// `pread` and `pwrite`: one access at a time.
    Pread,
    /// Memory that the file is mapped to: a miss is a page fault.
    Mmap,
    /// `io_uring`: several accesses under way.
    IoUring,
}

/// Accesses blocks of the files that `FileLoad` made, each job its own file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileDrive {
    /// Where the files are.
    pub directory: String,
    /// Jobs, each a thread with a file of its own.
    pub jobs: u32,
    /// Length of each file that is accessed; a multiple of the block.
    pub bytes: u64,
    /// Bytes per access; a multiple of 512.
    pub block_bytes: u32,
    /// How.
    pub engine: FileEngine,
    /// Whether the page cache is bypassed (`O_DIRECT`); not with `mmap`.
    pub direct: bool,
    /// Accesses under way per job; more than one with `io_uring` only.
    pub depth: u32,
    /// Which blocks.
    pub distribution: FileDistribution,
    /// Share of accesses that write.
    pub write_share: f64,
    /// Accesses of each job in the window; exactly one of this and `duration_s`.
    #[serde(default)]
    pub accesses: Option<u64>,
    /// Length of the window, seconds.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Accesses of each job before the window.
    pub warm_up_accesses: u64,
    /// Seed of the run: every job's choices derive from it.
    pub seed: u64,
    /// Width of timeline and histogram intervals, milliseconds.
    pub interval_ms: u32,
    /// Directory for `result.json`, `latency.hlog`, `timeline.arrows` and `counters.json`; must exist.
    pub output_directory: String,
}

/// Reads the kernel's counters once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileCountersOf {
    /// A file or directory: what it lies on is said beside the counters.
    pub path: String,
}

/// The kernel's counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCounters {
    /// Monotonic time.
    pub time_ns: i64,
    /// `/proc/vmstat`, all of it.
    pub vmstat: BTreeMap<String, u64>,
    /// `/proc/diskstats`: 512-byte sectors by device.
    pub devices: BTreeMap<String, Sectors>,
    /// Whether the kernel accounts I/O to processes (`/proc/self/io`): only then do a process's `blocks_in` mean anything.
    pub accounts_processes: bool,
    /// What the path lies on.
    pub medium: Medium,
}

/// What a block device has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sectors {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// What a path lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Medium {
    /// Type of the file system.
    pub file_system: String,
    /// Mount options, of the mount and of the file system.
    pub options: String,
    /// Name of the block device, as in `/proc/diskstats`; empty if there is none.
    pub device: String,
    /// Whether the path itself is reached without the page cache (DAX, `STATX_ATTR_DAX`).
    pub is_dax: bool,
    /// Whether the kernel counts this device's traffic (`queue/iostats`); absent without a device.
    #[serde(default)]
    pub is_counted: Option<bool>,
}
