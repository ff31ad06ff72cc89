//! Drives under way on a thread of their own, so that a test can break something meanwhile.

use std::io::{Result as IoResult, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::Driven;

/// How long a test waits for a window to begin or to end, on a machine that others load too.
const LIMIT: Duration = Duration::from_mins(2);

/// A drive whose window has begun.
pub struct DriveThread {
    driving: JoinHandle<Result<Driven, LoadError>>,
    said: Receiver<String>,
}

/// Begins a drive and waits for its window.
pub fn begin(
    drive: impl FnOnce(&mut dyn Write) -> Result<Driven, LoadError> + Send + 'static,
) -> DriveThread {
    let (sender, said) = channel();
    let driving = thread::spawn(move || drive(&mut LineSender(sender)));
    let mut under_way = DriveThread { driving, said };
    under_way.wait_for("\"measuring\"");
    under_way
}

impl DriveThread {
    /// Waits until the window is over and users finish what they began.
    pub fn wait_until_finishing(&mut self) {
        self.wait_for("\"finishing\"");
    }

    fn wait_for(&mut self, words: &str) {
        while !self.said.recv_timeout(LIMIT).expect(words).contains(words) {}
    }

    /// Waits for its end.
    pub fn end(self) -> Result<Driven, LoadError> {
        self.driving.join().expect("the drive does not panic")
    }
}

/// Passes on what the drive says.
struct LineSender(Sender<String>);

impl Write for LineSender {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let said = String::from_utf8_lossy(bytes).into_owned();
        self.0.send(said).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}
