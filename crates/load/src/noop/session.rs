//! One client: bytes in, whole packets out of them, canned answers back.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::answers;

/// A packet's length and number.
const HEADER: usize = 4;

/// Longest packet taken: a client that sends more is let go, so that memory stays bounded.
const PACKET_LIMIT: usize = 1 << 20;

/// Taken from the socket at once.
const CHUNK: usize = 16 * 1024;

/// A client's connection.
pub struct NoopConnection {
    socket: UnixStream,
    received: Vec<u8>,
    is_logged_in: bool,
    statements: u32,
}

impl NoopConnection {
    /// Greets; `None` if the client has gone.
    pub fn begin(mut socket: UnixStream) -> Option<Self> {
        socket.write_all(&answers::greeting()).ok()?;
        Some(Self {
            socket,
            received: Vec::new(),
            is_logged_in: false,
            statements: 0,
        })
    }

    /// Answers what has come; `false` when the session is over.
    pub fn turn(&mut self) -> bool {
        let mut chunk = [0; CHUNK];
        match self.socket.read(&mut chunk) {
            Ok(0) => return false,
            Ok(length) => self.received.extend_from_slice(&chunk[..length]),
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        let mut out = Vec::new();
        let mut begin = 0;
        while let Some((sequence, payload)) = packet(&self.received[begin..]) {
            begin += HEADER + payload.len();
            if !self.is_logged_in {
                self.is_logged_in = true;
                answers::ok(&mut out, sequence.wrapping_add(1));
            } else if !answers::command(&mut out, payload, &mut self.statements) {
                return false;
            }
        }
        self.received.drain(..begin);
        // A client that does not take its answers is let go: none of ours leaves a buffer's worth unread.
        self.received.len() <= PACKET_LIMIT && self.socket.write_all(&out).is_ok()
    }
}

/// The first whole packet's number and payload.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let header = bytes.get(..HEADER)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    Some((header[3], bytes.get(HEADER..HEADER + length)?))
}
