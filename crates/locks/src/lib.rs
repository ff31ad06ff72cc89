//! How threads wait for the mutexes of an unmodified program.
//!
//! The real `pthread_mutex_t` stays the lock of record: whoever holds it holds the lock, whichever way it was taken.
//! An algorithm decides only how a thread waits before it takes the real one. Condition variables, timed locks, `fork`
//! and whatever glibc does with a mutex inside are right for that reason, and need no shadow of it.
//!
//! [`Mcs`], [`Clh`] and [`Spin`] have a layout of their own and no real lock below: they are for programs that choose
//! their locks, such as the microworkload of `fairtrial-load`, which uses all algorithms.
//!
//! Nothing in the path of a lock allocates, takes another lock or calls the dynamic linker.
//! What each kind does, and where it ends, is on docs/guides/locks.md.

mod algorithm;
mod announcement;
mod clh;
mod config;
mod counting;
mod fast;
mod histogram;
mod mcs;
mod queue;
mod sites;
mod word;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod preload;

pub use algorithm::{Adaptive, Algorithm, NoObserver, Observer, PassThrough, RealMutex, SpinState};
pub use announcement::announcement;
pub use clh::{Clh, NodePair};
pub use config::{
    Config, FAST_SPINS, FastMutexPolicy, MOST_SPINS, Mistake, QUEUE_LOOKS, WaitPolicy,
};
pub use fast::{FastConstant, FastLocal, FastPublished, Off};
pub use histogram::{BUCKETS, bucket, lowest};
pub use mcs::Mcs;
pub use queue::{Queue, QueueMemory, Ticket, Turn};
pub use word::{NOBODY, Node, Spin, Word};
