//! What is counted when.
//!
//! Who takes a lock leaves in the lock's own memory since when it holds it and at which call site it took it; who gives
//! it back reads that. So holding needs no table of locks and no memory of the thread's.

use core::ffi::c_int;
use core::sync::atomic::AtomicU64;

use crate::algorithm::Observer;
use crate::histogram::bucket;
use crate::sites::{CallSite, CountsFile, SITES, add};

const SITE_BITS: u32 = 12;
const TIME_MASK: u64 = (1 << (u64::BITS - SITE_BITS)) - 1; // 52 days of nanoseconds, then from the beginning

const _: () = assert!(SITES == 1 << SITE_BITS);

/// Watches one thread take one lock.
#[derive(Debug)]
pub struct LockWatch {
    now: fn() -> u64,
    waits_since: Option<u64>,
    spins: u64,
}

impl LockWatch {
    /// One that reads the clock `now`, nanoseconds, where it must.
    pub fn new(now: fn() -> u64) -> Self {
        Self {
            now,
            waits_since: None,
            spins: 0,
        }
    }
}

impl Observer for LockWatch {
    fn contended(&mut self) {
        self.waits_since = Some((self.now)());
    }

    fn spun(&mut self) {
        self.spins += 1;
    }
}

/// Since when a lock is held, and by which call site it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquisition(u64);

impl Acquisition {
    /// By nobody who is counted.
    pub const NOT: u64 = 0;

    /// The word to leave in the lock; never `NOT`.
    pub fn word(site: usize, since: u64) -> u64 {
        (((since & TIME_MASK) << SITE_BITS) | (site as u64 & (SITES as u64 - 1))).max(1)
    }

    /// What the word in a lock says.
    pub fn of(word: u64) -> Option<Self> {
        (word != Self::NOT).then_some(Self(word))
    }

    /// Counts that it ended at `now`.
    pub fn ended(self, counts: &CountsFile, now: u64) {
        let site = &counts.sites[usize::try_from(self.0).unwrap_or(0) % SITES];
        time(
            &site.holds,
            &site.hold_ns,
            (now.wrapping_sub(self.0 >> SITE_BITS)) & TIME_MASK,
        );
    }
}

/// What came of taking a lock at a call site. The word to leave in the lock, where it was taken.
pub fn taken(counts: &CountsFile, number: usize, answer: c_int, watch: &LockWatch) -> Option<u64> {
    let site = &counts.sites[number];
    if let Some(since) = watch.waits_since {
        add(&site.spins, watch.spins);
        add(&site.contended, 1);
        let now = (watch.now)();
        if answer == 0 {
            time(&site.waits, &site.wait_ns, now.saturating_sub(since));
        }
        return acquired(site, number, answer, now);
    }
    if answer == 0 {
        acquired(site, number, answer, (watch.now)())
    } else {
        acquired(site, number, answer, 0)
    }
}

/// The same of `pthread_mutex_trylock`.
pub fn tried(counts: &CountsFile, number: usize, answer: c_int, now: fn() -> u64) -> Option<u64> {
    let site = &counts.sites[number];
    if answer == libc::EBUSY {
        add(&site.busy, 1);
        return None;
    }
    acquired(site, number, answer, if answer == 0 { now() } else { 0 })
}

/// A wait for a condition has ended, which takes the lock again.
pub fn reacquired(counts: &CountsFile, number: usize, now: u64) -> u64 {
    add(&counts.sites[number].reacquired, 1);
    Acquisition::word(number, now)
}

fn acquired(site: &CallSite, number: usize, answer: c_int, now: u64) -> Option<u64> {
    if answer == libc::ETIMEDOUT {
        add(&site.timed_out, 1);
    }
    if answer != 0 {
        return None;
    }
    add(&site.acquisitions, 1);
    Some(Acquisition::word(number, now))
}

fn time(histogram: &[AtomicU64], sum: &AtomicU64, nanoseconds: u64) {
    add(sum, nanoseconds);
    if let Some(count) = histogram.get(bucket(nanoseconds)) {
        add(count, 1);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::sites::tests::empty;

    thread_local! {
        static CLOCK: Cell<u64> = const { Cell::new(1000) };
    }

    /// Goes on by 100 ns whenever it is read.
    fn now() -> u64 {
        CLOCK.with(|clock| clock.replace(clock.get() + 100))
    }

    #[test]
    fn a_free_lock_is_counted_and_its_holding_timed() {
        let counts = empty();
        let word = taken(&counts, 7, 0, &LockWatch::new(now)).unwrap_or_default();
        let held = Acquisition::of(word);
        assert!(held.is_some());
        held.inspect(|held| held.ended(&counts, now()));
        let site = &counts.sites[7];
        assert_eq!(
            [
                site.acquisitions.load(Relaxed),
                site.contended.load(Relaxed)
            ],
            [1, 0]
        );
        assert_eq!(site.hold_ns.load(Relaxed), 100);
        assert_eq!(site.holds[bucket(100)].load(Relaxed), 1);
        assert_eq!(site.wait_ns.load(Relaxed), 0);
    }

    #[test]
    fn a_taken_lock_is_waited_for() {
        let counts = empty();
        let mut watch = LockWatch::new(now);
        watch.contended();
        watch.spun();
        watch.spun();
        assert!(taken(&counts, 7, 0, &watch).is_some());
        let site = &counts.sites[7];
        assert_eq!(
            [site.contended.load(Relaxed), site.spins.load(Relaxed)],
            [1, 2]
        );
        assert_eq!(site.wait_ns.load(Relaxed), 100);
        assert_eq!(site.waits[bucket(100)].load(Relaxed), 1);
    }

    #[test]
    fn what_was_not_taken_is_not_held() {
        let counts = empty();
        assert_eq!(tried(&counts, 7, libc::EBUSY, now), None);
        assert_eq!(
            taken(&counts, 7, libc::ETIMEDOUT, &LockWatch::new(now)),
            None
        );
        assert_eq!(taken(&counts, 7, libc::EINVAL, &LockWatch::new(now)), None);
        let site = &counts.sites[7];
        assert_eq!(
            [
                site.busy.load(Relaxed),
                site.timed_out.load(Relaxed),
                site.acquisitions.load(Relaxed)
            ],
            [1, 1, 0]
        );
        assert_eq!(Acquisition::of(Acquisition::NOT), None);
    }

    #[test]
    fn a_clock_past_what_fits_still_gives_how_long() {
        let counts = empty();
        let since = (1 << 52) - 5;
        let held = Acquisition::of(Acquisition::word(4095, since));
        held.inspect(|held| held.ended(&counts, since + 12));
        assert_eq!(counts.sites[4095].hold_ns.load(Relaxed), 12);
        assert_ne!(Acquisition::word(0, 0), Acquisition::NOT);
    }

    #[test]
    fn the_end_of_a_wait_for_a_condition_is_told_apart() {
        let counts = empty();
        assert_eq!(reacquired(&counts, 9, 77), Acquisition::word(9, 77));
        assert_eq!(counts.sites[9].reacquired.load(Relaxed), 1);
        assert_eq!(counts.sites[9].acquisitions.load(Relaxed), 0);
    }
}
