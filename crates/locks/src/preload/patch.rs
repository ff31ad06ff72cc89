//! MySQL's `my_pthread_fastmutex_lock`, replaced: the server calls it directly, so that no symbol of ours comes before it.

use core::ffi::{c_int, c_void};

use super::process;

const NAME: &core::ffi::CStr = c"my_pthread_fastmutex_lock";
const JUMP: usize = 13; // bytes of `jump_to`
const RTLD_DL_SYMENT: c_int = 1; // dlfcn.h
const SIZE_AT: usize = 16; // of st_size in Elf64_Sym

unsafe extern "C" {
    // The libc crate has no dladdr1(3).
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// Where the program has the function.
pub fn address() -> *mut c_void {
    // SAFETY: the name ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()) };
    if address.is_null() {
        process::refuse(format_args!(
            "FAIRTRIAL_LOCK_FASTMUTEX is for servers that export my_pthread_fastmutex_lock (MySQL 5.1 to 5.6), and \
             this program does not"
        ));
    }
    address
}

/// Overwrites the beginning of the function by a jump to `entry`.
pub fn replace(entry: unsafe extern "C-unwind" fn()) {
    let function = address();
    if size_of_function(function) < JUMP {
        process::refuse(format_args!(
            "my_pthread_fastmutex_lock is shorter than a jump: it cannot be replaced"
        ));
    }
    let page = 4096; // of x86-64
    let start = function as usize & !(page - 1);
    let bytes = (function as usize + JUMP).next_multiple_of(page) - start;
    let writable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: whole pages of the program's code, which stay executable; the function is long enough, and no other thread
    // runs before the program begins.
    let done = unsafe {
        libc::mprotect(start as *mut c_void, bytes, writable) == 0 && {
            core::ptr::copy_nonoverlapping(
                jump_to(entry as usize as u64).as_ptr(),
                function.cast::<u8>(),
                JUMP,
            );
            libc::mprotect(
                start as *mut c_void,
                bytes,
                libc::PROT_READ | libc::PROT_EXEC,
            ) == 0
        }
    };
    if !done {
        process::refuse(format_args!(
            "my_pthread_fastmutex_lock cannot be replaced: this system does not allow writing to code (SELinux: execmod)"
        ));
    }
}

/// `mov r11, address; jmp r11`: a register that a called function may change.
fn jump_to(address: u64) -> [u8; JUMP] {
    let mut code = [0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xE3];
    code[2..10].copy_from_slice(&address.to_le_bytes());
    code
}

fn size_of_function(function: *mut c_void) -> usize {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let mut symbol = core::ptr::null_mut::<c_void>();
    // SAFETY: both are there to be written.
    let status = unsafe { dladdr1(function, info.as_mut_ptr(), &raw mut symbol, RTLD_DL_SYMENT) };
    if status == 0 || symbol.is_null() {
        return 0;
    }
    // SAFETY: an Elf64_Sym of the program's own table.
    let size = unsafe {
        symbol
            .cast::<u8>()
            .add(SIZE_AT)
            .cast::<u64>()
            .read_unaligned()
    };
    usize::try_from(size).unwrap_or(0)
}
