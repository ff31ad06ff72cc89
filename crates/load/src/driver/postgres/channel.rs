//! Messages on a stream: a tag, four bytes of length (their own included), then the body.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use crate::reactor::ByteStream;

const LENGTH: usize = 4;
const HEADER: usize = 1 + LENGTH;

/// What a message may hold: a server sends up to 1 GiB (`MaxAllocSize`), and each connection would keep as much.
const MESSAGE_LIMIT: usize = 64 << 20;

/// Asks for encryption (protocol 53.2.10).
const SSL_REQUEST: i32 = 80_877_103;

/// A connection's messages, and the buffers they are read into and written from.
pub struct Channel {
    stream: ByteStream,
    incoming: Vec<u8>,
    taken: usize,
    outgoing: MessageBuffer,
}

/// Messages on their way out.
#[derive(Debug, Default)]
pub struct MessageBuffer {
    bytes: Vec<u8>,
    /// Where the length of the message begun last stands.
    length: Option<usize>,
}

impl MessageBuffer {
    /// Begins a message; its body is what is appended until the next begins.
    pub fn message(&mut self, tag: u8) -> &mut Vec<u8> {
        self.close();
        self.bytes.push(tag);
        self.body()
    }

    /// Begins a message of the greeting, which has no tag.
    pub fn untagged(&mut self) -> &mut Vec<u8> {
        self.close();
        self.body()
    }

    fn body(&mut self) -> &mut Vec<u8> {
        self.length = Some(self.bytes.len());
        self.bytes.extend_from_slice(&[0; LENGTH]);
        &mut self.bytes
    }

    /// All messages, complete.
    pub fn close(&mut self) -> &[u8] {
        if let Some(start) = self.length.take() {
            // Statements and pieces of files stay far below the length's limit.
            let length = i32::try_from(self.bytes.len() - start).unwrap_or(i32::MAX);
            self.bytes[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
        }
        &self.bytes
    }

    /// Forgets them and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.length = None;
    }
}

impl Channel {
    /// Nothing has come or gone yet.
    pub fn new(stream: ByteStream) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            taken: 0,
            outgoing: MessageBuffer::default(),
        }
    }

    /// Encrypts what follows, if the server does that. Nothing may have been sent.
    pub async fn encrypt(mut self, config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let body = self.outgoing.untagged();
        body.extend_from_slice(&SSL_REQUEST.to_be_bytes());
        self.send().await?;
        self.stream.receive(&mut self.incoming).await?;
        // More than the one byte would be plain text that somebody slipped in before the encryption.
        if self.incoming != b"S" {
            return Err(io::Error::other("the server does not encrypt connections"));
        }
        self.incoming.clear();
        let stream = self.stream.encrypted(config, host).await?;
        Ok(Self { stream, ..self })
    }

    /// Another limit for each wait; none for work of unknown length.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.stream.set_limit(limit);
    }

    /// What goes out with the next send.
    pub fn outgoing(&mut self) -> &mut MessageBuffer {
        &mut self.outgoing
    }

    /// Sends what was begun.
    pub async fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.send(self.outgoing.close()).await;
        self.outgoing.clear();
        sent
    }

    /// Says good-bye: a server need not wonder why a connection ended, nor log that it did.
    pub fn farewell(&mut self, message: &[u8]) {
        self.stream.farewell(message);
    }

    /// The tag and body of the next message, waiting for it if need be.
    pub async fn next(&mut self) -> io::Result<(u8, &[u8])> {
        let (tag, body) = loop {
            if let Some(whole) = whole(&self.incoming, self.taken)? {
                break whole;
            }
            self.stream
                .receive_after(&mut self.incoming, &mut self.taken)
                .await?;
        };
        self.taken = body.end;
        Ok((tag, &self.incoming[body]))
    }
}

/// The tag of the message that begins at `start` and where its body is, if all of it has come.
fn whole(incoming: &[u8], start: usize) -> io::Result<Option<(u8, Range<usize>)>> {
    let Some(&[tag, a, b, c, d]) = incoming[start..].first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(LENGTH..=MESSAGE_LIMIT).contains(&length) {
        let problem = "the server sent a message of an impossible length, or of more than 64 MiB";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    let end = start + 1 + length;
    Ok((incoming.len() >= end).then_some((tag, start + HEADER..end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::remote::tests::meet_leaving;

    #[test]
    fn what_a_server_said_before_it_left_is_the_answer_to_what_is_sent_then() {
        meet_leaving(b"E\0\0\0\x06SX", |address, gone| async move {
            let limit = Duration::from_mins(1);
            let stream = ByteStream::connect(&address, limit).await;
            let mut channel = Channel::new(stream.expect("connected"));
            gone.recv().expect("it has left");
            channel.outgoing().message(b'S');
            channel.send().await.expect("no error yet");
            let said = channel.next().await.expect("its last words");
            assert_eq!(said, (b'E', b"SX".as_slice()));
            channel.next().await.expect_err("it is gone");
        });
    }

    #[test]
    fn messages_begun_before_a_send_go_out_together_each_with_its_length() {
        let mut outgoing = MessageBuffer::default();
        outgoing.untagged().extend_from_slice(b"hello");
        outgoing.message(b'S');
        outgoing.message(b'Q').extend_from_slice(b"x\0");
        assert_eq!(
            outgoing.close(),
            b"\0\0\0\x09helloS\0\0\0\x04Q\0\0\0\x06x\0"
        );
        outgoing.clear();
        assert_eq!(outgoing.close(), b"");
    }

    #[test]
    fn a_message_is_read_once_all_of_it_has_come() {
        let bytes = b"Z\0\0\0\x05IC\0\0\0\x04";
        for cut in 0..6 {
            assert_eq!(whole(&bytes[..cut], 0).expect("a length"), None, "{cut}");
        }
        assert_eq!(whole(bytes, 0).expect("a length"), Some((b'Z', 5..6)));
        assert_eq!(whole(bytes, 6).expect("a length"), Some((b'C', 11..11)));
    }

    #[test]
    fn lengths_that_cannot_be_are_errors_and_no_allocation() {
        assert!(whole(b"Z\0\0\0\x03", 0).is_err());
        assert!(whole(b"Z\xff\xff\xff\xff", 0).is_err());
        assert!(whole(b"D\x04\0\0\x01", 0).is_err(), "64 MiB and a byte");
    }
}
