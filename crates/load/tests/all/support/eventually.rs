//! Waiting for what comes sooner or later.

use std::thread;
use std::time::{Duration, Instant};

/// As long as a machine that others load may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Tries until there is an outcome, and returns it.
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(outcome) = attempt() {
            return outcome;
        }
        assert!(since.elapsed() < PATIENCE, "not within two minutes: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
