//! Why a place could not be sampled.

use std::io;
use std::path::PathBuf;

use arrow_schema::ArrowError;

/// Shortest interval, milliseconds: below it the sampler's own work would show in what it measures.
pub const SHORTEST_INTERVAL_MS: u32 = 10;

/// Shortest interval, milliseconds: a question costs a server and its reader some 0.3 ms of processor time.
pub const SHORTEST_SERVER_INTERVAL_MS: u32 = 100;

/// Why a place could not be sampled. A source that is missing is a warning instead.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The interval is too short.
    #[error("an interval of {given_ms} ms is too short, the shortest is {SHORTEST_INTERVAL_MS} ms")]
    Interval {
        /// As asked.
        given_ms: u32,
    },
    /// The interval of a server's counters is too short.
    #[error(
        "an interval of {given_ms} ms is too short for counters of a server, an endpoint or a command, the shortest is {SHORTEST_SERVER_INTERVAL_MS} ms"
    )]
    ServerInterval {
        /// As asked.
        given_ms: u32,
    },
    /// A followed process has a name that cannot be part of a file's name.
    #[error("{name:?} is not a valid name of a followed process")]
    ProcessName {
        /// As asked.
        name: String,
    },
    /// An endpoint or a command gave nothing from the start.
    #[error("telemetry: {what} gives no sample: {reason}")]
    Series {
        /// Its URL, or its command line.
        what: String,
        /// What came of the last attempt.
        reason: String,
    },
    /// A file of samples cannot be created or written.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What Arrow or the system said.
        cause: ArrowError,
    },
    /// The timer or the signals cannot be waited for.
    #[error("cannot wait for the next tick: {0}")]
    Wait(#[source] io::Error),
    /// The thread that watches a server or an endpoint ended by a panic: a fault of this program.
    #[error("the thread that watches a server or an endpoint panicked")]
    Panicked,
    /// Standard output is gone.
    #[error("cannot write to standard output: {0}")]
    StandardOutput(#[source] io::Error),
}

impl SampleError {
    /// What the user can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Interval { .. } => "set `telemetry: {interval: …}` to 10ms or more",
            Self::ServerInterval { .. } => "sample a server at most every 100 ms",
            Self::Series { .. } => {
                "start what answers before the load does, or correct `telemetry` in the study"
            }
            Self::Panicked => "this is a fault in fairtrial: please report it with the lines above",
            Self::ProcessName { .. } => "use letters, digits, `-` and `_`",
            Self::Write { .. } => "check that the directory exists, is writable and has free space",
            Self::Wait(_) => "check the limit of open files (`ulimit -n`)",
            Self::StandardOutput(_) => {
                "the reader of the sampler's output has closed it; run the sampler again"
            }
        }
    }
}
