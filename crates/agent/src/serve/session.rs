//! One session: what it holds, and how it gives everything back.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use fairtrial_protocol::event::{Changed, Done, Event, Leftovers, Undone};
use fairtrial_protocol::request::{Change, Hello, Request, Undo};

use crate::serve::failure::Failure;
use crate::serve::frame::Frame;
use crate::serve::lock::{FileLock, LockHolder, PLACE_LOCK};
use crate::serve::machine::Machine;
use crate::serve::processes::{Processes, descendants};
use crate::serve::request::put::Transfers;
use crate::serve::request::{get, hello};
use crate::serve::shutdown::Reason;
use crate::serve::undo::{AppliedSteps, Report};
use crate::serve::wires::Wires;

/// What one stream has at this place.
pub struct Session {
    wires: Arc<Wires>,
    state_directory: PathBuf,
    /// Where the machine's lock is.
    machine_directory: PathBuf,
    processes: Processes,
    /// The place's lock and the steps applied under it; `None` before `hello` and for those who only look.
    held: Option<LockedPlace>,
    transfers: Transfers,
    /// Whether `hello` was answered.
    greeted: bool,
}

/// The right to change the place, and the changes.
struct LockedPlace {
    lock: FileLock,
    applied: AppliedSteps,
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
            transfers: Transfers::default(),
            greeted: false,
        })
    }

    /// Carries out what came in and answers it.
    pub fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Chunk { id, bytes } => {
                if let Some(event) = self.transfers.chunk(id, &bytes) {
                    self.wires.say(&event);
                }
            }
            Frame::Request(request) => {
                let id = request.id();
                match self.carry_out(request) {
                    Ok(Some(event)) => self.wires.say(&event),
                    Ok(None) => {}
                    Err(failure) => {
                        self.wires.say(&failure.event(Some(id)));
                        if !self.greeted {
                            self.wires.end(Reason::Refused);
                        }
                    }
                }
            }
        }
    }

    /// What is answered now; a spawned process is said as it starts, a file as it is read.
    fn carry_out(&mut self, request: Request) -> Result<Option<Event>, Failure> {
        Ok(match request {
            Request::Hello(hello) => Some(self.hello(&hello)?),
            _ if !self.greeted => {
                return Err(Failure::Refused(
                    "the first message of a stream is `hello`".to_owned(),
                ));
            }
            Request::Put(put) => self.transfers.begin(&put)?,
            Request::Get(get) => {
                get::answer(&get, &self.wires)?;
                None
            }
            Request::Spawn(spawn) => {
                self.processes.spawn(&spawn)?;
                None
            }
            Request::Signal(signal) => {
                self.processes.signal(&signal)?;
                Some(Event::Done(Done { id: signal.id }))
            }
            Request::Sweep(sweep) => Some(Event::Swept(self.processes.sweep(sweep))),
            Request::Change(change) => Some(self.change(&change)?),
            Request::Undo(undo) => Some(self.undo(&undo)),
            Request::Ping(_) | Request::Bye(_) => None, // answered before they come here
        })
    }

    fn hello(&mut self, hello: &Hello) -> Result<Event, Failure> {
        if self.greeted {
            return Err(Failure::Refused("a stream has one `hello`".to_owned()));
        }
        hello::check(hello)?;
        let leftovers = if hello.lock {
            self.take_place(hello)?
        } else {
            Leftovers::default()
        };
        self.greeted = true;
        hello::welcome(hello.id, &self.state_directory, leftovers)
    }

    /// Takes the lock and cleans up what a dead session left.
    fn take_place(&mut self, hello: &Hello) -> Result<Leftovers, Failure> {
        let holder = LockHolder {
            name: hello.holder.clone(),
            session: self.processes.session().to_owned(),
            ending: false,
            state_directory: self.state_directory.clone(),
            state_inode: None,
        };
        let limits = self.wires.limits;
        let path = self.state_directory.join(PLACE_LOCK);
        let mut killed = 0;
        let (lock, _) = FileLock::take(&path, holder.clone(), limits, |dead| {
            killed = dead.map_or(0, |dead| {
                descendants::kill_marked(&dead.session, limits.hang)
            });
            Ok(())
        })?;
        let state_inode = self
            .state_directory
            .metadata()
            .ok()
            .map(|metadata| metadata.ino());
        let holder = LockHolder {
            state_inode,
            ..holder
        };
        let machine = Machine::new(&self.machine_directory, holder, limits);
        let (applied, undone) =
            AppliedSteps::open(&self.state_directory, machine, &self.processes)?;
        self.held = Some(LockedPlace { lock, applied });
        Ok(Leftovers {
            undone: undone.steps,
            killed,
            failed: undone.failed,
            overwritten: undone.overwritten,
        })
    }

    fn change(&mut self, change: &Change) -> Result<Event, Failure> {
        let Some(held) = &mut self.held else {
            return Err(Failure::Refused(
                "only a session that holds the place's lock may change it".to_owned(),
            ));
        };
        let values = held.applied.apply(&change.step, &self.processes)?;
        Ok(Event::Changed(Changed {
            id: change.id,
            before: values.before,
            read_back: values.read_back,
            applied: held.applied.count(),
        }))
    }

    fn undo(&mut self, undo: &Undo) -> Event {
        let report = match &mut self.held {
            Some(held) => held.applied.undo(undo.keep, &self.processes),
            None => Report::default(), // who may not change has nothing to undo
        };
        Event::Undone(Undone {
            id: undo.id,
            steps: report.steps,
            failed: report.failed,
            disturbed: report.disturbed,
        })
    }

    /// Stops every process, undoes every step, gives the lock back. Returns what could not be undone or stopped.
    pub fn end(mut self) -> Vec<String> {
        if let Some(held) = &mut self.held {
            held.lock.ending();
            held.applied.ending();
        }
        self.transfers = Transfers::default();
        let mut left = self.processes.stop_all_but_locks();
        let mut held = self.held.take();
        let mut failed = held.as_mut().map_or_else(Vec::new, |held| {
            held.applied.undo(0, &self.processes).failed
        });
        left += self.processes.stop_locks();
        if left > 0 {
            failed.push(format!("processes: {left} of them outlive SIGKILL"));
        }
        if let Some(held) = held.filter(|_| failed.is_empty()) {
            held.lock.release();
        }
        failed
    }
}
