//! Locks: one session at a time has a place, and one at a time changes a machine.
//!
//! Who holds one is decided by flock(2) alone, which dies with its process; what the file says is for the refused.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::serve::failure::Failure;
use crate::serve::trust;
use fairtrial_protocol::limits::Limits;

/// A place's lock in its state directory: there as long as the directory is.
pub const PLACE_LOCK: &str = "lock";

const POLL: Duration = Duration::from_millis(50);

/// What the lock file says about its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Who, in its own words.
    pub name: String,
    /// Mark of its processes.
    pub session: String,
    /// Whether it is giving the place back.
    pub ending: bool,
    /// Where its undo journal is; empty in locks of agents that did not say.
    #[serde(default)]
    pub state_directory: PathBuf,
    /// Inode of that directory: another one may have its name while its disk is away. Absent in a place's
    /// own lock, and in locks of agents that did not say.
    #[serde(default)]
    pub state_inode: Option<u64>,
}

/// A lock, held until it is dropped or the agent dies.
pub struct FileLock {
    file: File,
    holder: LockHolder,
}

impl FileLock {
    /// Takes the lock `path`, or says who has it. Returns the session that died holding it, if one did, once `allow`
    /// has nothing against following that one. Until it has returned, the file still names that one: who dies meanwhile
    /// leaves what has to be cleaned up to the next.
    pub fn take(
        path: &Path,
        holder: LockHolder,
        limits: Limits,
        allow: impl FnOnce(Option<&LockHolder>) -> Result<(), Failure>,
    ) -> Result<(Self, Option<LockHolder>), Failure> {
        trust::own_directory(path.parent().unwrap_or(Path::new("/")))?;
        let mut file = trust::own_file(path, File::options().read(true).write(true))?;
        let mut waited = Duration::ZERO;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let other = read(&mut file);
                    // A file that says nothing is being written, or given back, at this instant. One of the same name
                    // is of the same process, whose stream was cut: its agent will miss it soon.
                    let ending = other
                        .as_ref()
                        .is_none_or(|other| other.ending || other.name == holder.name);
                    if waited
                        > if ending {
                            limits.lock_ending
                        } else {
                            limits.lock
                        }
                    {
                        let holder =
                            other.map_or_else(|| "another session".to_owned(), |other| other.name);
                        return Err(Failure::Busy { holder });
                    }
                }
                Err(cause) => return Err(Failure::system("lock", path, cause)),
            }
            thread::sleep(POLL);
            waited += POLL;
        }
        let dead = read(&mut file);
        allow(dead.as_ref())?;
        let lock = Self { file, holder };
        lock.write()
            .map_err(|cause| Failure::system("write", path, cause))?;
        Ok((lock, dead))
    }

    /// Lets who comes next wait instead of being refused.
    pub fn ending(&mut self) {
        self.holder.ending = true;
        let _ = self.write(); // only a courtesy
    }

    /// Gives the lock back with nothing left behind.
    pub fn release(self) {
        let _ = self.file.set_len(0); // else the next session looks for leftovers and finds none
    }

    /// Over the old text and in one call, so that the file names somebody at any time; blanks cover the rest of it.
    fn write(&self) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(&self.holder)?;
        let old_bytes = usize::try_from(self.file.metadata()?.len()).unwrap_or(0);
        text.resize(text.len().max(old_bytes), b' ');
        self.file.write_all_at(&text, 0)
    }
}

/// Whether the session that a lock names died holding it.
pub fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|mut file| {
        let is_free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        is_free && read(&mut file).is_some()
    })
}

fn read(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str) -> LockHolder {
        LockHolder {
            name: name.to_owned(),
            session: format!("session of {name}"),
            ending: false,
            state_directory: PathBuf::new(),
            state_inode: None,
        }
    }

    /// Short: who is refused waits for it.
    const PATIENCE: Duration = Duration::from_millis(200);

    fn take(directory: &Path, name: &str) -> Result<(FileLock, Option<LockHolder>), Failure> {
        let limits = Limits {
            lock: PATIENCE,
            ..Limits::default()
        };
        FileLock::take(&directory.join("lock"), holder(name), limits, |_| Ok(()))
    }

    #[test]
    fn a_place_has_one_holder_and_the_refused_are_told_whom() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (lock, dead) = take(directory.path(), "first").expect("free");
        assert_eq!(dead, None);
        let refused = take(directory.path(), "second").err().expect("held");
        assert_eq!(refused.to_string(), "the place is held by first");
        lock.release();
        let (_, dead) = take(directory.path(), "second").expect("free again");
        assert_eq!(dead, None, "a lock given back leaves nothing to clean up");
    }

    #[test]
    fn who_died_holding_it_is_told_to_the_next() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(take(directory.path(), "first").expect("free")); // as the kernel does for the dead
        let (_, dead) = take(directory.path(), "second").expect("free");
        assert_eq!(dead, Some(holder("first")));
    }

    #[test]
    fn a_shorter_name_leaves_nothing_of_a_longer_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(take(directory.path(), "somebody with a long name").expect("free"));
        drop(take(directory.path(), "me").expect("free"));
        let (_, dead) = take(directory.path(), "next").expect("free");
        assert_eq!(dead, Some(holder("me")));
    }

    #[test]
    fn one_that_is_ending_is_waited_for() {
        waited_for("second", FileLock::ending);
    }

    #[test]
    fn one_of_the_same_process_whose_stream_was_cut_is_waited_for() {
        waited_for("first", |_| ());
    }

    fn waited_for(second: &'static str, meanwhile: impl Fn(&mut FileLock)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut lock, _) = take(directory.path(), "first").expect("free");
        meanwhile(&mut lock);
        let following = {
            let directory = directory.path().to_owned();
            thread::spawn(move || take(&directory, second).map(|_| ()))
        };
        thread::sleep(PATIENCE + 4 * POLL); // longer than one that is not ending would be waited for
        lock.release();
        following
            .join()
            .expect("it went on")
            .expect("it got the lock");
    }
}
