//! The word that ends a drive, said once to all threads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::LoadError;
use crate::shared::lock;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABANDONED: u8 = 2;

/// Running, stopping (finish what you began, begin nothing) or abandoned (leave at once).
#[derive(Debug, Default)]
pub struct Stop {
    state: AtomicU8,
    guard: Mutex<()>,
    said: Condvar,
}

impl Stop {
    /// Asks everyone to finish what they began.
    pub fn stop(&self) {
        self.say(STOPPING);
    }

    /// Asks everyone to leave at once.
    pub fn abandon(&self) {
        self.say(ABANDONED);
    }

    /// Whether nothing new may begin.
    pub fn stopping(&self) -> bool {
        self.state.load(Ordering::Acquire) != RUNNING
    }

    /// Whether what began must be left.
    pub fn abandoned(&self) -> bool {
        self.state.load(Ordering::Acquire) == ABANDONED
    }

    /// Blocks this thread for `duration`, or until a stop.
    pub fn wait(&self, duration: Duration) {
        let guard = lock(&self.guard);
        // A poisoned guard protects nothing: the state is atomic.
        let _unused = self
            .said
            .wait_timeout_while(guard, duration, |()| !self.stopping());
    }

    fn say(&self, state: u8) {
        self.state.fetch_max(state, Ordering::AcqRel);
        let _guard = lock(&self.guard);
        self.said.notify_all();
    }
}

/// Set once SIGTERM or SIGINT asks for the end.
pub fn end_signal() -> Result<Arc<AtomicBool>, LoadError> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(LoadError::start("a signal handler"))?;
    }
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_stop_ends_a_pause_that_would_outlast_the_test() {
        let stop = Arc::new(Stop::default());
        let waiting = thread::spawn({
            let stop = Arc::clone(&stop);
            move || stop.wait(Duration::from_hours(1))
        });
        stop.stop();
        waiting.join().expect("the waiting thread returns");
        assert!(stop.stopping() && !stop.abandoned());
    }

    #[test]
    fn an_abandoned_drive_stays_abandoned() {
        let stop = Stop::default();
        stop.abandon();
        stop.stop();
        assert!(stop.abandoned());
    }
}
