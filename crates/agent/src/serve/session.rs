//! One session: what it holds, and how it gives everything back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use fairtrial_protocol::request::Request;

use crate::serve::Wires;
use crate::serve::failure::Failure;
use crate::serve::frame::Frame;
use crate::serve::lock::Lock;
use crate::serve::processes::Processes;
use crate::serve::request::put::Incoming;
use crate::serve::request::{change, get, hello, put, signal, spawn, undo};
use crate::serve::shutdown::Reason;
use crate::serve::undo::Applied;

/// What one stream has at this place.
pub struct Session {
    /// The stream.
    pub wires: Arc<Wires>,
    /// Where the agent keeps its state.
    pub state_directory: PathBuf,
    /// Where the machine's lock is.
    pub machine_directory: PathBuf,
    /// Its processes.
    pub processes: Processes,
    /// The place's lock and the steps applied under it; `None` before `hello` and for those who only look.
    pub held: Option<Held>,
    /// Files being received, by number of the `put`.
    pub incoming: HashMap<u64, Incoming>,
    /// Whether `hello` was answered.
    pub greeted: bool,
}

/// The right to change the place, and the changes.
pub struct Held {
    /// The lock.
    pub lock: Lock,
    /// Steps applied and not undone.
    pub applied: Applied,
}

impl Session {
    /// A session before its `hello`.
    pub fn new(wires: Arc<Wires>, initial_score: Option<String>) -> std::io::Result<Self> {
        let state_directory = fairtrial_state::state_directory().ok_or_else(|| {
            std::io::Error::other(
                "this user has no home to keep state in: set FAIRTRIAL_STATE_DIRECTORY",
            )
        })?;
        Ok(Self {
            processes: Processes::new(Arc::clone(&wires), initial_score)?,
            wires,
            machine_directory: fairtrial_state::machine_directory(&state_directory),
            state_directory,
            held: None,
            incoming: HashMap::new(),
            greeted: false,
        })
    }

    /// Carries out what came in and answers it.
    pub fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Chunk { id, bytes } => put::chunk(self, id, &bytes),
            Frame::Request(request) => {
                let id = request.id();
                if let Err(failure) = self.carry_out(request) {
                    self.wires.say(&failure.event(Some(id)));
                    if !self.greeted {
                        self.wires.end(Reason::Refused);
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, request: Request) -> Result<(), Failure> {
        match request {
            Request::Hello(hello) => hello::apply(self, &hello),
            _ if !self.greeted => Err(Failure::Refused(
                "the first message of a stream is `hello`".to_owned(),
            )),
            Request::Put(put) => put::apply(self, &put),
            Request::Get(get) => get::apply(self, &get),
            Request::Spawn(spawn) => spawn::apply(self, &spawn),
            Request::Signal(signal) => signal::apply(self, &signal),
            Request::Change(change) => change::apply(self, &change),
            Request::Undo(undo) => {
                undo::apply(self, &undo);
                Ok(())
            }
            Request::Ping(_) | Request::Bye(_) => Ok(()), // answered before they come here
        }
    }

    /// Stops every process, undoes every step, gives the lock back. Returns what could not be undone.
    pub fn end(mut self) -> Vec<String> {
        if let Some(held) = &mut self.held {
            held.lock.ending();
            held.applied.ending();
        }
        self.incoming.clear();
        self.processes.stop_all();
        let Some(mut held) = self.held.take() else {
            return Vec::new();
        };
        let undone = held.applied.undo(0, &self.processes);
        if undone.failed.is_empty() {
            held.lock.release();
        }
        undone.failed
    }
}
