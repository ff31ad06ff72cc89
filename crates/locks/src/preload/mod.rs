//! What stands in for glibc's functions once the library is preloaded.
//!
//! Every name jumps through a slot. At first the slots lead to looking up the real functions, then to those; the
//! constructor sets the few that the asked kind changes. So an early call, from another library's constructor, is
//! passed through, and a kind costs nothing where it changes nothing.
#![allow(unsafe_code)] // C's interfaces are addresses; each use says why they are good
#![cfg_attr(not(feature = "preload"), allow(dead_code))] // without it nothing has the names that programs look for

mod counted;
mod counts;
mod mutex;
mod patch;
mod process;
mod real;

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::pthread_mutex_t;

use crate::algorithm::{Adaptive, Algorithm, NoObserver, PassThrough};
use crate::announcement::announcement;
use crate::config::{self, Config, FastMutexPolicy, WaitPolicy};
use crate::fast::{FastConstant, FastLocal, FastPublished, Off};
use crate::queue::Ticket;

use mutex::{FastMutex, ProgramMutex, SPINS};
use real::Function;

unsafe extern "C" {
    // The libc crate has it for other systems only. secure_getenv(3)
    fn secure_getenv(name: *const core::ffi::c_char) -> *mut core::ffi::c_char;
}

type Entry = unsafe extern "C-unwind" fn();
type Locking = unsafe extern "C-unwind" fn(*mut pthread_mutex_t, usize) -> c_int;

/// A name that programs call, its slot, and what the slot leads to before the real function is known.
/// `$caller` is the register behind the last argument: it is given the address to which the call returns.
macro_rules! entries {
    ($($name:ident $slot:ident $early:ident $caller:literal;)*) => {$(
        static $slot: AtomicPtr<c_void> = AtomicPtr::new($early as *mut c_void);

        // SAFETY: leaves every argument and the stack as they are.
        #[unsafe(naked)]
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                concat!("mov ", $caller, ", [rsp]"),
                "jmp qword ptr [rip + {slot}]",
                slot = sym $slot
            )
        }

        // SAFETY: saves the arguments around a call, with the stack aligned to 16 bytes.
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $early() {
            core::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8",
                "call {resolve}",
                "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp qword ptr [rip + {slot}]",
                resolve = sym resolve,
                slot = sym $slot
            )
        }
    )*};
}

entries! {
    pthread_mutex_lock LOCK early_lock "rsi";
    pthread_mutex_trylock TRY_LOCK early_try_lock "rsi";
    pthread_mutex_timedlock TIMED_LOCK early_timed_lock "rdx";
    pthread_mutex_clocklock CLOCK_LOCK early_clock_lock "rcx";
    pthread_mutex_unlock UNLOCK early_unlock "rsi";
    pthread_cond_wait COND_WAIT early_cond_wait "rdx";
    pthread_cond_timedwait COND_TIMED_WAIT early_cond_timed_wait "rcx";
    pthread_cond_clockwait COND_CLOCK_WAIT early_cond_clock_wait "r8";
}

static FAST_MUTEX: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// What MySQL's own function jumps to.
// SAFETY: leaves the argument and the stack as they are.
#[unsafe(naked)]
unsafe extern "C-unwind" fn fast_mutex_entry() {
    core::arch::naked_asm!("mov rsi, [rsp]", "jmp qword ptr [rip + {slot}]", slot = sym FAST_MUTEX)
}

