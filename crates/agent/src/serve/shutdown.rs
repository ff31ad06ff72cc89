//! Why and when the stream ends. Whoever notices first says so here; everything else only looks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;

/// Why the stream ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Asked for; the request's number.
    Bye(u64),
    /// The control plane closed its end, or vanished.
    EndOfStream,
    /// Nothing was heard for too long.
    Silence,
    /// The agent got a signal.
    Signal(i32),
    /// What came is not the protocol, or `hello` was refused.
    Refused,
}

/// Whether the stream has ended, and when something was last heard.
pub struct Shutdown {
    reason: Mutex<Option<Reason>>,
    changed: Condvar,
    last_heard_ns: AtomicI64,
}

impl Shutdown {
    /// A stream that goes on.
    pub fn new() -> Self {
        Self {
            reason: Mutex::new(None),
            changed: Condvar::new(),
            last_heard_ns: AtomicI64::new(monotonic_ns()),
        }
    }

    /// Says that the stream ends; the first reason stays. Whether this is the first.
    pub fn begin(&self, reason: Reason) -> bool {
        let mut known = self.lock();
        let first = known.is_none();
        known.get_or_insert(reason);
        self.changed.notify_all();
        first
    }

    /// Why the stream ended; `None`: it goes on.
    pub fn reason(&self) -> Option<Reason> {
        self.lock().clone()
    }

    /// Something was heard.
    pub fn heard(&self) {
        self.last_heard_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Waits until the stream has ended, `limit` at most; whether it has.
    pub fn wait(&self, limit: Duration) -> bool {
        let (reason, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |reason| reason.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        reason.is_some()
    }

    /// How long nothing was heard.
    pub fn silent_for(&self) -> Duration {
        let silent_ns = monotonic_ns() - self.last_heard_ns.load(Ordering::Relaxed);
        Duration::from_nanos(silent_ns.try_into().unwrap_or(0))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
