//! Packets on a socket: three bytes of length, one of sequence, then the content.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use crate::reactor::ByteStream;

const HEADER: usize = 4;

/// A content of this length goes on in the next packet.
const CONTINUED: usize = 0xFF_FF_FF;

/// A connection's packets, and the buffers they are read into and written from.
pub struct Channel {
    stream: ByteStream,
    incoming: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
    packet: usize,
    sequence: u8,
}

impl Channel {
    /// Nothing has come or gone yet.
    pub fn new(stream: ByteStream) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            packet: 0,
            sequence: 0,
        }
    }

    /// Encrypts what follows. Nothing may be under way.
    pub async fn encrypt(self, config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        // Else it would be plain text that somebody slipped in, and be read as an encrypted answer.
        if self.taken < self.incoming.len() {
            let problem = "the server said more than its greeting before the encryption";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let stream = self.stream.encrypted(config, host).await?;
        Ok(Self { stream, ..self })
    }

    /// Another limit for each wait; none for work of unknown length.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.stream.set_limit(limit);
    }

    /// Begins a command: its packet is the first of an exchange. Commands begun before one is sent go out together.
    pub fn command(&mut self, code: u8) -> &mut Vec<u8> {
        self.close_packet(); // it may need more numbers of its own exchange
        self.sequence = 0;
        let content = self.reply();
        content.push(code);
        content
    }

    /// Begins a packet that goes on with the exchange.
    pub fn reply(&mut self) -> &mut Vec<u8> {
        self.close_packet();
        self.packet = self.outgoing.len();
        self.outgoing.extend_from_slice(&[0, 0, 0, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
        &mut self.outgoing
    }

    /// Sends what was begun.
    pub async fn send(&mut self) -> io::Result<()> {
        self.close_packet();
        let sent = self.stream.send(&self.outgoing).await;
        self.outgoing.clear();
        self.packet = 0;
        sent
    }

    /// Says good-bye: a server need not wonder why a connection ended, nor log that it did.
    pub fn farewell(&mut self, message: &[u8]) {
        self.stream.farewell(message);
    }

    /// Writes the length of the packet that was begun. What is too long for one goes on in others, the last of which is
    /// shorter than a packet may be, and empty if need be.
    fn close_packet(&mut self) {
        while let Some(length) = self.outgoing.len().checked_sub(self.packet + HEADER) {
            let [low, middle, high, ..] = length.min(CONTINUED).to_le_bytes();
            self.outgoing[self.packet..self.packet + 3].copy_from_slice(&[low, middle, high]);
            if length < CONTINUED {
                break;
            }
            self.packet += HEADER + CONTINUED;
            let next = [0, 0, 0, self.sequence];
            self.outgoing.splice(self.packet..self.packet, next);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    /// The content of the next packet, waiting for it if need be.
    pub async fn next(&mut self) -> io::Result<&[u8]> {
        let content = loop {
            if let Some(content) = self.whole()? {
                break content;
            }
            self.stream
                .receive_after(&mut self.incoming, &mut self.taken)
                .await?;
        };
        self.sequence = self.incoming[content.start - 1].wrapping_add(1);
        self.taken = content.end;
        Ok(&self.incoming[content])
    }

    /// Where the next packet's content is, if all of it has come.
    fn whole(&self) -> io::Result<Option<Range<usize>>> {
        let Some(&[low, middle, high, _]) = self.incoming[self.taken..].first_chunk::<HEADER>()
        else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        if length == CONTINUED {
            let problem = "the server sent a packet of 16 MiB or more";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let start = self.taken + HEADER;
        Ok((self.incoming.len() >= start + length).then_some(start..start + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::remote::tests::meet_leaving;
    use crate::reactor::{block_on, tls_config};

    #[test]
    fn what_came_in_clear_is_not_read_as_an_encrypted_answer() {
        let encrypt = |said: &'static [u8]| async move {
            let mut channel = Channel::new(ByteStream::Recorded(io::Cursor::new(said.to_vec())));
            channel.next().await?;
            channel.encrypt(tls_config(None)?, "localhost").await?;
            Ok::<_, io::Error>(())
        };
        let (greeting, and_more) = (b"\x01\0\0\0\x0a", b"\x01\0\0\0\x0a\x01\0\0\x02\0");
        assert!(block_on(encrypt(greeting)).expect("a loop").is_ok());
        let refused = block_on(encrypt(and_more)).expect("a loop");
        assert!(refused.is_err_and(|error| error.to_string().contains("before the encryption")));
    }

    /// Length and number of each packet.
    fn packets(mut bytes: &[u8]) -> Vec<(usize, u8)> {
        let mut packets = Vec::new();
        while let Some((&[low, middle, high, number], rest)) = bytes.split_first_chunk() {
            let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
            packets.push((length, number));
            bytes = &rest[length..];
        }
        packets
    }

    #[test]
    fn what_is_too_long_for_a_packet_goes_on_in_the_next_and_later_commands_begin_anew() {
        const FULL: usize = CONTINUED;
        for (length, expected) in [
            (FULL - 1, &[(FULL - 1, 0)][..]),
            (FULL, &[(FULL, 0), (0, 1)]),
            (2 * FULL + 5, &[(FULL, 0), (FULL, 1), (5, 2)]),
        ] {
            let mut channel = Channel::new(ByteStream::Recorded(io::Cursor::default()));
            let content = channel.command(b'c');
            content.resize(HEADER + length, b'x');
            channel.command(b'c');
            channel.close_packet();
            assert_eq!(packets(&channel.outgoing), [expected, &[(1, 0)]].concat());
        }
    }

    #[test]
    fn what_a_server_said_before_it_left_is_the_answer_to_what_is_sent_then() {
        meet_leaving(b"\x03\0\0\0\xff\x87\x07", |address, gone| async move {
            let limit = Duration::from_mins(1);
            let stream = ByteStream::connect(&address, limit).await;
            let mut channel = Channel::new(stream.expect("connected"));
            gone.recv().expect("it has left");
            channel.command(0x0e);
            channel.send().await.expect("no error yet");
            let said = channel.next().await.expect("its last words");
            assert_eq!(said, b"\xff\x87\x07");
            channel.next().await.expect_err("it is gone");
        });
    }
}
