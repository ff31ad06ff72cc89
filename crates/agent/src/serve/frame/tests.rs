//! The stream as it comes: in pieces, cut, garbled.

use super::*;
use std::io::{BufReader, Read};

use fairtrial_protocol::request::{Get, Ping, Put};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

fn read(stream: &mut impl BufRead) -> Result<Option<Frame>, FrameError> {
    Ok(super::read(stream)?.map(|(frame, _)| frame))
}

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

/// A stream that gives what it has in pieces of random length, as pipes and sockets do.
struct Pieces<'a> {
    left: &'a [u8],
    random: StdRng,
    largest: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.random.random_range(0..8) == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let largest = self.largest.min(self.left.len()).min(buffer.len());
        let count = if largest == 0 {
            0
        } else {
            self.random.random_range(1..=largest)
        };
        buffer[..count].copy_from_slice(&self.left[..count]);
        self.left = &self.left[count..];
        Ok(count)
    }
}

/// Frames of a random conversation, and its bytes.
fn conversation(random: &mut StdRng) -> (Vec<Frame>, Vec<u8>) {
    let mut frames = Vec::new();
    let mut bytes = Vec::new();
    for id in 0..random.random_range(1..40) {
        if random.random_range(0..2) == 0 {
            let request = Request::Get(Get {
                id,
                path: "/ä\n\"".repeat(random.random_range(0..50)),
            });
            bytes.extend(serde_json::to_vec(&request).expect("plain data"));
            bytes.push(b'\n');
            frames.push(Frame::Request(request));
        } else {
            let longest = [0, 1, 300, CHUNK_BYTES][random.random_range(0..4)];
            let content: Vec<u8> = (0..longest).map(|_| random.random_range(0..=255)).collect();
            bytes.extend(chunk(id, &content));
            frames.push(Frame::Chunk { id, bytes: content });
        }
    }
    (frames, bytes)
}

#[test]
fn frames_do_not_depend_on_how_the_bytes_come() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let (expected, bytes) = conversation(&mut random);
        let largest = [1, 7, 4096, 1 << 20][random.random_range(0..4)];
        let capacity = [1, 64, 8192][random.random_range(0..3)];
        let pieces = Pieces {
            left: &bytes,
            random,
            largest,
        };
        let mut stream = BufReader::with_capacity(capacity, pieces);
        let read: Vec<_> =
            std::iter::from_fn(|| read(&mut stream).expect("the protocol")).collect();
        assert!(read == expected, "seed {seed}");
    }
}

#[test]
fn a_conversation_cut_anywhere_gives_its_whole_frames_and_then_ends() {
    let mut random = StdRng::seed_from_u64(7);
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for id in 0..6 {
        let content: Vec<u8> = (0..id * 5).map(|_| random.random_range(0..=255)).collect();
        bytes.extend(chunk(id, &content));
        ends.push(bytes.len());
        bytes.extend(format!("{{\"request\":\"ping\",\"id\":{id}}}\n").bytes());
        ends.push(bytes.len());
    }
    for cut in 0..=bytes.len() {
        let mut stream = &bytes[..cut];
        let mut count = 0;
        let last = loop {
            match read(&mut stream) {
                Ok(Some(_)) => count += 1,
                last => break last,
            }
        };
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(count, whole, "cut at {cut}");
        assert!(
            matches!(last, Ok(None) | Err(FrameError::Stream(_))),
            "cut at {cut}: {last:?}"
        );
    }
}

