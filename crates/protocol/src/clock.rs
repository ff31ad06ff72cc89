//! The place's clock: the only module that reads time.
//!
//! Every `time_ns` in the record is `CLOCK_MONOTONIC` of the place, so load, samplers and agent agree without talking
//! to each other, and a step of the wall clock cannot bend an interval. A [`Reading`] ties it to calendar time.

use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One simultaneous look at both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// `CLOCK_MONOTONIC`, nanoseconds since the place booted.
    pub monotonic_ns: i64,
    /// `CLOCK_REALTIME`, nanoseconds since the Unix epoch.
    pub realtime_ns: i64,
}

impl Reading {
    /// Reads both clocks, one directly after the other.
    #[must_use]
    pub fn now() -> Self {
        Self {
            monotonic_ns: monotonic_ns(),
            realtime_ns: nanoseconds(ClockId::Realtime),
        }
    }
}

/// `CLOCK_MONOTONIC` now, in nanoseconds.
#[inline] // read for every transaction: compiled where it is used, at that crate's level
#[must_use]
pub fn monotonic_ns() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// `CLOCK_BOOTTIME` now, in nanoseconds: it goes on while the machine sleeps.
#[must_use]
pub fn boottime_ns() -> i64 {
    nanoseconds(ClockId::Boottime)
}

#[inline]
fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
