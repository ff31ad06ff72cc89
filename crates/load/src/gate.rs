//! Where threads that are started one by one begin together.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::shared::lock;

/// Threads wait here for each other: all begin at once, or none does.
#[derive(Default)]
pub struct Gate {
    /// How many wait, and whether they may go, once that is known.
    state: Mutex<(u32, Option<bool>)>,
    /// Somebody else waits.
    came: Condvar,
    /// They may go, or not.
    opened: Condvar,
}

impl Gate {
    /// Waits; returns whether to begin.
    pub fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        state.0 += 1;
        self.came.notify_one();
        loop {
            if let Some(begins) = state.1 {
                return begins;
            }
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many do; one thread at most may.
    pub fn gathered(&self, threads: u32) {
        let state = lock(&self.state);
        drop(self.came.wait_while(state, |state| state.0 < threads));
    }

    /// Lets all of them begin, or end.
    pub fn open(&self, begins: bool) {
        lock(&self.state).1 = Some(begins);
        self.opened.notify_all();
    }
}
