//! The stream as the rest of the agent sees it: frames that wait on either side, and whoever ends it.

use std::sync::Arc;
use std::thread;

use fairtrial_protocol::event::Event;
use fairtrial_protocol::limits::Limits;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::serve::frame::{self, Frame};
use crate::serve::queue::BoundedQueue;
use crate::serve::shutdown::{Reason, Shutdown};

/// Bytes of requests and chunks that may wait while a step runs.
const INBOX_BYTES: usize = 4 << 20;

/// Bytes that may wait to be written: enough to keep a link busy, little enough that a pong is never late.
const OUTBOX_BYTES: usize = 1 << 20;

/// After the limit the other side gets this part of it once more, enough for another ping: a machine that stood still
/// wakes with its input unread, and so does the other side's.
const SECOND_CHANCE_PART: u32 = 3;

/// Both directions of the stream, whether it goes on, and how long it waits.
pub struct Wires {
    /// How long it waits.
    pub limits: Limits,
    /// Came in and not taken yet.
    pub inbox: BoundedQueue<Frame>,
    /// Said and not written yet.
    pub outbox: BoundedQueue<Vec<u8>>,
    /// Whether the stream goes on.
    pub shutdown: Shutdown,
}

impl Wires {
    /// A stream that goes on, with nothing on its way.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            inbox: BoundedQueue::new(INBOX_BYTES),
            outbox: BoundedQueue::new(OUTBOX_BYTES),
            shutdown: Shutdown::new(),
        }
    }

    /// Says something to the control plane; waits while too much is waiting already.
    pub fn say(&self, event: &Event) {
        self.send(frame::event(event));
    }

    /// Sends a frame as it is.
    pub fn send(&self, frame: Vec<u8>) {
        let bytes = frame.len();
        self.outbox.push(frame, bytes);
    }

    /// Ends the stream. Unless the control plane is known to listen, nothing that waits is written any more: a full
    /// pipe that nobody reads must not hold the undoing up.
    pub fn end(&self, reason: Reason) {
        let listens = matches!(reason, Reason::Bye(_) | Reason::Refused | Reason::Signal(_));
        let first = self.shutdown.begin(reason);
        if first && !listens {
            self.outbox.abandon();
        }
        self.inbox.abandon();
    }
}

/// Ends the stream after silence. However it ended, what waits is given up once nobody reads for as long: whoever waits
/// to say something must not hold the undoing up.
pub fn watch_silence(wires: Arc<Wires>) {
    let limit = wires.limits.silence;
    thread::spawn(move || {
        let mut warned = false;
        loop {
            let left = limit.saturating_sub(wires.shutdown.silent_for());
            if left.is_zero() && warned {
                return wires.end(Reason::Silence);
            }
            warned = left.is_zero();
            if wires.shutdown.wait(if warned {
                limit / SECOND_CHANCE_PART
            } else {
                left
            }) {
                break;
            }
        }
        let stuck = |limit| wires.outbox.is_stuck(limit);
        while !(stuck(limit) && stuck(limit / SECOND_CHANCE_PART)) {}
        wires.outbox.abandon();
    });
}

/// Ends the stream in order when the agent is told to end.
pub fn watch_signals(wires: Arc<Wires>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            wires.end(Reason::Signal(signal));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn watched() -> Arc<Wires> {
        let wires = Arc::new(Wires::new(Limits {
            silence: Duration::from_millis(500),
            ..Limits::default()
        }));
        watch_silence(Arc::clone(&wires));
        wires
    }

    #[test]
    fn who_waits_to_say_something_goes_on_however_the_stream_ended() {
        for reason in [Reason::Bye(1), Reason::Signal(SIGTERM), Reason::Refused] {
            let wires = watched();
            wires.outbox.push(vec![0], OUTBOX_BYTES);
            wires.end(reason);
            let (said, is_said) = std::sync::mpsc::channel();
            let speaking = Arc::clone(&wires);
            thread::spawn(move || {
                speaking.send(vec![1]);
                said.send(())
            });
            is_said
                .recv_timeout(Duration::from_secs(30))
                .expect("it went on");
        }
    }

    #[test]
    fn the_last_word_comes_after_an_undoing_longer_than_any_silence() {
        let wires = watched();
        wires.end(Reason::Bye(1));
        thread::sleep(2 * wires.limits.silence);
        wires.send(b"bye".to_vec());
        assert_eq!(wires.outbox.pop(), Some(b"bye".to_vec()));
    }
}
