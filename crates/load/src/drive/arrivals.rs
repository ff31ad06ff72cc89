//! When transactions should begin in an open loop: one stream for all users, computed as it goes, so that a backlog of
//! any length takes no memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fairtrial_protocol::load::{Arrivals, Spacing};

use super::rates::{RateCurve, TRANSACTION};
use super::replay::{self, ReplayTrace};
use crate::error::LoadError;
use crate::random::Random;
use crate::shared::lock;

/// A time between events, seconds, of this mean.
pub fn spaced_s(spacing: Spacing, mean_s: f64, random: &mut Random) -> f64 {
    match spacing {
        Spacing::Constant => mean_s,
        Spacing::Exponential => -libm::log(1.0 - random.fraction()) * mean_s,
    }
}

/// What says how far the next arrival is.
#[derive(Clone, Debug)]
enum Gaps {
    /// One rate: the time between two arrivals, and when the next one is, seconds.
    Even { gap_s: f64, next_s: f64 },
    /// A rate that changes: how many arrivals of the unit process there are before the next one, in parts.
    Shaped { shape: Arc<RateCurve>, count: u128 },
    /// Times that were recorded.
    Replay(ReplayTrace),
}

/// Arrivals in their order, as nanoseconds after the drive's start. Two streams of one seed are the same.
#[derive(Clone, Debug)]
pub struct ArrivalStream {
    pace: Gaps,
    spacing: Spacing,
    random: Random,
    next_ns: Option<i64>,
    count: u64,
    /// How far the stream of all clients has come.
    passed: u64,
    /// Of so many this client takes one.
    clients: u32,
}

impl ArrivalStream {
    /// The stream of a drive; none if its users begin when they like. Reads the file of a replay.
    pub fn open(arrivals: &Arrivals, seed: u64) -> Result<Option<Self>, LoadError> {
        let mut random = Random::derive(seed, "arrivals", &[]);
        let (pace, spacing) = match arrivals {
            Arrivals::Closed { .. } | Arrivals::Search { .. } => return Ok(None),
            Arrivals::Open {
                rate_per_s,
                spacing,
            } => {
                let gap_s = 1.0 / rate_per_s;
                let next_s = match spacing {
                    Spacing::Constant => 0.0,
                    Spacing::Exponential => spaced_s(*spacing, gap_s, &mut random),
                };
                (Gaps::Even { gap_s, next_s }, *spacing)
            }
            Arrivals::Replay { path, again } => {
                let replayed = replay::read(path, *again)?;
                (Gaps::Replay(replayed), Spacing::Constant)
            }
            Arrivals::Steps { spacing, .. }
            | Arrivals::Ramp { spacing, .. }
            | Arrivals::Sine { spacing, .. } => {
                let Some(shape) = RateCurve::new(arrivals).map(Arc::new) else {
                    return Ok(None);
                };
                let count = match spacing {
                    Spacing::Constant => 0,
                    Spacing::Exponential => drawn(&mut random),
                };
                (Gaps::Shaped { shape, count }, *spacing)
            }
        };
        let mut stream = Self {
            pace,
            spacing,
            random,
            next_ns: None,
            count: 0,
            passed: 0,
            clients: 1,
        };
        stream.next_ns = stream.time_ns();
        Ok(Some(stream))
    }

    /// The part of one client, counted from 0, where several go round: together they have the whole stream.
    #[must_use]
    pub fn one_of(mut self, client: u32, clients: u32) -> Self {
        for _ in 0..client {
            self.advance();
        }
        self.clients = clients;
        self.next_ns = self.time_ns();
        self
    }

    /// When the next one is, nanoseconds; nothing once there are no more.
    pub fn peek_ns(&self) -> Option<i64> {
        self.next_ns
    }

    /// Takes the next one.
    pub fn take_ns(&mut self) -> Option<i64> {
        let taken_ns = self.next_ns?;
        self.count += 1;
        for _ in 0..self.clients {
            self.advance();
        }
        self.next_ns = self.time_ns();
        Some(taken_ns)
    }

    /// How many there are before a time, which only grows from call to call.
    pub fn before(&mut self, time_ns: i64) -> u64 {
        while self.peek_ns().is_some_and(|next_ns| next_ns < time_ns) {
            self.take_ns();
        }
        self.count
    }

