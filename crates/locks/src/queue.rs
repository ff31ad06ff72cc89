//! A ticket lock in front of the real one: threads take the real lock in the order in which they came.
//!
//! Whose turn it is waits for the real lock and, once it has it, lets the next one come to the front. So nothing is to
//! be done at an unlock, and whoever takes the real lock past the queue (a wait for a condition that ends inside glibc,
//! a try, a timed lock) does no harm beyond being early.
//!
//! All state is one word of the lock's own memory, all zero in a new lock:
//! bits 0–15 the ticket that is served, 16–31 the process's generation, 32–47 how many sleep, 48–63 the next ticket.

use core::ffi::c_int;

use crate::algorithm::{Algorithm, Observer, RealMutex};

const SERVED: u64 = 0xFFFF;
const GENERATION_SHIFT: u32 = 16;
const SLEEPER: u64 = 1 << 32;
const NEXT_SHIFT: u32 = 48;
const NEXT: u64 = 1 << NEXT_SHIFT;
const LONGEST: u16 = 60_000; // a longer queue would not be told from a short one; later threads go past it

/// Where the queue of one lock lives.
pub trait QueueMemory {
    /// The word, with what was written before it.
    fn word(&self) -> u64;
    /// Replaces `from` by `to`, or says that it is another one by now.
    fn replace(&self, from: u64, to: u64) -> bool;
    /// Adds (wrapping) and gives what was there before.
    fn add(&self, value: u64) -> u64;
    /// A number that `wake` of this ticket changes, with what was written before that.
    fn wakings(&self, ticket: u16) -> u32;
    /// Sleeps while `wakings` of this ticket is `expected`; may return for no reason.
    fn park(&self, ticket: u16, expected: u32);
    /// Wakes who sleeps with this ticket.
    fn wake(&self, ticket: u16);
    /// Changes with every fork: tickets of an older generation belong to threads that are not here.
    fn generation(&self) -> u16;
    /// How often to look before sleeping.
    fn looks(&self) -> u32;
}

/// Tickets, as an algorithm.
pub struct Ticket;

impl<R: RealMutex + QueueMemory> Algorithm<R> for Ticket {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        let queue = Queue { place: real };
        let mut waits = false;
        let mut wait = || {
            if !waits {
                waits = true;
                observer.contended();
            }
            observer.spun();
            real.relax();
        };
        let turn = loop {
            let Some(ticket) = queue.join() else {
                break None;
            };
            if queue.until_served(ticket, &mut wait) {
                break Some(ticket);
            }
        };
        let mut looks = real.looks();
        let answer = loop {
            let answer = real.try_lock();
            if answer != libc::EBUSY {
                break answer;
            }
            wait();
            if looks == 0 {
                break real.lock();
            }
            looks -= 1;
        };
        if let Some(ticket) = turn {
            queue.pass(ticket);
        }
        answer
    }
}

/// The queue of one lock.
pub struct Queue<'a, P: QueueMemory> {
    /// Where it lives.
    pub place: &'a P,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    number: u16,
    generation: u16,
}

impl<P: QueueMemory> Queue<'_, P> {
    /// Takes the next ticket; `None` where the queue is as long as it can be.
    #[must_use]
    pub fn join(&self) -> Option<Turn> {
        let generation = self.place.generation();
        loop {
            let word = self.place.word();
            if generation_of(word) != generation {
                self.place
                    .replace(word, u64::from(generation) << GENERATION_SHIFT);
                continue;
            }
            let number = next_of(word);
            if number.wrapping_sub(served_of(word)) >= LONGEST {
                return None;
            }
            if self.place.replace(word, word.wrapping_add(NEXT)) {
                return Some(Turn { number, generation });
            }
        }
    }

    /// Waits for the turn; false where the ticket was of another generation, and is void.
    #[must_use]
    pub fn until_served(&self, turn: Turn, mut wait: impl FnMut()) -> bool {
        for _ in 0..=self.place.looks() {
            match self.state(self.place.word(), turn) {
                TurnState::Served => return true,
                TurnState::Void => return false,
                TurnState::Waits => wait(),
            }
        }
        self.place.add(SLEEPER);
        loop {
            let wakings = self.place.wakings(turn.number); // first: who passes writes the word, and then this
            match self.state(self.place.word(), turn) {
                TurnState::Served => break,
                TurnState::Void => return false,
                TurnState::Waits => self.place.park(turn.number, wakings),
            }
        }
        self.place.add(SLEEPER.wrapping_neg());
        true
    }

    /// Lets the next one come to the front.
    pub fn pass(&self, turn: Turn) {
        if self.place.generation() != turn.generation {
            return;
        }
        // Only the front writes these bits, so it knows when one more would carry into the generation.
        let step = if turn.number == u16::MAX {
            SERVED.wrapping_neg()
        } else {
            1
        };
        if sleepers_of(self.place.add(step)) > 0 {
            self.place.wake(turn.number.wrapping_add(1));
        }
    }

    fn state(&self, word: u64, turn: Turn) -> TurnState {
        if self.place.generation() != turn.generation || generation_of(word) != turn.generation {
            TurnState::Void
        } else if served_of(word) == turn.number {
            TurnState::Served
        } else {
            TurnState::Waits
        }
    }
}

enum TurnState {
    Served,
    Waits,
    Void,
}

#[allow(clippy::cast_possible_truncation)] // the parts of the word are what is wanted
fn part(word: u64, shift: u32) -> u16 {
    (word >> shift) as u16
}

fn served_of(word: u64) -> u16 {
    part(word, 0)
}

fn generation_of(word: u64) -> u16 {
    part(word, GENERATION_SHIFT)
}

fn sleepers_of(word: u64) -> u16 {
    part(word, 32)
}

fn next_of(word: u64) -> u16 {
    part(word, NEXT_SHIFT)
}

#[cfg(test)]
mod tests;
