//! `signal`: a signal sent to a spawned process. One that has ended gets none, which is no error: it may just have.

use fairtrial_protocol::event::{Done, Event};
use fairtrial_protocol::request::Signal;

use crate::serve::failure::Failure;
use crate::serve::session::Session;

/// Answers `signal`.
pub fn apply(session: &mut Session, signal: &Signal) -> Result<(), Failure> {
    session.processes.signal(signal)?;
    session.wires.say(&Event::Done(Done { id: signal.id }));
    Ok(())
}
