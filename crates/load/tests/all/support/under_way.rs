//! Drives under way on a thread of their own, so that a test can break something meanwhile.

use std::io::{Result as IoResult, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::Driven;

/// How long a test waits for a window to begin, on a machine that others load too.
const BEGIN_LIMIT: Duration = Duration::from_mins(2);

/// A drive whose window has begun.
pub struct UnderWay(JoinHandle<Result<Driven, LoadError>>);

/// Begins a drive and waits for its window.
pub fn begin(
    drive: impl FnOnce(&mut dyn Write) -> Result<Driven, LoadError> + Send + 'static,
) -> UnderWay {
    let (said, begun) = channel();
    let driving = thread::spawn(move || drive(&mut Lines(said)));
    begun.recv_timeout(BEGIN_LIMIT).expect("the window begins");
    UnderWay(driving)
}

impl UnderWay {
    /// Waits for its end.
    pub fn end(self) -> Result<Driven, LoadError> {
        self.0.join().expect("the drive does not panic")
    }
}

/// Speaks once the window begins.
struct Lines(Sender<()>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        if String::from_utf8_lossy(bytes).contains("\"measuring\"") {
            self.0.send(()).map_err(std::io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}
