//! What the control plane asks of an agent. One JSON object per line; `put` is followed by chunks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::Step;

/// One line to the agent. Every request carries a number, `id`, chosen by the control plane and unique in the stream; its
/// answer carries the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// First message of a stream.
    Hello(Hello),
    /// Writes a file; `bytes` bytes follow in chunks ([`ChunkHeader`]), possibly none.
    Put(Put),
    /// Reads a file; answered by `file`, then chunks.
    Get(Get),
    /// Starts a process; answered by `spawned`, later by one `exited`.
    Spawn(Box<Spawn>),
    /// Sends a signal to a spawned process.
    Signal(Signal),
    /// Ends what a trial's processes have left running; answered by `swept`.
    Sweep(Sweep),
    /// Applies one step; answered by `changed`.
    Change(Change),
    /// Undoes applied steps, newest first; answered by `undone`.
    Undo(Undo),
    /// Answered by `pong`.
    Ping(Ping),
    /// Ends the stream: processes stopped, everything undone; answered by `bye`.
    Bye(Bye),
}

/// First message of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// Number of the request.
    pub id: u64,
    /// Must equal [`crate::VERSION`].
    pub version: String,
    /// Who asks, in words a refused second user can act upon: run, user, host, process id.
    pub holder: String,
    /// Whether to take the place's lock. Looking at a place (`doctor`, `plan`) does not.
    pub lock: bool,
}

/// Writes a file, creating its parents, atomically (temporary file, then rename).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Put {
    /// Number of the request.
    pub id: u64,
    /// Absolute path at the place.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Permission bits, decimal in JSON (420 = 0o644).
    pub mode: u32,
}

/// Reads a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Get {
    /// Number of the request.
    pub id: u64,
    /// Absolute path at the place.
    pub path: String,
}

/// Raw bytes announced: this many follow the line's newline, at most [`crate::CHUNK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkHeader {
    /// The request the bytes belong to.
    pub id: u64,
    /// How many bytes follow.
    pub chunk: usize,
}

/// Starts a process in its own process group, killed when the stream ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spawn {
    /// Number of the request.
    pub id: u64,
    /// What messages call it: `server`, `load`, `sampler`.
    pub name: String,
    /// Program and arguments; no shell. A program of `fairtrial-agent` means this very binary.
    pub argv: Vec<String>,
    /// Added to the agent's own environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Working directory; the agent's own if absent.
    #[serde(default)]
    pub directory: Option<String>,
    /// Run as this user (name or number), for agents that run as root.
    #[serde(default)]
    pub user: Option<String>,
    /// Processors it may use; all if absent.
    #[serde(default)]
    pub processors: Option<Vec<u32>>,
    /// Control groups it starts in, as directories; at most one of each hierarchy.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Where standard output goes.
    pub stdout: Output,
    /// Where standard error goes.
    pub stderr: Output,
    /// Text given on standard input; `/dev/null` if absent.
    #[serde(default)]
    pub stdin: Option<String>,
    /// Whether it is a trial's server or load: what it leaves running is ended by `sweep`.
    #[serde(default)]
    pub of_trial: bool,
}

/// Where a process's output goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Appended to a file at the place.
    File {
        /// Absolute path.
        path: String,
    },
    /// Sent as `output` events, line by line.
    Stream,
    /// Thrown away.
    Null,
}

/// Sends a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// Number of the request.
    pub id: u64,
    /// Process number from `spawned`.
    pub process: u64,
    /// Signal number.
    pub signal: i32,
    /// To its whole process group.
    #[serde(default)]
    pub group: bool,
}

/// Ends what the processes of a trial have left running, so that it is not beside the next trial: SIGTERM, unless their
/// group had it, then SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Number of the request.
    pub id: u64,
    /// How long they may take to end before they are killed.
    pub grace_ms: u64,
}

/// Applies one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Number of the request.
    pub id: u64,
    /// The step.
    pub step: Step,
}

/// Undoes applied steps, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undo {
    /// Number of the request.
    pub id: u64,
    /// How many of the oldest steps stay (0: undo all).
    pub keep: usize,
}

/// Shows that the control plane is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ping {
    /// Number of the request.
    pub id: u64,
}

/// Ends the stream in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bye {
    /// Number of the request.
    pub id: u64,
}

impl Request {
    /// Number of the request.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Hello(request) => request.id,
            Self::Put(request) => request.id,
            Self::Get(request) => request.id,
            Self::Spawn(request) => request.id,
            Self::Signal(request) => request.id,
            Self::Sweep(request) => request.id,
            Self::Change(request) => request.id,
            Self::Undo(request) => request.id,
            Self::Ping(request) => request.id,
            Self::Bye(request) => request.id,
        }
    }
}
