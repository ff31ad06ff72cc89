//! The machine's lock: whatever state directories its sessions have, one at a time changes it.
//!
//! What a step finds before it acts is what undoing restores. Two sessions that change one setting would each take the
//! other's value for the machine's own, so a session holds this lock from its first step until all are undone.

use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;
use crate::serve::lock::{Holder, Lock};
use fairtrial_protocol::limits::Limits;

/// The right to change this machine, taken when it is needed.
pub struct Machine {
    path: PathBuf,
    holder: Holder,
    limits: Limits,
    lock: Option<Lock>,
}

impl Machine {
    /// Of a session that has changed nothing yet. `holder` names the session and its state directory.
    pub fn new(directory: &Path, holder: Holder, limits: Limits) -> Self {
        Self {
            path: directory.join("machine.lock"),
            holder,
            limits,
            lock: None,
        }
    }

    /// Takes the lock unless it is held already. Refuses while another session changes the machine, and after one of
    /// another state directory that died and whose changes nobody has undone.
    pub fn hold(&mut self) -> Result<(), Failure> {
        if self.lock.is_none() {
            let own = &self.holder.state_directory;
            let (lock, _) = Lock::take(&self.path, self.holder.clone(), self.limits, |dead| {
                dead.map_or(Ok(()), |dead| require_undone(dead, own))
            })?;
            self.lock = Some(lock);
        }
        Ok(())
    }

    /// Lets who comes next wait instead of being refused.
    pub fn ending(&mut self) {
        if let Some(lock) = &mut self.lock {
            lock.ending();
        }
    }

    /// Gives the lock back: nothing of this session is left to undo.
    pub fn free(&mut self) {
        if let Some(lock) = self.lock.take() {
            lock.release();
        }
    }
}

fn require_undone(dead: &Holder, own: &Path) -> Result<(), Failure> {
    let journal = dead.state_directory.join("undo.jsonl");
    let is_undone =
        dead.state_directory == own || !journal.metadata().is_ok_and(|found| found.len() > 0);
    if is_undone {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{name} died and left this machine changed; {journal} says how to undo it: \
         `FAIRTRIAL_STATE_DIRECTORY={state} fairtrial doctor` does, or restore the settings by hand and remove the file",
        name = dead.name,
        journal = journal.display(),
        state = dead.state_directory.display(),
    )))
}
