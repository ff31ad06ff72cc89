//! A file as memory: what is not there yet comes by a page fault.
#![allow(unsafe_code)] // a mapping is an address; each use says why it stays valid

use std::ffi::c_void;
use std::fs::File;
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::access::{Access, AlignedBuffer, Engine};

/// A mapped file. A block is copied, as a call would copy it.
pub struct Mapping {
    address: *mut c_void,
    length: usize,
    buffer: AlignedBuffer,
}

// SAFETY: the mapping belongs to this value alone, and any thread may use an address of its process.
unsafe impl Send for Mapping {}

impl Mapping {
    pub fn new(file: &File, bytes: u64, block: usize) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let writable = rustix::fs::fcntl_getfl(file)?.contains(rustix::fs::OFlags::RDWR);
        let protection = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let mapped = Self {
            address,
            length,
            buffer: AlignedBuffer::new(block),
        };
        // SAFETY: exactly the mapping above; the advice changes no content.
        unsafe { madvise(address, length, Advice::Random)? };
        Ok(mapped)
    }
}

impl Engine for Mapping {
    fn buffer(&mut self, _slot: usize) -> &mut [u8] {
        self.buffer.get()
    }

    fn begin(&mut self, _slot: usize, access: Access) -> io::Result<()> {
        let block = self.buffer.length;
        let offset = usize::try_from(access.offset).map_err(io::Error::other)?;
        if offset + block > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let buffer = self.buffer.get().as_mut_ptr();
        // SAFETY: the block lies inside the mapping, which lives until `drop`; the buffer is another allocation of a
        // block's length. Nobody else writes this file: each job has its own. A mapping without PROT_WRITE is never
        // written, since a drive without writes asks for none.
        unsafe {
            let place = self.address.cast::<u8>().add(offset);
            if access.writes {
                std::ptr::copy_nonoverlapping(buffer, place, block);
            } else {
                std::ptr::copy_nonoverlapping(place, buffer, block);
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<usize> {
        Ok(0)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, and nothing borrowed from it is left.
        let _ = unsafe { munmap(self.address, self.length) };
    }
}
