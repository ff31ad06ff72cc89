//! `pread` and `pwrite`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::access::{Access, AlignedBuffer, Engine, whole};

/// A file, read and written by calls.
pub struct Plain {
    file: File,
    buffer: AlignedBuffer,
}

impl Plain {
    pub fn new(file: File, block: usize) -> Self {
        Self {
            file,
            buffer: AlignedBuffer::new(block),
        }
    }
}

impl Engine for Plain {
    fn buffer(&mut self, _slot: usize) -> &mut [u8] {
        self.buffer.get()
    }

    fn begin(&mut self, _slot: usize, access: Access) -> io::Result<()> {
        let buffer = self.buffer.get();
        let moved = if access.writes {
            self.file.write_at(buffer, access.offset)?
        } else {
            self.file.read_at(buffer, access.offset)?
        };
        whole(moved, buffer.len())
    }

    fn end(&mut self) -> io::Result<usize> {
        Ok(0)
    }
}
