//! The file of counts: its layout, and finding a call site's slot in it. `src/fairtrial/locks/counts.py` reads it.
//!
//! A header, a table of objects (programs and libraries), a table of call sites. All numbers are 64 bits wide in the
//! machine's order. The file is a shared mapping, so what a killed process has counted is in it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::histogram::BUCKETS;

/// What the file begins with.
pub const MAGIC: [u8; 8] = *b"FTLOCKS1";
/// How many call sites fit; the first slot takes those that do not.
pub const SITES: usize = 4096;
/// How many objects fit; the first is of those that do not, or are not known.
pub const OBJECTS: usize = 256;
/// Bytes of an object's path.
pub const PATH_BYTES: usize = 240;
const PROBES: usize = 64;
const HASH: u64 = 0x9E37_79B9_7F4A_7C15; // 2^64 divided by the golden ratio (Knuth 6.4)

/// What the whole process is told by.
#[repr(C)]
pub struct Header {
    /// `MAGIC`.
    pub magic: [u8; 8],
    /// `SITES`, `OBJECTS`, `PATH_BYTES` and `BUCKETS`, so that a reader need not know them.
    pub sizes: [u64; 4],
    /// The process.
    pub process: AtomicU64,
    /// What is in effect, as announced.
    pub announcement: [u8; 256],
}

/// A program or library.
#[repr(C)]
pub struct Object {
    /// Where it begins in memory; 0: the slot is free.
    pub start: AtomicU64,
    /// What to take off an address to have the one in its file.
    pub bias: AtomicU64,
    /// Its path, ended by a zero.
    pub path: [AtomicU64; PATH_BYTES / 8],
}

/// What was counted at one place in a program.
#[repr(C)]
pub struct CallSite {
    /// The return address; 0: the slot is free.
    pub address: AtomicU64,
    /// Which object it is in.
    pub object: AtomicU64,
    /// How often the lock was taken there, tries that succeeded among them.
    pub acquisitions: AtomicU64,
    /// How many of them found it taken.
    pub contended: AtomicU64,
    /// Tries in vain of those that waited; at a ticket lock, looks at the queue.
    pub spins: AtomicU64,
    /// `pthread_mutex_trylock` that found it taken.
    pub busy: AtomicU64,
    /// Timed locks that ended without it.
    pub timed_out: AtomicU64,
    /// Taken again at the end of a wait for a condition.
    pub reacquired: AtomicU64,
    /// Locks of kinds that are left alone: recursive, robust, shared and so on.
    pub left_alone: AtomicU64,
    /// Sums of the two histograms' times.
    pub wait_ns: AtomicU64,
    /// The same of holding.
    pub hold_ns: AtomicU64,
    /// How long who found it taken waited.
    pub waits: [AtomicU64; BUCKETS],
    /// How long it was held, by where it was taken.
    pub holds: [AtomicU64; BUCKETS],
}

/// The whole file.
#[repr(C)]
pub struct CountsFile {
    /// First.
    pub header: Header,
    /// Then.
    pub objects: [Object; OBJECTS],
    /// Last.
    pub sites: [CallSite; SITES],
}

/// Adds to a counter that nobody orders anything by.
pub fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Relaxed);
}

impl CountsFile {
    /// The number of a call site, and whether this call was the first to see it; 0 where there is no room for it.
    pub fn site(&self, address: u64) -> (usize, bool) {
        let first = usize::try_from(address.wrapping_mul(HASH) >> 48).unwrap_or(0);
        for probe in 0..PROBES {
            let number = (first + probe) % SITES;
            let there = self.sites[number].address.load(Relaxed);
            if there == address && number != 0 {
                return (number, false);
            }
            if there == 0 && number != 0 {
                match self.sites[number]
                    .address
                    .compare_exchange(0, address, Relaxed, Relaxed)
                {
                    Ok(_) => return (number, true),
                    Err(other) if other == address => return (number, false),
                    Err(_) => {}
                }
            }
        }
        (0, false)
    }

    /// The number of an object that begins at `start`; `fill` is called where it is new. 0 where there is no room.
    pub fn object(&self, start: u64, fill: impl FnOnce(&Object)) -> u64 {
        for (number, object) in self.objects.iter().enumerate().skip(1) {
            match object.start.compare_exchange(0, start, Relaxed, Relaxed) {
                Ok(_) => {
                    fill(object);
                    return number as u64;
                }
                Err(there) if there == start => return number as u64,
                Err(_) => {}
            }
        }
        0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn empty() -> Box<CountsFile> {
        // SAFETY: every field is a number or an array of numbers, for which all zero is a value.
        #[allow(unsafe_code)]
        unsafe {
            Box::<CountsFile>::new_zeroed().assume_init()
        }
    }

    #[test]
    fn a_call_site_keeps_its_slot() {
        let counts = empty();
        let (number, is_new) = counts.site(0x40_1000);
        assert!(is_new && number != 0);
        assert_eq!(counts.site(0x40_1000), (number, false));
        assert_ne!(counts.site(0x40_1005).0, number);
    }

    #[test]
    fn what_does_not_fit_is_counted_together() {
        let counts = empty();
        let mut lost = 0;
        for address in 1..=2 * SITES as u64 {
            lost += usize::from(counts.site(address).0 == 0);
        }
        assert!(lost > SITES - 200, "{lost}");
        let used = counts
            .sites
            .iter()
            .filter(|site| site.address.load(Relaxed) != 0)
            .count();
        assert_eq!(used + lost, 2 * SITES);
    }

    #[test]
    fn an_object_is_described_once() {
        let counts = empty();
        let mut filled = 0;
        assert_eq!(counts.object(0x1000, |_| filled += 1), 1);
        assert_eq!(counts.object(0x2000, |_| filled += 1), 2);
        assert_eq!(counts.object(0x1000, |_| filled += 1), 1);
        assert_eq!(filled, 2);
        for start in 3..=OBJECTS as u64 + 10 {
            counts.object(start * 0x1000, |_| {});
        }
        assert_eq!(counts.object(0xFFFF_0000, |_| filled += 100), 0);
        assert_eq!(filled, 2);
    }

    #[test]
    fn threads_that_come_together_share_a_slot() {
        let counts = empty();
        let numbers: Vec<usize> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| counts.site(0x77_7777).0))
                .collect();
            all.into_iter()
                .map(|each| each.join().unwrap_or(0))
                .collect()
        });
        assert!(
            numbers
                .iter()
                .all(|number| *number == numbers[0] && *number != 0)
        );
    }
}