/// Every slot leads to the real function, unless it leads elsewhere by now.
extern "C" fn resolve() {
    let all: [(&AtomicPtr<c_void>, Entry, &Function); 8] = [
        (&LOCK, early_lock, &real::LOCK),
        (&TRY_LOCK, early_try_lock, &real::TRY_LOCK),
        (&TIMED_LOCK, early_timed_lock, &real::TIMED_LOCK),
        (&CLOCK_LOCK, early_clock_lock, &real::CLOCK_LOCK),
        (&UNLOCK, early_unlock, &real::UNLOCK),
        (&COND_WAIT, early_cond_wait, &real::COND_WAIT),
        (
            &COND_TIMED_WAIT,
            early_cond_timed_wait,
            &real::COND_TIMED_WAIT,
        ),
        (
            &COND_CLOCK_WAIT,
            early_cond_clock_wait,
            &real::COND_CLOCK_WAIT,
        ),
    ];
    for (slot, early, function) in all {
        let _ = slot.compare_exchange(early as *mut c_void, function.address(), Relaxed, Relaxed);
    }
}

#[cfg(feature = "preload")]
#[used]
#[unsafe(link_section = ".init_array")] // SAFETY: an array of functions without arguments that are needed
static BEGIN: extern "C" fn() = begin;

/// Before the program begins: reads the environment and puts it into effect.
extern "C" fn begin() {
    process::errno_kept(|| {
        resolve();
        let config = Config::read(variable)
            .unwrap_or_else(|mistake| process::refuse(format_args!("{mistake}")));
        let refused = mutex::unlike()
            .or_else(|| (!process::tell_generations(counts::of_child)).then_some("kernel"));
        let announced = announcement(&config, refused);
        if refused.is_none() {
            SPINS.store(config.spins, Relaxed);
            if config.counts {
                begin_counts(announced.text());
                count_all();
            }
            LOCK.store(locking(config) as *mut c_void, Relaxed);
            adaptive_when_timed(config);
        }
        fast_mutex(config, refused);
        counts::announce(&announced);
    });
}

/// Leads the slots of everything but `pthread_mutex_lock` to the functions that count.
fn count_all() {
    TRY_LOCK.store(counted::tried as *mut c_void, Relaxed);
    TIMED_LOCK.store(counted::timed as *mut c_void, Relaxed);
    CLOCK_LOCK.store(counted::clocked as *mut c_void, Relaxed);
    UNLOCK.store(counted::unlocked as *mut c_void, Relaxed);
    COND_WAIT.store(counted::waited as *mut c_void, Relaxed);
    COND_TIMED_WAIT.store(counted::waited_until as *mut c_void, Relaxed);
    COND_CLOCK_WAIT.store(counted::waited_by_clock as *mut c_void, Relaxed);
}

/// A variable's value; none in a program that runs with rights its user has not.
fn variable(name: &str) -> Option<&'static str> {
    let mut key = [0_u8; 64];
    key.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: the key ends in a zero; nobody changes the environment before the program begins.
    let value = unsafe { secure_getenv(key.as_ptr().cast()).as_ref() }?;
    // SAFETY: a value of the environment ends in a zero and stays.
    let value = unsafe { CStr::from_ptr(value) };
    match value.to_str() {
        Ok(text) => Some(text),
        Err(_) => process::refuse(format_args!("{name} is not UTF-8")),
    }
}

fn begin_counts(announced: &[u8]) {
    let mut path = [0_u8; 4096];
    let text = variable(config::COUNT).unwrap_or_default();
    let begun = match path.get_mut(..text.len()) {
        Some(to) if text.len() < 4096 => {
            to.copy_from_slice(text.as_bytes());
            CStr::from_bytes_until_nul(&path)
                .map_or(Err(libc::EINVAL), |path| counts::begin(path, announced))
        }
        _ => Err(libc::ENAMETOOLONG),
    };
    if let Err(number) = begun {
        // SAFETY: gives a text that stays until it is asked again.
        let why = unsafe { CStr::from_ptr(libc::strerror(number)) }.to_string_lossy();
        process::refuse(format_args!("FAIRTRIAL_LOCK_COUNT: {why}: {text}"));
    }
}

