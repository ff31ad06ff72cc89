//! What an algorithm is given, and what it may do: wait, and then take the real lock.

use core::ffi::c_int;
use core::hint::spin_loop;

/// The mutex that stays the lock of record. Answers are those of pthreads: 0, or an error number.
pub trait RealMutex {
    /// `pthread_mutex_trylock`.
    fn try_lock(&self) -> c_int;
    /// `pthread_mutex_lock`, which may sleep.
    fn lock(&self) -> c_int;
    /// Makes the lock glibc's own adaptive one, for good.
    fn make_adaptive(&self) {}
    /// Keeps the processor busy for as long as the published `mutex_delay` does with the same number.
    fn delay(&self, loops: u32) {
        let mut sum = 0_u64;
        for step in 0..u64::from(loops) * DELAY_STEPS {
            sum = core::hint::black_box(sum.wrapping_add(step));
        }
    }
    /// A moment of a loop that waits for another thread.
    fn relax(&self) {
        spin_loop();
    }
}

const DELAY_STEPS: u64 = 50; // mysys/thr_mutex.c, mutex_delay

/// State of an algorithm's own, kept in the cache line of the lock. Nobody orders these accesses; that is the point.
pub trait SpinState {
    /// The random state, 0 in a lock that was never waited for.
    fn random(&self) -> u32;
    /// Writes it back.
    fn set_random(&self, state: u32);
    /// How often to try before sleeping, read where the algorithm as published reads it.
    fn spins(&self) -> u32;
}

/// Who wants to know what a waiting thread does.
pub trait Observer {
    /// The first try has failed: this thread waits.
    fn contended(&mut self);
    /// It has tried once more in vain.
    fn spun(&mut self);
}

/// Nobody.
pub struct NoObserver;

impl Observer for NoObserver {
    fn contended(&mut self) {}
    fn spun(&mut self) {}
}

/// A way to wait for a lock.
pub trait Algorithm<R> {
    /// Takes `real`; the answer is pthreads'.
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int;
}

/// What the real lock does by itself: the control.
pub struct PassThrough;

impl<R: RealMutex> Algorithm<R> for PassThrough {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        observed(real, observer)
    }
}

/// glibc's adaptive mutex, whatever kind the program asked for.
pub struct Adaptive;

impl<R: RealMutex> Algorithm<R> for Adaptive {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        real.make_adaptive();
        observed(real, observer)
    }
}

/// The real lock, with one look at whether it is free where somebody wants to know.
pub(crate) fn observed<R: RealMutex, O: Observer>(real: &R, observer: &mut O) -> c_int {
    if size_of::<O>() > 0 {
        let tried = real.try_lock();
        if tried != libc::EBUSY {
            return tried;
        }
        observer.contended();
    }
    real.lock()
}
