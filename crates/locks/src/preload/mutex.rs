//! glibc's mutex from outside: its kind, and sixteen bytes of it that plain mutexes leave unused.
//!
//! `struct __pthread_mutex_s` (`bits/struct_mutex.h`) is part of the ABI, as programs are compiled with
//! its size and its initialisers: lock, count, owner, users, kind (at 16), spins, elision, list (24 to 40). The list
//! links the mutexes that a robust or priority-inheriting owner holds; every other kind leaves it as `init` made it, zero.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicI32, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use libc::{pthread_mutex_t, pthread_mutexattr_t};

use crate::algorithm::{RealMutex, SpinState};
use crate::queue::QueueMemory;

use super::{process, real};

const SIZE: usize = 40;
const OWNER: usize = 8;
const KIND: usize = 16;
const STATE: usize = 24; // of the algorithms: the queue's word, or the random state
const HELD: usize = 32; // of counting
// nptl/pthreadP.h
const NORMAL: c_int = 0;
const RECURSIVE: c_int = 1;
const ERROR_CHECK: c_int = 2;
const ADAPTIVE: c_int = 3;
const ROBUST: c_int = 16;
const INHERITS_PRIORITY: c_int = 32;
const SHARED: c_int = 128;
const NO_ELISION: c_int = 512; // set by any `settype` to normal

/// Where threads sleep, by lock and ticket. All that wait for one lock sleep in beds of their own, up to this many, so
/// that ten thousand are not woken for one; who is woken for another lock's sake looks, and sleeps again.
static BEDS: [AtomicU32; 16_384] = [const { AtomicU32::new(0) }; 16_384];
const HASH: usize = 0x9E37_79B9_7F4A_7C15; // 2^64 divided by the golden ratio (Knuth 6.4)

/// A mutex of the program's.
#[derive(Clone, Copy)]
pub struct ProgramMutex(*mut pthread_mutex_t);

/// How often to try before sleeping, from the environment.
pub static SPINS: AtomicU32 = AtomicU32::new(0);

impl ProgramMutex {
    /// # Safety
    /// `mutex` points to a mutex for as long as this is used.
    pub unsafe fn new(mutex: *mut pthread_mutex_t) -> Self {
        Self(mutex)
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        self.0.cast::<u8>().wrapping_add(offset).cast()
    }

    fn kind(&self) -> &AtomicI32 {
        // SAFETY: within the mutex, aligned, and glibc reads and writes it by whole words.
        unsafe { AtomicI32::from_ptr(self.at(KIND)) }
    }

    /// Whether it is of a kind that may be waited for in another way: plain or adaptive, of this process, not robust, no
    /// priorities, no elision.
    pub fn is_plain(self) -> bool {
        matches!(self.kind().load(Relaxed) & !NO_ELISION, NORMAL | ADAPTIVE)
    }

    fn queue(&self) -> &AtomicU64 {
        // SAFETY: within the mutex, aligned, unused by glibc for plain kinds, and only this library looks at it.
        unsafe { AtomicU64::from_ptr(self.at(STATE)) }
    }

    fn bed(&self, ticket: u16) -> &'static AtomicU32 {
        let first = (self.0 as usize).wrapping_mul(HASH) >> 48;
        &BEDS[(first + usize::from(ticket)) % BEDS.len()]
    }

    fn random_state(&self) -> &AtomicU32 {
        // SAFETY: as for `queue`; no process uses both.
        unsafe { AtomicU32::from_ptr(self.at(STATE)) }
    }

    /// Makes a plain mutex adaptive.
    pub fn adapt(self) {
        if self.is_plain() {
            self.make_adaptive();
        }
    }

    /// Since when it is held, as `counting` has it.
    pub fn held(&self) -> &AtomicU64 {
        // SAFETY: as for `queue`.
        unsafe { AtomicU64::from_ptr(self.at(HELD)) }
    }
}

impl RealMutex for ProgramMutex {
    fn try_lock(&self) -> c_int {
        // SAFETY: it points to a mutex, which is what `new` asks for.
        unsafe { real::try_lock(self.0) }
    }

    fn lock(&self) -> c_int {
        // SAFETY: as above.
        unsafe { real::lock(self.0) }
    }

    /// Unlocking a plain and an adaptive mutex is the same code, so this may happen at any time.
    fn make_adaptive(&self) {
        let kind = self.kind().load(Relaxed);
        if kind & ADAPTIVE == NORMAL {
            let _ = self
                .kind()
                .compare_exchange(kind, kind | ADAPTIVE, Relaxed, Relaxed);
        }
    }
}

impl SpinState for ProgramMutex {
    fn random(&self) -> u32 {
        self.random_state().load(Relaxed)
    }

    fn set_random(&self, state: u32) {
        self.random_state().store(state, Relaxed);
    }

    fn spins(&self) -> u32 {
        SPINS.load(Relaxed)
    }
}

