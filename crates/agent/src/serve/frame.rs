//! Bytes to frames and back: JSON lines, and raw chunks behind a chunk header.

use std::io::{self, BufRead, Read as _};

use fairtrial_protocol::CHUNK_BYTES;
use fairtrial_protocol::event::Event;
use fairtrial_protocol::request::{ChunkHeader, Request};
use serde::Deserialize;

/// Longest line: a `spawn` carries a study's text on standard input, nothing else comes near.
const LINE_BYTES: u64 = 8 << 20;

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
    /// A chunk is too long.
    #[error("a chunk of {0} bytes is longer than {CHUNK_BYTES}")]
    Chunk(usize),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Chunk(ChunkHeader),
    Request(serde_json::Value),
}

/// Reads the next frame; `None` at the end of the stream.
pub fn read(stream: &mut impl BufRead) -> Result<Option<Frame>, FrameError> {
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
    match serde_json::from_slice(&line)? {
        Line::Chunk(header) if header.chunk > CHUNK_BYTES => Err(FrameError::Chunk(header.chunk)),
        Line::Chunk(header) => {
            let mut bytes = vec![0; header.chunk];
            stream.read_exact(&mut bytes)?;
            Ok(Some(Frame::Chunk {
                id: header.id,
                bytes,
            }))
        }
        Line::Request(value) => Ok(Some(Frame::Request(serde_json::from_value(value)?))),
    }
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
mod tests {
    use super::*;
    use fairtrial_protocol::request::{Ping, Put};

    fn frames(mut bytes: &[u8]) -> Vec<Frame> {
        std::iter::from_fn(|| read(&mut bytes).expect("the protocol")).collect()
    }

    #[test]
    fn requests_and_chunks_alternate_and_chunks_may_hold_anything() {
        let mut bytes = Vec::new();
        bytes.extend(b"{\"request\":\"put\",\"id\":1,\"path\":\"/f\",\"bytes\":9,\"mode\":420}\n");
        bytes.extend(chunk(1, b"{\"id\":2}\n"));
        bytes.extend(b"{\"request\":\"ping\",\"id\":2}\n");
        let put = Put {
            id: 1,
            path: "/f".to_owned(),
            bytes: 9,
            mode: 420,
        };
        let expected = [
            Frame::Request(Request::Put(put)),
            Frame::Chunk {
                id: 1,
                bytes: b"{\"id\":2}\n".to_vec(),
            },
            Frame::Request(Request::Ping(Ping { id: 2 })),
        ];
        assert_eq!(frames(&bytes), expected);
    }

    #[test]
    fn a_stream_that_ends_within_a_line_has_ended() {
        assert_eq!(frames(b"{\"request\":\"pi"), []);
    }

    #[test]
    fn a_stream_that_ends_within_a_chunk_has_failed() {
        let bytes = chunk(1, b"whole");
        let read = read(&mut &bytes[..bytes.len() - 1]);
        assert!(matches!(read, Err(FrameError::Stream(_))));
    }

    #[test]
    fn what_is_no_message_is_said() {
        for (line, expected) in [
            (&b"GET / HTTP/1.1\n"[..], "not a message"),
            (b"{\"request\":\"later\",\"id\":1}\n", "later"),
            (b"{\"request\":\"get\",\"id\":1}\n", "path"),
            (b"{\"id\":1,\"chunk\":65537}\n", "65537"),
        ] {
            let error = read(&mut &*line).expect_err("no message").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let endless = vec![b'x'; usize::try_from(LINE_BYTES).expect("fits") + 1];
        assert!(matches!(read(&mut &endless[..]), Err(FrameError::Long)));
    }
}
