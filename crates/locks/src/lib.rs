//! How threads wait for the mutexes of an unmodified program.
//!
//! The real `pthread_mutex_t` stays the lock of record: whoever holds it holds the lock, whichever way it was taken.
//! An algorithm decides only how a thread waits before it takes the real one. Condition variables, timed locks, `fork`
//! and whatever glibc does with a mutex inside are right for that reason, and need no shadow of it.
//!
//! Nothing in the path of a lock allocates, takes another lock or calls the dynamic linker.
//! What each kind does, and where it ends, is on docs/locks.md.

mod algorithm;
mod announcement;
mod config;
mod counting;
mod fast;
mod histogram;
mod queue;
mod sites;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod preload;

pub use algorithm::{Adaptive, Algorithm, Beside, Observer, Real, Unobserved, Waiting};
pub use announcement::announcement;
pub use config::{Config, FastMutex, Kind, Mistake};
pub use fast::{FastConstant, FastLocal, FastPublished, Off};
pub use histogram::{BUCKETS, bucket, lowest};
pub use queue::{Place, Queue, Ticket, Turn};
