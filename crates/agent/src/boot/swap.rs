//! Swap devices.

use std::ffi::CString;
use std::io;

/// Begins to use a device that `mkswap` has formatted.
#[allow(unsafe_code)] // no safe wrapper has this call
pub fn on(device: &str) -> io::Result<()> {
    let path = CString::new(device)?;
    // SAFETY: the path is a terminated string that outlives the call, which only reads it.
    let done = unsafe { libc::swapon(path.as_ptr(), 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
