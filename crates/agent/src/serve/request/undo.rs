//! `undo`: steps taken back, newest first.

use fairtrial_protocol::event::{Event, Undone};
use fairtrial_protocol::request::Undo;

use crate::serve::session::Session;
use crate::serve::undo::Report;

/// Answers `undo`.
pub fn apply(session: &mut Session, undo: &Undo) {
    let report = match &mut session.held {
        Some(held) => held.applied.undo(undo.keep, &session.processes),
        None => Report::default(), // who may not change has nothing to undo
    };
    session.wires.say(&Event::Undone(Undone {
        id: undo.id,
        steps: report.steps,
        failed: report.failed,
        disturbed: report.disturbed,
    }));
}
