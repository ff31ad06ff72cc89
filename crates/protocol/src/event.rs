//! What an agent tells the control plane. One JSON object per line; `file` is followed by chunks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Reading;

/// One line from the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Answer to `hello`.
    Hello(Welcome),
    /// Answer to `put` and `signal`.
    Done(Done),
    /// Answer to `get`; `bytes` bytes follow in chunks.
    File(File),
    /// Answer to `spawn`.
    Spawned(Spawned),
    /// A line a process wrote.
    Output(OutputLine),
    /// A process ended.
    Exited(Exited),
    /// Answer to `sweep`.
    Swept(Swept),
    /// Answer to `change`.
    Changed(Changed),
    /// Answer to `undo`.
    Undone(Undone),
    /// Answer to `ping`.
    Pong(Pong),
    /// Answer to `bye`; the stream ends after it.
    Bye(Farewell),
    /// A request could not be carried out.
    Failed(Failed),
}

/// Answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The request answered.
    pub id: u64,
    /// The agent's [`crate::VERSION`].
    pub version: String,
    /// SHA-256 of the agent's binary, hexadecimal.
    pub agent_sha256: String,
    /// The place's clocks.
    pub clock: Reading,
    /// Where the agent keeps its state: prepared data, work directories, the undo journal.
    pub state_directory: String,
    /// The user the agent runs as.
    pub user: String,
    /// What an earlier agent left behind and this one cleaned up.
    pub leftovers: Leftovers,
}

/// What an earlier agent left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leftovers {
    /// Steps undone.
    pub undone: usize,
    /// Processes killed.
    pub killed: usize,
    /// Steps that could not be undone, in words.
    pub failed: Vec<String>,
    /// Files restored though somebody had changed them since the earlier agent did, and what they held.
    pub overwritten: Vec<String>,
}

/// Plain success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// The request answered.
    pub id: u64,
}

/// A file about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct File {
    /// The request answered.
    pub id: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// A process started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spawned {
    /// The request answered.
    pub id: u64,
    /// The agent's number for it, never reused.
    pub process: u64,
    /// The kernel's process id.
    pub pid: i32,
    /// Monotonic time of the start.
    pub time_ns: i64,
}

/// What a trial's processes had left running.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swept {
    /// The request answered.
    pub id: u64,
    /// Programs that had to be told to end, or killed: each name once, in order, as the kernel has it.
    pub programs: Vec<String>,
    /// How many processes were killed.
    pub killed: usize,
    /// How many have not even ended then.
    pub left: usize,
}

/// A line a process wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// The process.
    pub process: u64,
    /// Which stream.
    pub stream: Stream,
    /// The line without its newline, invalid UTF-8 replaced, cut at 64 KiB.
    pub line: String,
}

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A process ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exited {
    /// The process.
    pub process: u64,
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// Signal, if it was killed.
    pub signal: Option<i32>,
    /// Monotonic time at which the agent saw it.
    pub time_ns: i64,
    /// The kernel's accounting of it and its awaited children (`wait4`).
    pub usage: Usage,
}

/// The kernel's accounting of a process (`getrusage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// User CPU, seconds.
    pub user_s: f64,
    /// System CPU, seconds.
    pub system_s: f64,
    /// Largest resident set of any single process, bytes.
    pub max_resident_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Blocks read, in units of 512 bytes.
    pub blocks_in: u64,
    /// Blocks written, in units of 512 bytes.
    pub blocks_out: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// Largest resident sets are in units of this size (getrusage(2)).
const MAXRSS_BYTES: u64 = 1024;

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Self {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or_default();
        Self {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            max_resident_bytes: count(usage.ru_maxrss) * MAXRSS_BYTES,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            blocks_in: count(usage.ru_inblock),
            blocks_out: count(usage.ru_oublock),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // microseconds of CPU fit a double for 285 years
fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// A step applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The request answered.
    pub id: u64,
    /// What the check read before the step, raw; absent without a check.
    pub before: Option<String>,
    /// What the check read after the step, raw; absent without a check.
    pub read_back: Option<String>,
    /// How many steps are applied and not undone, this one included.
    pub applied: usize,
}

/// Steps undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The request answered.
    pub id: u64,
    /// How many steps were undone.
    pub steps: usize,
    /// Those that could not be, in words.
    pub failed: Vec<String>,
    /// Settings that no longer held their value when undone: another process changed them meanwhile.
    pub disturbed: Vec<String>,
}

/// Answer to `ping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    /// The request answered.
    pub id: u64,
    /// The place's clocks.
    pub clock: Reading,
}

/// The stream ends: processes are gone and everything is undone, but for what is named here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Farewell {
    /// The request answered.
    pub id: u64,
    /// Steps that could not be undone, in words.
    pub failed: Vec<String>,
}

/// A request could not be carried out. The stream goes on unless it was `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// The request answered; absent when a line could not be understood at all.
    pub id: Option<u64>,
    /// The kind of failure, for programs: `version`, `busy`, `not_found`, `refused`, `check`, `invalid`, `system`.
    pub code: String,
    /// What happened, innermost cause last, for people.
    pub message: String,
    /// What the user can do next.
    pub hint: Option<String>,
}
