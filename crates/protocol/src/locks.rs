//! Parameters and results of the subcommand that takes locks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Spacing;

/// How threads wait for a lock that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// The C library's default mutex: the control.
    Pthread,
    /// glibc's adaptive mutex.
    Adaptive,
    /// `MySQL`'s fast mutex as published.
    Fast,
    /// The same with its state in locals.
    FastLocal,
    /// The same without randomness.
    FastConstant,
    /// In the order of arrival, by tickets.
    Ticket,
    /// In the order of arrival, each thread waiting on its own node.
    Mcs,
    /// In the order of arrival, each thread waiting on its predecessor's node.
    Clh,
    /// Testing and setting, for ever.
    Spin,
}

/// Takes locks with many threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockDrive {
    /// Of every lock.
    pub kind: LockKind,
    /// Threads.
    pub threads: u32,
    /// Locks; each acquisition draws one.
    pub locks: u32,
    /// Whether each lock has cache lines of its own, or they lie side by side.
    pub padding: bool,
    /// Tries, or looks at the queue, before sleeping; without it, those of the source. Not for kinds that have none.
    #[serde(default)]
    pub spins: Option<u32>,
    /// Turns of the loop inside.
    pub critical_turns: u32,
    /// Turns of the loop outside, on average.
    pub outside_turns: u32,
    /// How the latter are spread.
    pub spacing: Spacing,
    /// Cache lines that each acquisition writes inside; one at least.
    pub lines: u32,
    /// One acquisition of so many, of each thread, is timed.
    pub sample_every: u32,
    /// Load before the window, seconds.
    pub ramp_up_s: f64,
    /// Length of the window, seconds; exactly one of this and `acquisitions`.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// The window ends once one thread has made so many in it.
    #[serde(default)]
    pub acquisitions: Option<u64>,
    /// Seed of the run: every thread's draws derive from it.
    pub seed: u64,
    /// Width of timeline and histogram intervals, milliseconds.
    pub interval_ms: u32,
    /// Directory for `result.json`, `latency.hlog`, `timeline.arrows` and `contention.json`; must exist.
    pub output_directory: String,
}

/// `contention.json`: what threads got, and whether the locks excluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Inside the window, thread by thread.
    pub threads: Vec<Turns>,
    /// One acquisition of so many was timed.
    pub sample_every: u32,
    /// What a turn of the loop took right before ramp-up, the best of a few looks, nanoseconds.
    pub turn_ns: f64,
    /// What reading the clock took then, nanoseconds; a timed acquisition reads it twice, once inside.
    pub clock_ns: f64,
    /// Bytes from one lock to the next.
    pub lock_bytes: u64,
    /// Acquisitions of the whole drive, as threads count them.
    pub acquired: u64,
    /// The same as it was counted under the locks, without atomic additions: equal, or a lock did not exclude.
    pub guarded: u64,
    /// Times that a thread found another one's mark inside, where nobody else should have been.
    pub intruded: u64,
    /// Guarded cache lines whose count is not that of their lock.
    pub torn_lines: u64,
}

/// What one thread got inside the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// Acquisitions.
    pub acquisitions: u64,
    /// Those of a lock whose last holder was another thread.
    pub handed: u64,
    /// Acquisitions that were timed.
    pub sampled: u64,
    /// Those of them that found the lock taken.
    pub contended: u64,
    /// Longest time from one timed acquisition to the next, or to an end of the window: it got fewer than
    /// `sample_every` in it.
    pub longest_gap_ns: i64,
}
