//! The supervisor: one stream on standard input and output, one session.
//!
//! Threads: this one carries requests out in order and is the only one that forks (a child's parent-death signal is
//! tied to the thread that made it). One reads frames and answers pings, so that a long step never looks like silence.
//! One writes. One collects ended children. One follows each process whose output is streamed.

mod failure;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lock;
mod machine;
mod processes;
mod protect;
mod queue;
mod request;
mod session;
mod shutdown;
mod trust;
mod undo;
mod wires;

use std::io::{BufReader, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use fairtrial_protocol::clock::Reading;
use fairtrial_protocol::event::{Event, Farewell, Pong};
use fairtrial_protocol::request::Request;

use failure::Failure;
use fairtrial_protocol::limits::Limits;
use frame::{Frame, FrameError};
use session::Session;
use shutdown::Reason;
use wires::Wires;

/// What a waiting frame takes beside its bytes.
const FRAME_BYTES: usize = 256;

/// How long the last words may take to be written: a machine that stands still for seconds must not cost them.
const FAREWELL: Duration = Duration::from_secs(10);

/// Supervises until the stream ends, then leaves the place as it was found.
pub fn run() -> anyhow::Result<()> {
    let initial_score = protect::protect();
    let wires = Arc::new(Wires::new(
        Limits::from_environment().map_err(anyhow::Error::msg)?,
    ));
    wires::watch_signals(Arc::clone(&wires)).context("cannot watch signals")?;
    wires::watch_silence(Arc::clone(&wires));
    let (input, output) =
        take_standard_streams().context("cannot take over standard input and output")?;
    listen(input, Arc::clone(&wires));
    speak(output, Arc::clone(&wires));
    let mut session =
        Session::new(Arc::clone(&wires), initial_score).context("cannot set up a session")?;
    while let Some(frame) = wires.inbox.pop() {
        session.take(frame);
    }
    let failed = session.end();
    if let Some(Reason::Bye(id)) = wires.shutdown.reason() {
        wires
            .outbox
            .push(frame::event(&Event::Bye(Farewell { id, failed })), 0); // no weight: never waits
    }
    wires.outbox.close();
    wires.outbox.wait_empty(FAREWELL);
    Ok(())
}

/// Takes the stream and leaves `/dev/null` in its place: no child and no stray print can ever write into it.
fn take_standard_streams() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input, output))
}

fn listen(input: OwnedFd, wires: Arc<Wires>) {
    thread::spawn(move || {
        let mut stream = BufReader::new(ControllerInput {
            input: input.into(),
            wires: Arc::clone(&wires),
        });
        loop {
            match frame::read(&mut stream) {
                Ok(Some((Frame::Request(Request::Ping(ping)), _))) => {
                    let answer = Pong {
                        id: ping.id,
                        clock: Reading::now(),
                    };
                    wires.outbox.push_urgent(frame::event(&Event::Pong(answer)));
                }
                // Not after what waits: a step that hangs must not keep the stream from ending.
                Ok(Some((Frame::Request(Request::Bye(bye)), _))) => {
                    wires.end(Reason::Bye(bye.id));
                }
                Ok(Some((frame, bytes))) => wires.inbox.push(frame, bytes + FRAME_BYTES),
                Ok(None) | Err(FrameError::Stream(_)) => return wires.end(Reason::EndOfStream),
                Err(error) => {
                    wires.say(&Failure::Invalid(error.to_string()).event(None));
                    return wires.end(Reason::Refused);
                }
            }
        }
    });
}

fn speak(output: OwnedFd, wires: Arc<Wires>) {
    thread::spawn(move || {
        let mut stream = std::fs::File::from(output);
        while let Some(frame) = wires.outbox.pop() {
            if stream.write_all(&frame).is_err() {
                wires.outbox.abandon(); // nobody reads: the last words are not waited for
                return wires.end(Reason::EndOfStream);
            }
        }
    });
}

/// Standard input that notes when something arrives: a long chunk on a slow link is not silence.
struct ControllerInput {
    input: std::fs::File,
    wires: Arc<Wires>,
}

impl std::io::Read for ControllerInput {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.wires.shutdown.heard();
        Ok(count)
    }
}
