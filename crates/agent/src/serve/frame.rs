//! Bytes to frames and back: JSON lines, and raw chunks behind a chunk header.

use std::io::{self, BufRead, Read as _};

use fairtrial_protocol::CHUNK_BYTES;
use fairtrial_protocol::event::Event;
use fairtrial_protocol::request::{ChunkHeader, Request};
use serde_json::Value;

/// Longest line: a `spawn` carries a study's text on standard input, nothing else comes near.
const LINE_BYTES: u64 = 8 << 20;

/// Most values in a line: each takes up to 700 bytes here, and a message has some dozens of them, or a word for each
/// argument of a command.
const VALUES: usize = 1 << 16;

/// What came in.
#[derive(Debug, PartialEq)]
pub enum Frame {
    /// A request.
    Request(Request),
    /// Bytes of a `put`.
    Chunk {
        /// Number of the `put`.
        id: u64,
        /// At most [`CHUNK_BYTES`].
        bytes: Vec<u8>,
    },
}

/// Why no frame can be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream failed.
    #[error("cannot read the stream")]
    Stream(#[from] io::Error),
    /// A line is not a message.
    #[error("not a message of this protocol: {0}")]
    Message(#[from] serde_json::Error),
    /// A line is too long.
    #[error("a line is longer than {LINE_BYTES} bytes")]
    Long,
    /// A line holds too many values.
    #[error("a line of more than {VALUES} values")]
    Crowded,
    /// A chunk is too long.
    #[error("a chunk of {0} bytes is longer than {CHUNK_BYTES}")]
    Chunk(usize),
}

/// Reads the next frame, and how many bytes it was; `None` at the end of the stream.
pub fn read(stream: &mut impl BufRead) -> Result<Option<(Frame, usize)>, FrameError> {
    let mut line = Vec::new();
    stream
        .by_ref()
        .take(LINE_BYTES)
        .read_until(b'\n', &mut line)?;
    match line.last() {
        Some(b'\n') => {}
        Some(_) if line.len() as u64 == LINE_BYTES => return Err(FrameError::Long),
        _ => return Ok(None), // the end, within a line or between two
    }
    if values(&line) > VALUES {
        return Err(FrameError::Crowded);
    }
    let message: Value = serde_json::from_slice(&line)?;
    if message.get("request").is_some() || message.get("chunk").is_none() {
        let request = Frame::Request(serde_json::from_value(message)?);
        return Ok(Some((request, line.len())));
    }
    let header: ChunkHeader = serde_json::from_value(message)?;
    if header.chunk > CHUNK_BYTES {
        return Err(FrameError::Chunk(header.chunk));
    }
    let mut bytes = vec![0; header.chunk];
    stream.read_exact(&mut bytes)?;
    let length = line.len() + bytes.len();
    let id = header.id;
    Ok(Some((Frame::Chunk { id, bytes }, length)))
}

/// How many values a line may hold: one begins, or a next one, at each of these outside of texts.
fn values(line: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' | b',' | b':' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

/// An event as bytes.
pub fn event(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).expect("events are plain data");
    line.push(b'\n');
    line
}

/// A chunk as bytes, header included.
pub fn chunk(id: u64, bytes: &[u8]) -> Vec<u8> {
    let header = ChunkHeader {
        id,
        chunk: bytes.len(),
    };
    let mut frame = serde_json::to_vec(&header).expect("headers are plain data");
    frame.push(b'\n');
    frame.extend_from_slice(bytes);
    frame
}

#[cfg(test)]
mod tests;
