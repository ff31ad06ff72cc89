//! The same functions, counted.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

use crate::algorithm::{Algorithm, NoObserver, RealMutex};
use crate::counting::{self, Acquisition, LockWatch};
use crate::sites::{CountsFile, add};

use super::counts::{counts, site};
use super::mutex::{FastMutex, ProgramMutex};
use super::process::now;
use super::real;

/// Whether timed locks, too, make mutexes adaptive.
pub static ADAPTS: AtomicBool = AtomicBool::new(false);

/// `pthread_mutex_lock`, by algorithm.
pub unsafe extern "C-unwind" fn entered<A: Algorithm<ProgramMutex>>(
    mutex: *mut pthread_mutex_t,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_lock.
    let plain = unsafe { ProgramMutex::new(mutex) };
    // SAFETY: as above.
    watched(
        plain,
        caller,
        |watch| A::lock(&plain, watch),
        || A::lock(&plain, &mut NoObserver),
        || unsafe { real::lock(mutex) },
    )
}

/// `my_pthread_fastmutex_lock`, by algorithm.
pub unsafe extern "C-unwind" fn fast_entered<A: Algorithm<FastMutex>>(
    mutex: *mut pthread_mutex_t,
    caller: usize,
) -> c_int {
    // SAFETY: the server's promise to its own function.
    let fast = unsafe { FastMutex::new(mutex) };
    let plain = *fast.mutex();
    watched(
        plain,
        caller,
        |watch| A::lock(&fast, watch),
        || A::lock(&fast, &mut NoObserver),
        || plain.lock(),
    )
}

pub unsafe extern "C-unwind" fn timed(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_timedlock.
    limited(unsafe { ProgramMutex::new(mutex) }, caller, || unsafe {
        real::timed_lock(mutex, until)
    })
}

pub unsafe extern "C-unwind" fn clocked(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_clocklock.
    limited(unsafe { ProgramMutex::new(mutex) }, caller, || unsafe {
        real::clock_lock(mutex, clock, until)
    })
}

/// A lock with a time limit: a try, so that waiting is told apart, and then the real thing.
fn limited(plain: ProgramMutex, caller: usize, lock: impl Fn() -> c_int) -> c_int {
    if ADAPTS.load(Relaxed) {
        plain.adapt();
    }
    let waits = |watch: &mut LockWatch| {
        let tried = plain.try_lock();
        if tried != libc::EBUSY {
            return tried;
        }
        crate::algorithm::Observer::contended(watch);
        lock()
    };
    watched(plain, caller, waits, &lock, &lock)
}

fn watched(
    plain: ProgramMutex,
    caller: usize,
    lock: impl FnOnce(&mut LockWatch) -> c_int,
    uncounted: impl FnOnce() -> c_int,
    leave_alone: impl FnOnce() -> c_int,
) -> c_int {
    let Some(counts) = counts() else {
        return if plain.is_plain() {
            uncounted()
        } else {
            leave_alone()
        };
    };
    let number = site(counts, caller);
    if !plain.is_plain() {
        add(&counts.sites[number].left_alone, 1);
        return leave_alone();
    }
    let mut watch = LockWatch::new(now);
    let answer = lock(&mut watch);
    if let Some(word) = counting::taken(counts, number, answer, &watch) {
        plain.held().store(word, Relaxed);
    }
    answer
}

pub unsafe extern "C-unwind" fn tried(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_trylock.
    let plain = unsafe { ProgramMutex::new(mutex) };
    let answer = plain.try_lock();
    if let Some(counts) = counts() {
        let number = site(counts, caller);
        if !plain.is_plain() {
            add(&counts.sites[number].left_alone, 1);
        } else if let Some(word) = counting::tried(counts, number, answer, now) {
            plain.held().store(word, Relaxed);
        }
    }
    answer
}

pub unsafe extern "C-unwind" fn unlocked(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_unlock.
    let plain = unsafe { ProgramMutex::new(mutex) };
    let ended = plain.is_plain().then(|| let_go(plain)).flatten();
    // SAFETY: as above. From here on somebody else may have destroyed the mutex.
    let answer = unsafe { real::unlock(mutex) };
    if let Some((counts, held, at)) = ended {
        held.ended(counts, at);
    }
    answer
}

/// Takes out of the lock since when it is held. Nothing where a thread other than its holder unlocks it at the same time.
fn let_go(plain: ProgramMutex) -> Option<(&'static CountsFile, Acquisition, u64)> {
    let held = Acquisition::of(plain.held().load(Relaxed))?;
    let counts = counts()?;
    plain.held().store(Acquisition::NOT, Relaxed);
    Some((counts, held, now()))
}

pub unsafe extern "C-unwind" fn waited(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_cond_wait.
    between(unsafe { ProgramMutex::new(mutex) }, caller, || unsafe {
        real::cond_wait(condition, mutex)
    })
}

pub unsafe extern "C-unwind" fn waited_until(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_cond_timedwait.
    between(unsafe { ProgramMutex::new(mutex) }, caller, || unsafe {
        real::cond_timed_wait(condition, mutex, until)
    })
}

pub unsafe extern "C-unwind" fn waited_by_clock(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_cond_clockwait.
    between(unsafe { ProgramMutex::new(mutex) }, caller, || unsafe {
        real::cond_clock_wait(condition, mutex, clock, until)
    })
}

/// Around a wait for a condition, which gives the lock back and takes it again. A thread that is cancelled there leaves
/// without the second half, and its cleanup's unlock finds nobody who is counted.
fn between(plain: ProgramMutex, caller: usize, wait: impl FnOnce() -> c_int) -> c_int {
    if !plain.is_plain() {
        return wait();
    }
    if let Some((counts, held, at)) = let_go(plain) {
        held.ended(counts, at);
    }
    let answer = wait();
    if let Some(counts) = counts() {
        plain.held().store(
            counting::reacquired(counts, site(counts, caller), now()),
            Relaxed,
        );
    }
    answer
}
