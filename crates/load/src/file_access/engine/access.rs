//! What every engine does, and what it does it with.

use std::io;

/// `O_DIRECT` wants buffers aligned to the device's blocks; none here has larger ones than a page.
const ALIGNMENT: usize = 4096;

/// One access that an engine is to carry out.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Where.
    pub offset: u64,
    /// Whether the slot's buffer is written there, or filled from there.
    pub writes: bool,
}

/// Carries out accesses, each in a slot with a buffer of a block's length.
pub trait Engine: Send {
    /// The buffer of a slot with nothing under way.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Begins an access; an engine without a queue carries it out.
    fn begin(&mut self, slot: usize, access: Access) -> io::Result<()>;

    /// Waits for the end of an access; returns its slot.
    fn end(&mut self) -> io::Result<usize>;
}

/// A buffer that begins at a multiple of `ALIGNMENT`.
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    first: usize,
    /// How long it is.
    pub length: usize,
}

impl AlignedBuffer {
    /// A buffer of this length.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT];
        let first = bytes.as_ptr().align_offset(ALIGNMENT);
        Self {
            bytes,
            first,
            length,
        }
    }

    /// Its bytes.
    pub fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.first..self.first + self.length]
    }
}

/// An access that moved less than a block did not reach what was asked for.
pub fn whole(moved: usize, block: usize) -> io::Result<()> {
    if moved == block {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{moved} bytes of {block} were moved"),
        ))
    }
}