#[test]
fn no_bytes_make_the_reader_panic_or_take_more_than_a_line_and_a_chunk() {
    let mut random = StdRng::seed_from_u64(11);
    let template = b"{\"request\":\"put\",\"id\":1,\"path\":\"/f\",\"bytes\":9,\"mode\":420}\n{\"id\":1,\"chunk\":3}\nabc".to_vec();
    for _ in 0..20_000 {
        let mut bytes = template.clone();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random_range(0..=255),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.random_range(0..=255)),
            }
        }
        let mut stream = &bytes[..];
        for _ in 0..=bytes.len() {
            match read(&mut stream) {
                Ok(Some(Frame::Chunk { bytes: chunk, .. })) => assert!(chunk.len() <= bytes.len()),
                Ok(Some(Frame::Request(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
}

#[test]
fn the_longest_line_is_read_and_one_byte_more_is_refused() {
    let spawn = |padding: usize| {
        let line = format!(
            "{{\"request\":\"get\",\"id\":1,\"path\":\"{}\"}}\n",
            "x".repeat(padding)
        );
        (line.len(), line)
    };
    let room = usize::try_from(LINE_BYTES).expect("fits") - spawn(0).0;
    assert!(matches!(
        read(&mut spawn(room).1.as_bytes()),
        Ok(Some(Frame::Request(_)))
    ));
    assert!(matches!(
        read(&mut spawn(room + 1).1.as_bytes()),
        Err(FrameError::Long)
    ));
}

#[test]
fn a_chunk_may_be_as_long_as_allowed_and_is_refused_before_a_byte_of_a_longer_one_is_taken() {
    let mut whole = &chunk(1, &vec![7; CHUNK_BYTES])[..];
    assert!(
        matches!(read(&mut whole), Ok(Some(Frame::Chunk { bytes, .. })) if bytes.len() == CHUNK_BYTES)
    );
    for header in [
        "65537",
        "18446744073709551615",
        "99999999999999999999",
        "-1",
        "1.5",
        "\"3\"",
        "null",
    ] {
        let line = format!("{{\"id\":1,\"chunk\":{header}}}\nrest");
        let mut stream = line.as_bytes();
        read(&mut stream).expect_err(header);
        assert_eq!(stream, b"rest", "{header}");
    }
}

#[test]
fn what_is_no_text_is_no_message() {
    for line in [
        &b"\xff\xfe\n"[..],
        b"{\"request\":\"get\",\"id\":1,\"path\":\"\xe9\"}\n",
        b"{\"request\":\"get\",\"id\":1,\"path\":\"\\ud800\"}\n",
        b"\0\n",
        b"\n",
        b"[]\n",
        b"{}\n",
        b"null\n",
    ] {
        let refusal = read(&mut &*line).expect_err("no message");
        assert!(matches!(refusal, FrameError::Message(_)), "{refusal:?}");
    }
    let deep = format!("{}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    assert!(
        matches!(read(&mut deep.as_bytes()), Err(FrameError::Message(_))),
        "no recursion without end"
    );
}

#[test]
fn a_request_is_a_request_whatever_else_it_carries() {
    let line = b"{\"request\":\"ping\",\"id\":3,\"chunk\":5}\n";
    let read = read(&mut &line[..]).expect("a message");
    assert_eq!(read, Some(Frame::Request(Request::Ping(Ping { id: 3 }))));
}

#[test]
fn an_event_is_one_line_however_its_text_is_broken() {
    let line = fairtrial_protocol::event::OutputLine {
        process: 1,
        stream: fairtrial_protocol::event::Stream::Stdout,
        line: "a\nb\r\u{2028}\0\u{fffd}".to_owned(),
    };
    let said = event(&Event::Output(line.clone()));
    let newline = said.iter().position(|byte| *byte == b'\n');
    assert_eq!(newline, Some(said.len() - 1));
    assert_eq!(
        serde_json::from_slice::<Event>(&said).expect("an event"),
        Event::Output(line)
    );
}

#[test]
fn a_line_of_values_without_end_is_refused_before_they_are_kept() {
    let line = |values: usize, text: &str| {
        let more = "{\"\":0},".repeat(values);
        format!("{{\"request\":\"ping\",\"id\":1,\"x\":[{more}\"{text}\"]}}\n")
    };
    let crowded = read(&mut line(VALUES, "").as_bytes());
    assert!(matches!(crowded, Err(FrameError::Crowded)));
    let long = line(10, &",\\\"[{:".repeat(VALUES));
    assert_eq!(
        frames(long.as_bytes()),
        [Frame::Request(Request::Ping(Ping { id: 1 }))],
        "a text is one value, whatever it holds"
    );
}

#[test]
fn a_frame_is_as_long_as_the_bytes_it_came_in() {
    let mut bytes = chunk(1, b"whole");
    bytes.extend(b"{\"request\":\"ping\",\"id\":2}\n");
    let mut stream = &bytes[..];
    let lengths = std::iter::from_fn(|| super::read(&mut stream).expect("the protocol"))
        .map(|(_, length)| length);
    assert_eq!(lengths.sum::<usize>(), bytes.len());
}
