//! What threads do inside and outside of a lock, and how it shows whether the lock excludes.
//!
//! Counters under a lock are added to by a load and a store, as plain code does: two threads inside at once lose an
//! addition sooner or later, and see each other's mark.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use fairtrial_protocol::clock::monotonic_ns;

use crate::random::Random;

/// A multiplier of full period (Knuth 3.3.4): each turn waits for the one before.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Looks at what a turn takes; the best is told, as everything that disturbs it adds to it.
const LOOKS: u32 = 7;
const TURNS_PER_LOOK: u64 = 20_000;
const CLOCKS_PER_LOOK: u32 = 1_000;

/// Nobody has held the lock yet.
const NOBODY: u32 = 0;

/// Keeps the processor busy for so many turns of a loop: a shift, an exclusive or and a multiplication each.
#[inline(never)]
pub fn turn(count: u64) {
    let mut state = black_box(MULTIPLIER);
    for _ in 0..count {
        state = (state ^ (state >> 29)).wrapping_mul(MULTIPLIER);
    }
    black_box(state);
}

/// What a turn takes now, and what reading the clock takes, nanoseconds.
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub fn calibrate() -> (f64, f64) {
    let best = |of: f64, run: &dyn Fn()| {
        let looks = (0..LOOKS).map(|_| {
            let began_ns = monotonic_ns();
            run();
            (monotonic_ns() - began_ns) as f64 / of
        });
        looks.fold(f64::INFINITY, f64::min)
    };
    let turn_ns = best(TURNS_PER_LOOK as f64, &|| turn(TURNS_PER_LOOK));
    let clock_ns = best(f64::from(CLOCKS_PER_LOOK), &|| {
        for _ in 0..CLOCKS_PER_LOOK {
            black_box(monotonic_ns());
        }
    });
    (turn_ns, clock_ns)
}

/// Which lock a thread takes next, and how long it stays outside before that.
pub struct Draws {
    random: Random,
    locks: usize,
    outside: u32,
    is_exponential: bool,
}

impl Draws {
    /// The draws of a thread, from the drive's seed.
    pub fn new(
        (seed, thread): (u64, u32),
        locks: u32,
        (outside, is_exponential): (u32, bool),
    ) -> Self {
        Self {
            random: Random::derive(seed, "locks", &[u64::from(thread)]),
            locks: locks as usize,
            outside,
            is_exponential,
        }
    }

    /// The number of a lock, and turns.
    pub fn next(&mut self) -> (usize, u64) {
        let lock = if self.locks == 1 {
            0
        } else {
            self.random.index(self.locks)
        };
        (lock, self.turns())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 37 means, and above 0
    fn turns(&mut self) -> u64 {
        if !self.is_exponential || self.outside == 0 {
            return self.outside.into();
        }
        let fraction = 1.0 - self.random.fraction(); // above 0
        (-libm::log(fraction) * f64::from(self.outside)).round() as u64
    }
}

/// A cache line under a lock, apart from all others.
#[repr(align(128))]
#[derive(Default)]
struct CacheLine {
    count: AtomicU64,
    holder: AtomicU32,
}

/// What all locks guard: for each so many lines.
pub struct Sections {
    lines: Box<[CacheLine]>,
    per_lock: usize,
}

impl Sections {
    /// For so many locks.
    pub fn new(locks: u32, lines: u32) -> Self {
        let count = locks as usize * lines as usize;
        Self {
            lines: (0..count).map(|_| CacheLine::default()).collect(),
            per_lock: lines as usize,
        }
    }

    /// Is inside: counts on every line and leaves a mark; returns whether another thread was here before.
    #[inline]
    pub fn enter(&self, lock: usize, thread: u32) -> bool {
        let lines = self.of(lock);
        let mark = thread + 1;
        let before = lines[0].holder.load(Relaxed);
        lines[0].holder.store(mark, Relaxed);
        for line in lines {
            line.count.store(line.count.load(Relaxed) + 1, Relaxed);
        }
        before != mark && before != NOBODY
    }

