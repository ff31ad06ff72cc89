//! The loopback network: servers listen there, and nothing else of a network exists in a guest.

use std::io;
use std::os::fd::AsRawFd as _;

use rustix::net::{AddressFamily, SocketType, socket};

/// Raises `lo`, which has its address as soon as it is up.
#[allow(unsafe_code)] // no safe wrapper sets an interface's flags
pub fn up() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: an all-zero request is a valid one; the name is shorter than its field and stays terminated.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open and the request outlives the call, which only reads it.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
