//! `change`: one step applied, read back, and remembered.

use fairtrial_protocol::event::{Changed, Event};
use fairtrial_protocol::request::Change;

use crate::serve::failure::Failure;
use crate::serve::session::Session;

/// Answers `change`.
pub fn apply(session: &mut Session, change: &Change) -> Result<(), Failure> {
    let Some(held) = &mut session.held else {
        return Err(Failure::Refused(
            "only a session that holds the place's lock may change it".to_owned(),
        ));
    };
    let seen = held.applied.apply(&change.step, &session.processes)?;
    session.wires.say(&Event::Changed(Changed {
        id: change.id,
        before: seen.before,
        read_back: seen.read_back,
        applied: held.applied.count(),
    }));
    Ok(())
}
