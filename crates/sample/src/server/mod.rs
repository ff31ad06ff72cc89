//! A server's own counters, beside the place's: on a thread of its own, so that a server that hangs or dies costs its
//! own samples and nobody else's.

pub mod counters;
pub mod family;
mod lock_waits;
mod mysql;
mod postgres;
pub mod queries;
mod watch;

use std::mem;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use fairtrial_protocol::sample::SampledServer;

use crate::error::{SHORTEST_SERVER_INTERVAL_MS, SampleError};
use watch::{ANSWER_LIMIT, ServerWatch, WatchMessage};

/// The thread's name, as `/proc` shows it.
const THREAD: &str = "server-ticks";

/// A server being sampled.
pub struct ServerSampler {
    thread: JoinHandle<Result<u64, SampleError>>,
    stop: Sender<()>,
    said: Receiver<WatchMessage>,
    warnings: Vec<String>,
    answers: bool,
}

impl ServerSampler {
    /// Starts and waits for the first tick, which ends within seconds whatever the server does.
    pub fn start(
        parameters: &SampledServer,
        directory: &Path,
        shown: &[String],
    ) -> Result<Self, SampleError> {
        if parameters.interval_ms < SHORTEST_SERVER_INTERVAL_MS {
            return Err(SampleError::ServerInterval {
                given_ms: parameters.interval_ms,
            });
        }
        let (stop, stopped) = channel();
        let (sender, said) = channel();
        let watch = ServerWatch::new((parameters.clone(), shown.to_vec()), directory, sender);
        let thread = thread::Builder::new()
            .name(THREAD.into())
            .spawn(move || watch.run(&stopped))
            .map_err(SampleError::Wait)?;
        let mut sampler = Self {
            thread,
            stop,
            said,
            warnings: Vec::new(),
            answers: false,
        };
        sampler.hear_first();
        Ok(sampler)
    }

    fn hear_first(&mut self) {
        // More than a tick takes at most: the counters' question, and the lock waits'.
        while let Ok(said) = self.said.recv_timeout(3 * ANSWER_LIMIT) {
            match said {
                WatchMessage::Warning(warning) => self.warnings.push(warning),
                WatchMessage::First(answers) => {
                    self.answers = answers;
                    break;
                }
            }
        }
        if !self.answers {
            let warning = "the server has not answered yet; it is asked again at every tick";
            self.warnings.push(warning.into());
        }
    }

    /// Whether the first tick gave a sample.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// What was said since the last time.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = mem::take(&mut self.warnings);
        warnings.extend(heard(&self.said));
        warnings
    }

    /// Samples once more and ends the files; returns how many ticks gave no sample, and what was said since.
    pub fn finish(self) -> Result<(u64, Vec<String>), SampleError> {
        let Self {
            thread,
            stop,
            said,
            mut warnings,
            ..
        } = self;
        drop(stop); // that is the sign to end
        let missed = thread.join().map_err(|_| SampleError::Panicked)??;
        warnings.extend(heard(&said));
        Ok((missed, warnings))
    }
}

fn heard(said: &Receiver<WatchMessage>) -> impl Iterator<Item = String> {
    said.try_iter().filter_map(|said| match said {
        WatchMessage::Warning(warning) => Some(warning),
        WatchMessage::First(_) => None,
    })
}
