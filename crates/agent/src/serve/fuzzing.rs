//! Readers of foreign bytes as functions of bytes: for the fuzzers in `fuzz/`, and for the tests that read their corpora.

use fairtrial_protocol::CHUNK_BYTES;

use super::frame::{self, Frame};
use super::undo::journal::{outstanding, whole_lines};

/// What a controller sends.
pub fn frames(mut bytes: &[u8]) {
    while let Ok(Some((frame, _))) = frame::read(&mut bytes) {
        if let Frame::Chunk { bytes, .. } = frame {
            assert!(bytes.len() <= CHUNK_BYTES);
        }
    }
}

/// What stands in an undo journal.
pub fn journal(bytes: &[u8]) {
    let _ = outstanding(whole_lines(bytes));
}

#[cfg(test)]
mod tests;