    /// Is about to leave; returns whether somebody came while it was inside.
    #[inline]
    pub fn leave(&self, lock: usize, thread: u32) -> bool {
        self.of(lock)[0].holder.load(Relaxed) != thread + 1
    }

    fn of(&self, lock: usize) -> &[CacheLine] {
        let first = lock * self.per_lock;
        &self.lines[first..first + self.per_lock]
    }

    /// Acquisitions as counted under the locks, and lines whose count is not that of their lock's first. Once all
    /// threads have ended.
    pub fn counted(&self) -> (u64, u64) {
        let of = |line: &CacheLine| line.count.load(Relaxed);
        let sections = || self.lines.chunks(self.per_lock);
        let torn = sections()
            .map(|lines| {
                lines
                    .iter()
                    .filter(|line| of(line) != of(&lines[0]))
                    .count() as u64
            })
            .sum();
        (sections().map(|lines| of(&lines[0])).sum(), torn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: (u64, u32), spread: (u32, bool)) -> Vec<(usize, u64)> {
        let mut draws = Draws::new(seed, 16, spread);
        (0..2_000).map(|_| draws.next()).collect()
    }

    #[test]
    fn a_seed_and_a_thread_decide_what_is_drawn() {
        assert_eq!(drawn((7, 1), (100, true)), drawn((7, 1), (100, true)));
        assert_ne!(drawn((7, 1), (100, true)), drawn((7, 2), (100, true)));
        assert_ne!(drawn((7, 1), (100, true)), drawn((8, 1), (100, true)));
    }

    #[test]
    fn every_lock_is_drawn_about_equally_often() {
        let mut counts = [0_u32; 16];
        for (lock, _) in drawn((3, 0), (0, false)) {
            counts[lock] += 1;
        }
        assert!(
            counts.iter().all(|count| (80..170).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn lengths_outside_are_constant_or_have_the_mean_and_spread_of_the_exponential() {
        assert!(
            drawn((1, 0), (250, false))
                .iter()
                .all(|(_, turns)| *turns == 250)
        );
        assert!(
            drawn((1, 0), (0, true))
                .iter()
                .all(|(_, turns)| *turns == 0)
        );
        #[allow(clippy::cast_precision_loss)]
        let turns: Vec<f64> = drawn((1, 0), (250, true))
            .iter()
            .map(|(_, turns)| *turns as f64)
            .collect();
        let mean = turns.iter().sum::<f64>() / 2_000.0;
        let variance = turns
            .iter()
            .map(|turns| (turns - mean).powi(2))
            .sum::<f64>()
            / 1_999.0;
        assert!((230.0..270.0).contains(&mean), "{mean}");
        assert!(
            (0.9..1.1).contains(&(variance.sqrt() / mean)),
            "deviation and mean are equal"
        );
    }

    #[test]
    fn a_hand_over_is_told_from_coming_again() {
        let sections = Sections::new(2, 3);
        assert!(!sections.enter(0, 4), "nobody was here before");
        assert!(!sections.leave(0, 4));
        assert!(!sections.enter(0, 4), "the same again");
        assert!(!sections.leave(0, 4));
        assert!(sections.enter(0, 5), "another one");
        assert!(
            !sections.enter(1, 5),
            "another lock's holder is another matter"
        );
        assert_eq!(sections.counted(), (4, 0));
    }

    #[test]
    fn a_lock_that_lets_two_in_is_found_out() {
        let sections = Sections::new(1, 2);
        sections.enter(0, 1);
        sections.enter(0, 2);
        assert!(sections.leave(0, 1));
        assert!(!sections.leave(0, 2));
        sections.of(0)[1].count.store(1, Relaxed); // an addition that was lost
        assert_eq!(sections.counted(), (2, 1));
    }

    #[test]
    fn more_turns_take_longer_and_a_turn_takes_something() {
        let (turn_ns, clock_ns) = calibrate();
        assert!((0.1..1_000.0).contains(&turn_ns), "{turn_ns}");
        assert!((1.0..100_000.0).contains(&clock_ns), "{clock_ns}");
    }
}
