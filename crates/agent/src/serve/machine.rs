//! The machine's lock: whatever state directories its sessions have, one at a time changes it.
//!
//! What a step finds before it acts is what undoing restores. Two sessions that change one setting would each take the
//! other's value for the machine's own, so a session holds this lock from its first step until all are undone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;
use crate::serve::lock::{FileLock, LockHolder, PLACE_LOCK, is_left};
use crate::serve::processes::descendants;
use fairtrial_protocol::limits::Limits;

/// The right to change this machine, taken when it is needed.
pub struct Machine {
    directory: PathBuf,
    path: PathBuf,
    holder: LockHolder,
    limits: Limits,
    lock: Option<FileLock>,
}

impl Machine {
    /// Of a session that has changed nothing yet. `holder` names the session and its state directory.
    pub fn new(directory: &Path, holder: LockHolder, limits: Limits) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join("machine.lock"),
            holder,
            limits,
            lock: None,
        }
    }

    /// Whether this session has the lock.
    pub fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether a session died holding the lock: what it changed may still be there.
    pub fn is_left(&self) -> bool {
        is_left(&self.path)
    }

    /// A copy of this session's undo journal, which outlasts its state directory; none where the lock would not.
    pub fn copy(&self) -> Option<PathBuf> {
        (self.directory != self.holder.state_directory).then(|| self.copy_of(&self.holder))
    }

    fn copy_of(&self, holder: &LockHolder) -> PathBuf {
        self.directory
            .join(format!("undo-{}.jsonl", holder.session))
    }

    /// Takes the lock. Refuses while another session changes the machine, and after one of another state directory that
    /// died and whose changes nobody has undone. `has_steps`: this session's journal has changes of this machine.
    /// `restore` undoes by the copy of a journal that is away, and says whether there is one.
    pub fn hold(
        &mut self,
        has_steps: bool,
        restore: impl FnOnce(&Path) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let (lock, dead) = FileLock::take(&self.path, self.holder.clone(), self.limits, |dead| {
            dead.map_or(Ok(()), |dead| self.require_undone(dead, has_steps, restore))
        })?;
        if let Some(dead) = dead {
            let _ = fs::remove_file(self.copy_of(&dead)); // its own journal says the same, or nothing is left to do
        }
        self.lock = Some(lock);
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

    /// Who has undone everything has freed this lock, so one that names a dead session may be all that is left of it:
    /// where its state directory is away, as with an unmounted disk, only the copy knows what it changed.
    fn require_undone(
        &self,
        dead: &LockHolder,
        has_steps: bool,
        restore: impl FnOnce(&Path) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let state = &dead.state_directory;
        let journal = state.join("undo.jsonl");
        let is_left = journal.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let has_name = *state == self.holder.state_directory;
        // Another directory of that name may be what an unmounted disk leaves.
        let is_own =
            has_name && (dead.state_inode.is_none() || dead.state_inode == self.holder.state_inode);
        if (is_own && has_steps) || state.as_os_str().is_empty() {
            return Ok(());
        }
        let (name, shown) = (&dead.name, state.display());
        let doctor = format!("`FAIRTRIAL_STATE_DIRECTORY={shown} fairtrial doctor`");
        if is_left && !has_name {
            return Err(Failure::Refused(format!(
                "{name} died and left this machine changed; {journal} says how to undo it: {doctor} does, or restore \
                 the settings by hand and remove the file",
                journal = journal.display(),
            )));
        }
        // It may have been removed and made again: a new directory often gets the inode of the old one.
        let is_there = is_own || (!has_name && state.join(PLACE_LOCK).exists());
        let away = match (is_there, has_name) {
            (true, _) => "no longer says it",
            (false, true) => "is away: a different directory has its name",
            (false, false) => "does not exist",
        };
        descendants::kill_marked(&dead.session, self.limits.hang);
        let why = match restore(&self.copy_of(dead)) {
            Ok(has_copy) if has_copy || is_left || is_there => return Ok(()),
            Ok(_) => String::new(),
            Err(failure) => format!(" (not restored without it: {failure})"),
        };
        Err(Failure::Refused(format!(
            "{name} died, and its state directory {shown}, which says what it changed on this machine, {away}{why}. \
             Bring it back and run {doctor}, or restore the settings by hand and remove {lock}",
            lock = self.path.display(),
        )))
    }
}