    #[allow(clippy::cast_precision_loss)] // counts of a drive stay far below 2^53
    fn advance(&mut self) {
        self.passed += 1;
        let passed = self.passed;
        match (&mut self.pace, self.spacing) {
            // Multiplied, not added up: a long drive must not drift from its rate.
            (Gaps::Even { gap_s, next_s }, Spacing::Constant) => {
                *next_s = passed as f64 * *gap_s;
            }
            (Gaps::Even { gap_s, next_s }, Spacing::Exponential) => {
                *next_s += spaced_s(Spacing::Exponential, *gap_s, &mut self.random);
            }
            (Gaps::Shaped { count, .. }, Spacing::Constant) => *count += TRANSACTION,
            (Gaps::Shaped { count, .. }, Spacing::Exponential) => {
                *count += drawn(&mut self.random);
            }
            (Gaps::Replay(_), _) => (),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // a drive's length fits 63 bits of nanoseconds
    fn time_ns(&self) -> Option<i64> {
        match &self.pace {
            Gaps::Even { next_s, .. } => Some((*next_s * 1e9) as i64),
            Gaps::Shaped { shape, count } => shape.time_ns(*count),
            Gaps::Replay(replayed) => replayed.time_ns(self.passed),
        }
    }
}

/// What a process of rate 1 counts between two arrivals, in parts of a transaction.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)] // between 0 and 37 transactions, to the digits a double holds
fn drawn(random: &mut Random) -> u128 {
    (spaced_s(Spacing::Exponential, 1.0, random) * TRANSACTION as f64) as u128
}

/// The stream that users share, how many of it they have begun, and how many were given up.
#[derive(Debug)]
pub struct ArrivalQueue {
    stream: Mutex<ArrivalStream>,
    timeout_ns: Option<i64>,
    /// Those that should have begun before this are late for a search's objective if they have not ended in the window.
    due_before_ns: Option<i64>,
    begun: AtomicU64,
    timed_out: AtomicU64,
    settled: AtomicU64,
}

impl ArrivalQueue {
    /// A queue at its beginning; who has waited in it for longer than `timeout_ns` is given up. Those that should begin
    /// before `due_before_ns` after the drive's start are followed to their end.
    pub fn new(stream: ArrivalStream, timeout_ns: Option<i64>, due_before_ns: Option<i64>) -> Self {
        Self {
            stream: Mutex::new(stream),
            timeout_ns,
            due_before_ns,
            begun: 0.into(),
            timed_out: 0.into(),
            settled: 0.into(),
        }
    }

    /// The oldest arrival that no user has taken and that has not waited too long by now; nanoseconds after the drive's
    /// start, as is `now_ns`. Nothing once there are no more.
    pub fn take_ns(&self, now_ns: i64) -> Option<i64> {
        let mut stream = lock(&self.stream);
        self.expire_from(&mut stream, now_ns);
        stream.take_ns()
    }

    /// Gives up those that have waited too long, whether or not a user comes for them.
    pub fn expire(&self, now_ns: i64) {
        if self.timeout_ns.is_some() {
            let mut stream = lock(&self.stream);
            self.expire_from(&mut stream, now_ns);
        }
    }

    fn expire_from(&self, stream: &mut ArrivalStream, now_ns: i64) {
        while let Some(due_ns) = stream.peek_ns()
            && self.is_over(due_ns, now_ns)
        {
            stream.take_ns();
            self.give_up(due_ns);
        }
    }

    /// Whether an arrival has waited too long.
    pub fn is_over(&self, due_ns: i64, now_ns: i64) -> bool {
        self.timeout_ns
            .is_some_and(|timeout_ns| now_ns - due_ns > timeout_ns)
    }

    /// Says that a user begins the one it took.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that one is given up; when it should have begun, nanoseconds after the drive's start.
    pub fn give_up(&self, due_ns: i64) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
        self.settle(due_ns);
    }

    /// Says that one has come to its end before the window's; when it should have begun, as above.
    pub fn settle(&self, due_ns: i64) {
        if self.is_followed(due_ns) {
            self.settled.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_followed(&self, due_ns: i64) -> bool {
        self.due_before_ns
            .is_some_and(|before_ns| due_ns < before_ns)
    }

    /// How many of those followed have not come to their end, of a stream that nothing was taken from.
    pub fn overdue(&self, mut stream: ArrivalStream) -> Option<u64> {
        let all = stream.before(self.due_before_ns?);
        Some(all.saturating_sub(self.settled.load(Ordering::Relaxed)))
    }

    /// How many have begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// How many were given up.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Whether any may be given up.
    pub fn has_timeout(&self) -> bool {
        self.timeout_ns.is_some()
    }
}

#[cfg(test)]
mod tests;
