//! `spawn`: a process started.

use fairtrial_protocol::request::Spawn;

use crate::serve::failure::Failure;
use crate::serve::session::Session;

/// Answers `spawn` with `spawned`; `exited` follows when it ends.
pub fn apply(session: &mut Session, spawn: &Spawn) -> Result<(), Failure> {
    session.processes.spawn(spawn)
}
