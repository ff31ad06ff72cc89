//! The functions that stand behind ours: glibc's, or those of another library that was preloaded after this one.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

unsafe extern "C" {
    // The libc crate has it for other systems only. dlvsym(3)
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// One of the real functions.
pub struct Function {
    name: &'static CStr,
    version: Option<&'static CStr>,
    address: AtomicPtr<c_void>,
}

impl Function {
    const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self {
            name,
            version,
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Its address, or that of `missing` where this system has none; looked up once.
    pub fn address(&self) -> *mut c_void {
        let there = self.address.load(Relaxed);
        if !there.is_null() {
            return there;
        }
        // SAFETY: the string ends in a zero; looking up allocates only where it fails.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        let address = self.version.map_or(next, |version| {
            // SAFETY: as above.
            let exact = unsafe { dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) };
            // An interposer behind this one has no versions, and must not be passed over.
            if exact.is_null() || object_of(exact) != object_of(next) {
                next
            } else {
                exact
            }
        });
        let address = if address.is_null() {
            missing as *mut c_void
        } else {
            address
        };
        self.address.store(address, Relaxed);
        address
    }
}

/// Where the library that holds an address begins.
fn object_of(address: *mut c_void) -> *mut c_void {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is there to be written, and all zero is a value of it.
    unsafe {
        libc::dladdr(address, info.as_mut_ptr());
        info.assume_init().dli_fbase
    }
}

/// For functions that this glibc does not have: nobody can have linked against them.
extern "C-unwind" fn missing() -> c_int {
    libc::ENOSYS
}

pub static LOCK: Function = Function::new(c"pthread_mutex_lock", None);
pub static TRY_LOCK: Function = Function::new(c"pthread_mutex_trylock", None);
pub static TIMED_LOCK: Function = Function::new(c"pthread_mutex_timedlock", None);
pub static CLOCK_LOCK: Function = Function::new(c"pthread_mutex_clocklock", None);
pub static UNLOCK: Function = Function::new(c"pthread_mutex_unlock", None);
// The default version: an older one, of condition variables without clocks, stands first in the library.
pub static COND_WAIT: Function = Function::new(c"pthread_cond_wait", Some(c"GLIBC_2.3.2"));
pub static COND_TIMED_WAIT: Function =
    Function::new(c"pthread_cond_timedwait", Some(c"GLIBC_2.3.2"));
pub static COND_CLOCK_WAIT: Function = Function::new(c"pthread_cond_clockwait", None);

macro_rules! calls {
    ($($(#[$says:meta])* $name:ident($function:ident: $($argument:ident: $of:ty),*);)*) => {$(
        $(#[$says])*
        ///
        /// # Safety
        /// As for the function of that name.
        pub unsafe fn $name($($argument: $of),*) -> c_int {
            let real: unsafe extern "C-unwind" fn($($of),*) -> c_int =
                // SAFETY: glibc declares the function with these arguments; `missing` takes no notice of them.
                unsafe { core::mem::transmute($function.address()) };
            // SAFETY: the caller's promise is the function's own.
            unsafe { real($($argument),*) }
        }
    )*};
}

calls! {
    /// `pthread_mutex_lock`
    lock(LOCK: mutex: *mut pthread_mutex_t);
    /// `pthread_mutex_trylock`
    try_lock(TRY_LOCK: mutex: *mut pthread_mutex_t);
    /// `pthread_mutex_timedlock`
    timed_lock(TIMED_LOCK: mutex: *mut pthread_mutex_t, until: *const timespec);
    /// `pthread_mutex_clocklock`
    clock_lock(CLOCK_LOCK: mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec);
    /// `pthread_mutex_unlock`
    unlock(UNLOCK: mutex: *mut pthread_mutex_t);
    /// `pthread_cond_wait`
    cond_wait(COND_WAIT: condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    /// `pthread_cond_timedwait`
    cond_timed_wait(
        COND_TIMED_WAIT: condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    );
    /// `pthread_cond_clockwait`
    cond_clock_wait(
        COND_CLOCK_WAIT: condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec
    );
}
