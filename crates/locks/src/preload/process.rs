//! What the library has of the process: its generation, sleeping and waking, the clock, words on standard error.

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::OnceLock;

const PAGE: usize = 4096;
const FIRST: u32 = 1;
const UNDER_WAY: u32 = u32::MAX;
const LOOKS: usize = 10; // for a second: a handler of a signal would wait for the thread that it stopped
static BETWEEN_LOOKS: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A page that the kernel empties in a child of fork(2), however it was forked; null: there is none.
static GENERATION: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The same number, which a child inherits.
static LATEST: AtomicU32 = AtomicU32::new(FIRST);
/// Gives a forked child a file of counts of its own.
static IN_CHILD: OnceLock<fn() -> Result<(), c_int>> = OnceLock::new();

/// Prepares `generation`, and what a forked child does before it counts; false where the kernel cannot (before Linux 4.14).
pub fn tell_generations(in_child: fn() -> Result<(), c_int>) -> bool {
    let _ = IN_CHILD.set(in_child);
    let Some(page) = anonymous(PAGE, libc::MAP_PRIVATE) else {
        return false;
    };
    // SAFETY: the page was mapped right above.
    if unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0 {
        return false;
    }
    let page: *mut AtomicU32 = page.cast();
    // SAFETY: it is there for good, aligned and zero.
    unsafe { &*page }.store(FIRST, Release);
    GENERATION.store(page, Release);
    true
}

/// A number that no forked child shares with its parent; 0 in a process that was not forked since it was executed.
pub fn generation() -> u16 {
    number(child_number().unwrap_or_else(next))
}

/// Whether this process has its number, and a file of counts of its own if it counts; waits for it a while.
pub fn is_settled() -> bool {
    child_number().is_some()
}

fn child_number() -> Option<u32> {
    // SAFETY: null, or the page that is never unmapped.
    let Some(page) = (unsafe { GENERATION.load(Acquire).as_ref() }) else {
        return Some(FIRST);
    };
    match page.load(Acquire) {
        0 | UNDER_WAY => forked(page),
        value => Some(value),
    }
}

fn next() -> u32 {
    LATEST.load(Acquire).wrapping_add(1).max(FIRST)
}

#[allow(clippy::cast_possible_truncation)] // 65,536 generations on, nobody waits any more
fn number(value: u32) -> u16 {
    (value - FIRST) as u16
}

/// The first look in a forked child: whoever comes first gives it its number and a file of counts of its own, and others
/// wait for that, or their counts would go into the parent's.
#[cold]
fn forked(page: &AtomicU32) -> Option<u32> {
    match page.compare_exchange(0, UNDER_WAY, AcqRel, Acquire) {
        Ok(_) => {
            let fresh = next();
            if let Some(act) = IN_CHILD.get() {
                let _ = errno_kept(act);
            }
            LATEST.store(fresh, Release);
            page.store(fresh, Release);
            wake(page);
            Some(fresh)
        }
        Err(UNDER_WAY) => (0..LOOKS)
            .map(|_| {
                futex(page, libc::FUTEX_WAIT, UNDER_WAY, &raw const BETWEEN_LOOKS);
                page.load(Acquire)
            })
            .find(|value| *value != UNDER_WAY),
        Err(other) => Some(other),
    }
}

/// Memory of zeroes.
pub fn anonymous(bytes: usize, flags: c_int) -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: asks for new memory and touches none that is there.
    let address = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            bytes,
            access,
            flags | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address)
}

/// Does it, and leaves `errno` as it was: functions of pthreads do not touch it, and programs rely on that.
pub fn errno_kept<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: this thread's own, which is always there.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let answer = act();
    // SAFETY: as above.
    unsafe { errno.write(before) };
    answer
}

/// Sleeps while `word` is `value`, until `wake`, or for no reason.
pub fn sleep(word: &AtomicU32, value: u32) {
    futex(word, libc::FUTEX_WAIT, value, core::ptr::null());
}

/// Wakes all who sleep there.
pub fn wake(word: &AtomicU32) {
    futex(
        word,
        libc::FUTEX_WAKE,
        i32::MAX.cast_unsigned(),
        core::ptr::null(),
    );
}

fn futex(word: &AtomicU32, operation: c_int, value: u32, limit: *const libc::timespec) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is there, and the limit is null, which is none, or a constant. futex(2)
    errno_kept(|| unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit)
    });
}

/// Nanoseconds of the monotonic clock.
#[allow(clippy::cast_sign_loss)] // neither part is ever negative
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is there to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// This thread's number, as glibc writes it into a mutex.
#[allow(clippy::cast_possible_truncation)] // the kernel's are 22 bits wide
pub fn thread() -> c_int {
    // SAFETY: asks for nothing but the number.
    let number: c_long = unsafe { libc::syscall(libc::SYS_gettid) };
    number as c_int
}

/// One line on standard error, and the end: what was asked for cannot be, so nothing is measured by mistake.
pub fn refuse(said: core::fmt::Arguments<'_>) -> ! {
    let mut line = Complaint {
        text: [0; 1024],
        used: 0,
    };
    let _ = core::fmt::write(&mut line, format_args!("libfairtrial_locks.so: {said}"));
    line.text[line.used] = b'\n';
    // SAFETY: the buffer is one byte longer than what is used.
    unsafe {
        libc::write(
            libc::STDERR_FILENO,
            line.text.as_ptr().cast(),
            line.used + 1,
        );
        libc::_exit(2)
    }
}

struct Complaint {
    text: [u8; 1024],
    used: usize,
}

impl core::fmt::Write for Complaint {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes().take(self.text.len() - 1 - self.used) {
            self.text[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}
