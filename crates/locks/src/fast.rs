//! MySQL's fast mutex (`mysys/thr_mutex.c` of 5.1 and 5.5) and the variants that MDEV-5081 proposes.
//!
//! Try a few times, ever longer apart, then sleep. The variants differ in which memory they touch meanwhile: the
//! published one writes its random state beside the lock after each try in vain, so that every waiting thread takes
//! the line away from the one that is about to unlock it.

use core::ffi::c_int;

use crate::algorithm::{Algorithm, Observer, RealMutex, SpinState};

const DELAY: u32 = 4; // MY_PTHREAD_FASTMUTEX_DELAY
const MULTIPLIER: u64 = 279_470_273; // park_rng: a power of it modulo MODULUS is the next state
const MODULUS: u64 = 4_294_967_291;
const HALF: f64 = 2_147_483_647.0; // it divides by 2^31 what goes up to 2^32, so factors reach 2, not 1
const SEED: u32 = 1;

/// As published: tries and random state are read and written beside the lock, each time.
pub struct FastPublished;

impl<R: RealMutex + SpinState> Algorithm<R> for FastPublished {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        let mut delay = DELAY;
        let mut tried = 0;
        while tried < real.spins() {
            if let Some(answer) = attempt(real, observer, tried, delay) {
                return answer;
            }
            let (state, more) = next(real.random());
            real.set_random(state);
            delay = more_of(delay, more);
            tried += 1;
        }
        sleep(real, observer, tried)
    }
}

/// The ticket's first variant: both in locals, the random state written back once.
pub struct FastLocal;

impl<R: RealMutex + SpinState> Algorithm<R> for FastLocal {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        let spins = real.spins();
        let mut state = real.random();
        let mut delay = DELAY;
        for tried in 0..spins {
            if let Some(answer) = attempt(real, observer, tried, delay) {
                if tried > 0 {
                    real.set_random(state);
                }
                return answer;
            }
            let (following, more) = next(state);
            state = following;
            delay = more_of(delay, more);
        }
        if spins > 0 {
            real.set_random(state);
        }
        sleep(real, observer, spins)
    }
}

/// The second variant: no randomness, the delay grows by what it grows by on average.
pub struct FastConstant;

impl<R: RealMutex + SpinState> Algorithm<R> for FastConstant {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        let spins = real.spins();
        let mut delay = DELAY;
        for tried in 0..spins {
            if let Some(answer) = attempt(real, observer, tried, delay) {
                return answer;
            }
            delay = more_of(delay, 1.0);
        }
        sleep(real, observer, spins)
    }
}

/// No spinning of its own, which is what a fast mutex does on one processor; glibc's adaptive mutex below it spins yet.
pub struct Off;

impl<R: RealMutex> Algorithm<R> for Off {
    fn lock<O: Observer>(real: &R, observer: &mut O) -> c_int {
        sleep(real, observer, 0)
    }
}

/// One try, and the delay where it was in vain.
fn attempt<R: RealMutex, O: Observer>(
    real: &R,
    observer: &mut O,
    tried: u32,
    delay: u32,
) -> Option<c_int> {
    let answer = real.try_lock();
    if answer != libc::EBUSY {
        return Some(answer);
    }
    if tried == 0 {
        observer.contended();
    }
    observer.spun();
    real.delay(delay);
    None
}

fn sleep<R: RealMutex, O: Observer>(real: &R, observer: &mut O, tried: u32) -> c_int {
    if tried == 0 {
        crate::algorithm::observed(real, observer)
    } else {
        real.lock()
    }
}

/// The state after `state`, and the factor it gives.
fn next(state: u32) -> (u32, f64) {
    let state = u64::from(if state == 0 { SEED } else { state });
    let state = u32::try_from(state * MULTIPLIER % MODULUS).unwrap_or(SEED);
    (state, f64::from(state) / HALF)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as C does it; a saturating cast of what is small
fn more_of(delay: u32, factor: f64) -> u32 {
    (f64::from(delay) + factor * f64::from(DELAY) + 1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C of the published generator, with its own types.
    fn park(state: u64) -> u64 {
        (state * 279_470_273) % 4_294_967_291
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut ours = 1;
        let mut theirs = 1;
        for _ in 0..10_000 {
            let (state, factor) = next(ours);
            theirs = park(theirs);
            assert_eq!(u64::from(state), theirs);
            assert!((0.0..2.0 + 1e-8).contains(&factor));
            ours = state;
        }
    }

    #[test]
    fn a_lock_nobody_waited_for_begins_as_an_initialised_one() {
        assert_eq!(next(0), next(1));
    }

    #[test]
    fn delays_grow_by_five_on_average() {
        let mut state = 1;
        let mut grown = 0_u64;
        for _ in 0..100_000 {
            let (following, factor) = next(state);
            grown += u64::from(more_of(DELAY, factor) - DELAY);
            state = following;
        }
        // Truncated to whole loops: half of one less than the mean of 1 to 9.
        assert!((430_000..=470_000).contains(&grown), "{grown}");
        assert_eq!(more_of(DELAY, 1.0) - DELAY, 5);
    }
}