impl QueueMemory for ProgramMutex {
    fn word(&self) -> u64 {
        self.queue().load(Acquire)
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.queue()
            .compare_exchange_weak(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    fn add(&self, value: u64) -> u64 {
        self.queue().fetch_add(value, AcqRel)
    }

    fn wakings(&self, ticket: u16) -> u32 {
        self.bed(ticket).load(Acquire)
    }

    fn park(&self, ticket: u16, expected: u32) {
        process::sleep(self.bed(ticket), expected);
    }

    fn wake(&self, ticket: u16) {
        self.bed(ticket).fetch_add(1, AcqRel);
        process::wake(self.bed(ticket));
    }

    fn generation(&self) -> u16 {
        process::generation()
    }

    fn looks(&self) -> u32 {
        SPINS.load(Relaxed)
    }
}

/// Makes an attribute ask for a kind.
type Ask = fn(*mut pthread_mutexattr_t);

/// Looks whether this glibc's mutexes are laid out as this file says. What is not, if anything.
pub fn unlike() -> Option<&'static str> {
    if size_of::<pthread_mutex_t>() != SIZE {
        return Some("size");
    }
    let kinds: [(c_int, Ask); 7] = [
        (NORMAL, |_| {}),
        (RECURSIVE, |kind| {
            settype(kind, libc::PTHREAD_MUTEX_RECURSIVE);
        }),
        (ERROR_CHECK, |kind| {
            settype(kind, libc::PTHREAD_MUTEX_ERRORCHECK);
        }),
        (ADAPTIVE, |kind| {
            settype(kind, libc::PTHREAD_MUTEX_ADAPTIVE_NP);
        }),
        (ROBUST, |kind| {
            // SAFETY: `probe` hands an initialised attribute, here and below.
            unsafe { libc::pthread_mutexattr_setrobust(kind, libc::PTHREAD_MUTEX_ROBUST) };
        }),
        (INHERITS_PRIORITY, |kind| {
            // SAFETY: as above.
            unsafe { libc::pthread_mutexattr_setprotocol(kind, libc::PTHREAD_PRIO_INHERIT) };
        }),
        (SHARED, |kind| {
            // SAFETY: as above.
            unsafe { libc::pthread_mutexattr_setpshared(kind, libc::PTHREAD_PROCESS_SHARED) };
        }),
    ];
    kinds
        .iter()
        .find_map(|(expected, ask)| probe(*expected, *ask))
}

fn settype(kind: *mut pthread_mutexattr_t, number: c_int) {
    // SAFETY: `probe` hands an initialised attribute.
    unsafe { libc::pthread_mutexattr_settype(kind, number) };
}

fn probe(expected: c_int, ask: Ask) -> Option<&'static str> {
    let mut memory = MaybeUninit::<pthread_mutex_t>::uninit();
    let mut attribute = MaybeUninit::<pthread_mutexattr_t>::uninit();
    // The bytes that are ours must be made zero by `init`, whatever was there before.
    // SAFETY: the memory is that large, and is initialised right below.
    unsafe { core::ptr::write_bytes(memory.as_mut_ptr().cast::<u8>(), 0xFF, SIZE) };
    // SAFETY: attribute and mutex are initialised before they are used, by the functions that are there for it.
    unsafe {
        libc::pthread_mutexattr_init(attribute.as_mut_ptr());
        ask(attribute.as_mut_ptr());
        libc::pthread_mutex_init(memory.as_mut_ptr(), attribute.as_ptr());
        libc::pthread_mutexattr_destroy(attribute.as_mut_ptr());
    }
    // SAFETY: it lives until the end of this function.
    let mutex = unsafe { ProgramMutex::new(memory.as_mut_ptr()) };
    let kind = mutex.kind().load(Relaxed) & !NO_ELISION;
    let is_as_expected = if expected >= ROBUST {
        kind & expected != 0
    } else {
        kind == expected
    };
    if !is_as_expected {
        return Some("kind");
    }
    if !mutex.is_plain() {
        return None;
    }
    let is_unused =
        |mutex: &ProgramMutex| mutex.queue().load(Relaxed) == 0 && mutex.held().load(Relaxed) == 0;
    if !is_unused(&mutex) {
        return Some("init");
    }
    // SAFETY: within the mutex; nobody else has it.
    let owner = || unsafe { mutex.at::<c_int>(OWNER).read_volatile() };
    if mutex.lock() != 0 || mutex.try_lock() != libc::EBUSY || owner() != process::thread() {
        return Some("owner");
    }
    let is_left_alone = is_unused(&mutex);
    mutex.make_adaptive();
    // SAFETY: it is a mutex that this thread holds.
    let unlocked = unsafe { real::unlock(mutex.0) };
    let is_free = unlocked == 0 && owner() == 0 && mutex.try_lock() == 0;
    // SAFETY: as above; nobody else has it.
    let is_done = is_free
        && unsafe { real::unlock(mutex.0) == 0 && libc::pthread_mutex_destroy(mutex.0) == 0 };
    if is_done && is_left_alone {
        None
    } else {
        Some("use")
    }
}

/// MySQL's fast mutex: `{ pthread_mutex_t mutex; uint spins; uint rng_state; }` (`my_pthread.h`, 5.1 to 5.6).
pub struct FastMutex(ProgramMutex);

impl FastMutex {
    /// # Safety
    /// `mutex` points to a fast mutex of MySQL's for as long as this is used.
    pub unsafe fn new(mutex: *mut pthread_mutex_t) -> Self {
        // SAFETY: it begins with the mutex.
        Self(unsafe { ProgramMutex::new(mutex) })
    }

    /// The mutex that it begins with.
    pub fn mutex(&self) -> &ProgramMutex {
        &self.0
    }
}

impl RealMutex for FastMutex {
    fn try_lock(&self) -> c_int {
        self.0.try_lock()
    }

    fn lock(&self) -> c_int {
        self.0.lock()
    }
}

impl SpinState for FastMutex {
    fn random(&self) -> u32 {
        // SAFETY: the second number behind the mutex.
        unsafe { AtomicU32::from_ptr(self.0.at(SIZE + 4)) }.load(Relaxed)
    }

    fn set_random(&self, state: u32) {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.0.at(SIZE + 4)) }.store(state, Relaxed);
    }

    /// 0 where the server has found one processor, or the mutex is not one of those that spin.
    fn spins(&self) -> u32 {
        // SAFETY: the first number behind the mutex.
        unsafe { AtomicU32::from_ptr(self.0.at(SIZE)) }.load(Relaxed)
    }
}
