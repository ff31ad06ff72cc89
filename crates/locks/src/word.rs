//! What queue locks of our own layout are made of: words that can be slept on, and nodes that threads queue with.
//!
//! Threads and nodes have numbers from 1 on instead of addresses, so that a queue is safe code and fits into words; 0
//! is nobody. The orders of memory are said here and in the algorithms, for every implementation alike, so that loom
//! goes through those that are used.

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use crate::algorithm::Observer;

/// Nobody: no node has this number.
pub const NOBODY: u32 = 0;

const WAITS: u32 = 0;
const SLEEPS: u32 = 1;
const PASSED: u32 = 2;

/// An atomic number that a thread can sleep on.
pub trait Word {
    /// One that holds `value`.
    fn new(value: u32) -> Self;
    /// Reads it.
    fn load(&self, order: Ordering) -> u32;
    /// Writes it.
    fn store(&self, value: u32, order: Ordering);
    /// Writes it and gives what was there before.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Replaces `from` by `to` with the first order, or says by false, with the second, that it is another one by now.
    fn replace(&self, from: u32, to: u32, orders: (Ordering, Ordering)) -> bool;
    /// Sleeps while it is `expected`; may return for no reason.
    fn park(&self, expected: u32);
    /// Wakes who sleeps on it.
    fn wake(&self);
    /// A moment of a loop that waits for a thread that runs.
    fn relax();
    /// A moment of one that waits for a thread that may not run: gives the processor away.
    fn give_way();
}

/// A thread's place in a queue, on cache lines of its own whatever the locks' layout.
#[repr(align(128))]
pub struct Node<W> {
    state: W,
    next: W,
}

impl<W: Word> Node<W> {
    /// One that nobody waits for.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: W::new(PASSED),
            next: W::new(NOBODY),
        }
    }

    /// Is about to stand in a queue.
    pub(crate) fn begin(&self) {
        self.next.store(NOBODY, Relaxed);
        self.state.store(WAITS, Relaxed); // what puts it into the queue releases both
    }

    /// Who comes after it.
    pub(crate) fn next(&self) -> &W {
        &self.next
    }

    /// Looks at most `looks` times whether it was passed, then sleeps until it is.
    pub(crate) fn until_passed<O: Observer>(&self, looks: u32, observer: &mut O) {
        for _ in 0..looks {
            if self.state.load(Acquire) == PASSED {
                return;
            }
            observer.spun();
            W::relax();
        }
        if self.state.replace(WAITS, SLEEPS, (Relaxed, Acquire)) {
            while self.state.load(Acquire) == SLEEPS {
                self.state.park(SLEEPS);
            }
        }
    }

    /// Whether it was passed.
    pub(crate) fn is_passed(&self) -> bool {
        self.state.load(Acquire) == PASSED
    }

    /// Lets whoever waits on it go on. A thread that has gone on may use the node again before it is woken: whoever
    /// sleeps on it then wakes for nothing, and sleeps again.
    pub(crate) fn pass(&self) {
        if self.state.swap(PASSED, AcqRel) == SLEEPS {
            self.state.wake();
        }
    }
}

impl<W: Word> Default for Node<W> {
    fn default() -> Self {
        Self::new()
    }
}

/// The node of this number.
pub(crate) fn node<W>(nodes: &[Node<W>], number: u32) -> &Node<W> {
    &nodes[number as usize - 1]
}

/// A lock that nobody queues for: one word, tested until it looks free, then tested and set.
pub struct Spin<W> {
    taken: W,
}

impl<W: Word> Spin<W> {
    /// A free one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            taken: W::new(NOBODY),
        }
    }

    /// Takes it; never sleeps, whoever holds it and whether that one runs or not.
    pub fn lock<O: Observer>(&self, observer: &mut O) {
        if self.take() {
            return;
        }
        observer.contended();
        loop {
            while self.taken.load(Relaxed) != NOBODY {
                observer.spun();
                W::relax();
            }
            if self.take() {
                return;
            }
        }
    }

    fn take(&self) -> bool {
        self.taken.replace(NOBODY, 1, (Acquire, Relaxed))
    }

    /// Gives it back.
    pub fn unlock(&self) {
        self.taken.store(NOBODY, Release);
    }
}

impl<W: Word> Default for Spin<W> {
    fn default() -> Self {
        Self::new()
    }
}
