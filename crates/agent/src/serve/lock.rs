//! The place's lock: one session at a time changes a place.
//!
//! Who holds it is decided by flock(2) alone, which dies with its process; what the file says is for the refused.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::serve::failure::Failure;

/// A killed control plane's agent needs a moment to notice.
const PATIENCE: Duration = Duration::from_secs(1);

/// A session that is ending stops its processes and undoes its settings within this, or is stuck.
const PATIENCE_WITH_ENDING: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(50);

/// What the lock file says about its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who, in its own words.
    pub holder: String,
    /// Mark of its processes.
    pub session: String,
    /// Whether it is giving the place back.
    pub ending: bool,
}

/// The lock, held until it is dropped or the agent dies.
pub struct Lock {
    file: File,
    holder: Holder,
}

impl Lock {
    /// Takes the lock, or says who has it. Returns the session that died holding it, if one did.
    pub fn take(directory: &Path, holder: Holder) -> Result<(Self, Option<Holder>), Failure> {
        let path = directory.join("lock");
        fs::create_dir_all(directory)
            .map_err(|cause| Failure::system("create", directory, cause))?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|cause| Failure::system("open", &path, cause))?;
        let mut waited = Duration::ZERO;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let other = read(&mut file);
                    let ending = other.as_ref().is_some_and(|other| other.ending);
                    if waited
                        > if ending {
                            PATIENCE_WITH_ENDING
                        } else {
                            PATIENCE
                        }
                    {
                        let holder = other
                            .map_or_else(|| "another session".to_owned(), |other| other.holder);
                        return Err(Failure::Busy { holder });
                    }
                }
                Err(cause) => return Err(Failure::system("lock", &path, cause)),
            }
            thread::sleep(POLL);
            waited += POLL;
        }
        let dead = read(&mut file);
        let mut lock = Self { file, holder };
        lock.write()
            .map_err(|cause| Failure::system("write", &path, cause))?;
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

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_vec(&self.holder)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
