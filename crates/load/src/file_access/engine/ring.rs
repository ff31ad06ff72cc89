//! `io_uring`: several accesses of one job under way.
#![allow(unsafe_code)] // the kernel takes addresses; each use says why they stay valid

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, types};

use super::access::{Access, AlignedBuffer, Engine, whole};

/// A file with a ring of its own.
pub struct RingEngine {
    queues: IoUring,
    file: File,
    buffers: Vec<AlignedBuffer>,
    /// Accesses whose buffers the kernel may use.
    lent: usize,
}

impl RingEngine {
    pub fn new(file: File, block: usize, depth: u32) -> io::Result<Self> {
        Ok(Self {
            queues: IoUring::new(depth)?,
            file,
            buffers: (0..depth).map(|_| AlignedBuffer::new(block)).collect(),
            lent: 0,
        })
    }
}

impl Engine for RingEngine {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers[slot].get()
    }

    fn begin(&mut self, slot: usize, access: Access) -> io::Result<()> {
        let file = types::Fd(self.file.as_raw_fd());
        let buffer = self.buffers[slot].get();
        let length = u32::try_from(buffer.len()).map_err(io::Error::other)?;
        let entry = if access.writes {
            opcode::Write::new(file, buffer.as_ptr(), length)
                .offset(access.offset)
                .build()
        } else {
            opcode::Read::new(file, buffer.as_mut_ptr(), length)
                .offset(access.offset)
                .build()
        };
        // SAFETY: the buffer belongs to the slot, which is not used again before its completion was taken, and `drop`
        // waits for every completion. The file is open as long as this value lives.
        unsafe { self.queues.submission().push(&entry.user_data(slot as u64)) }
            .map_err(io::Error::other)?;
        self.lent += 1;
        Ok(())
    }

    fn end(&mut self) -> io::Result<usize> {
        loop {
            // What has begun goes to the kernel at once, also where an access has ended already: its time counts.
            let wanted = usize::from(self.queues.completion().is_empty());
            if wanted > 0 || !self.queues.submission().is_empty() {
                match self.queues.submit_and_wait(wanted) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => drop(result?),
                }
            }
            if let Some(done) = self.queues.completion().next() {
                self.lent -= 1;
                let slot = usize::try_from(done.user_data()).map_err(io::Error::other)?;
                let moved = usize::try_from(done.result())
                    .map_err(|_| io::Error::from_raw_os_error(-done.result()))?;
                whole(moved, self.buffers[slot].length)?;
                return Ok(slot);
            }
        }
    }
}

impl Drop for RingEngine {
    fn drop(&mut self) {
        while self.lent > 0 {
            let waited = self.queues.submit_and_wait(1);
            let ended = self.queues.completion().count();
            self.lent -= ended.min(self.lent);
            if ended == 0 && waited.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                // The kernel may still write there: memory that is never given back harms nobody.
                std::mem::forget(std::mem::take(&mut self.buffers));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_goes_to_the_kernel_although_another_has_ended() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(8 * 4096).expect("blocks");
        let Ok(mut engine) = RingEngine::new(file, 4096, 4) else {
            eprintln!("no io_uring here");
            return;
        };
        let read = |slot: usize| {
            let offset = 4096 * slot as u64;
            (
                slot,
                Access {
                    offset,
                    writes: false,
                },
            )
        };
        for (slot, access) in [0, 1, 2].map(read) {
            engine.begin(slot, access).expect("begun");
        }
        engine.queues.submit_and_wait(3).expect("all have ended");
        engine.end().expect("read");
        let (slot, access) = read(3);
        engine.begin(slot, access).expect("begun");
        engine.end().expect("read");
        assert!(engine.queues.submission().is_empty());
    }
}