/// The function that takes a mutex.
fn locking(config: Config) -> Locking {
    match (config.kind, config.counts) {
        (WaitPolicy::PassThrough, false) => entered::<PassThrough>,
        (WaitPolicy::PassThrough, true) => counted::entered::<PassThrough>,
        (WaitPolicy::Adaptive, false) => entered::<Adaptive>,
        (WaitPolicy::Adaptive, true) => counted::entered::<Adaptive>,
        (WaitPolicy::Fast, false) => entered::<FastPublished>,
        (WaitPolicy::Fast, true) => counted::entered::<FastPublished>,
        (WaitPolicy::FastLocal, false) => entered::<FastLocal>,
        (WaitPolicy::FastLocal, true) => counted::entered::<FastLocal>,
        (WaitPolicy::FastConstant, false) => entered::<FastConstant>,
        (WaitPolicy::FastConstant, true) => counted::entered::<FastConstant>,
        (WaitPolicy::Ticket, false) => entered::<Ticket>,
        (WaitPolicy::Ticket, true) => counted::entered::<Ticket>,
    }
}

/// A mutex that is only ever locked with a time limit spins too.
fn adaptive_when_timed(config: Config) {
    counted::ADAPTS.store(config.kind == WaitPolicy::Adaptive, Relaxed);
    if config.kind == WaitPolicy::Adaptive && !config.counts {
        TIMED_LOCK.store(timed_adaptive as *mut c_void, Relaxed);
        CLOCK_LOCK.store(clocked_adaptive as *mut c_void, Relaxed);
    }
}

/// MySQL's own function, as it was asked for.
fn fast_mutex(config: Config, refused: Option<&str>) {
    let counts = config.counts && refused.is_none();
    let to: Locking = match (config.fast_mutex, counts) {
        (FastMutexPolicy::Unset, _) => return,
        (FastMutexPolicy::AsShipped, _) => {
            patch::address();
            return;
        }
        (FastMutexPolicy::Published, false) => fast_entered::<FastPublished>,
        (FastMutexPolicy::Published, true) => counted::fast_entered::<FastPublished>,
        (FastMutexPolicy::Off, false) => fast_entered::<Off>,
        (FastMutexPolicy::Off, true) => counted::fast_entered::<Off>,
        (FastMutexPolicy::Local, false) => fast_entered::<FastLocal>,
        (FastMutexPolicy::Local, true) => counted::fast_entered::<FastLocal>,
        (FastMutexPolicy::Constant, false) => fast_entered::<FastConstant>,
        (FastMutexPolicy::Constant, true) => counted::fast_entered::<FastConstant>,
    };
    FAST_MUTEX.store(to as *mut c_void, Relaxed);
    patch::replace(fast_mutex_entry);
}

/// `pthread_mutex_lock`, by algorithm.
unsafe extern "C-unwind" fn entered<A: Algorithm<ProgramMutex>>(
    mutex: *mut pthread_mutex_t,
    _caller: usize,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_lock.
    let plain = unsafe { ProgramMutex::new(mutex) };
    if plain.is_plain() {
        return A::lock(&plain, &mut NoObserver);
    }
    // SAFETY: as above.
    unsafe { real::lock(mutex) }
}

/// `my_pthread_fastmutex_lock`, by algorithm.
unsafe extern "C-unwind" fn fast_entered<A: Algorithm<FastMutex>>(
    mutex: *mut pthread_mutex_t,
    _caller: usize,
) -> c_int {
    // SAFETY: the server's promise to its own function.
    A::lock(&unsafe { FastMutex::new(mutex) }, &mut NoObserver)
}

unsafe extern "C-unwind" fn timed_adaptive(
    mutex: *mut pthread_mutex_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_timedlock.
    unsafe {
        ProgramMutex::new(mutex).adapt();
        real::timed_lock(mutex, until)
    }
}

unsafe extern "C-unwind" fn clocked_adaptive(
    mutex: *mut pthread_mutex_t,
    clock: libc::clockid_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the program's promise to pthread_mutex_clocklock.
    unsafe {
        ProgramMutex::new(mutex).adapt();
        real::clock_lock(mutex, clock, until)
    }
}
