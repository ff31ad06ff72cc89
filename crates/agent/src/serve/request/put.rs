//! `put`: a file received in chunks, whole under its name or not there at all.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fairtrial_protocol::event::{Done, Event};
use fairtrial_protocol::request::Put;

use crate::serve::failure::Failure;
use crate::serve::request::absolute;

const PERMISSION_BITS: u32 = 0o7777;

/// Most files on their way at a time, those included that cannot be written and whose chunks are still to come.
const MOST_UPLOADS: usize = 256;

/// A file on its way.
struct Upload {
    path: PathBuf,
    mode: u32,
    missing: u64,
    /// Why it cannot be written; the rest of its chunks is thrown away.
    outcome: Result<TemporaryFile, Failure>,
}

/// A file under a temporary name, removed unless it got its real one.
struct TemporaryFile {
    file: File,
    path: PathBuf,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // gone already if it was renamed
    }
}

/// Files on their way, by number of the `put`.
#[derive(Default)]
pub struct Transfers(HashMap<u64, Upload>);

impl Transfers {
    /// Begins to receive; an empty file is received, and answered, at once.
    pub fn begin(&mut self, put: &Put) -> Result<Option<Event>, Failure> {
        let path = absolute(&put.path)?;
        if self.0.len() >= MOST_UPLOADS {
            return Err(Failure::Refused(format!(
                "more than {MOST_UPLOADS} files on their way at a time"
            )));
        }
        let incoming = Upload {
            outcome: create(&path, put.id),
            path,
            mode: put.mode & PERMISSION_BITS,
            missing: put.bytes,
        };
        self.0.insert(put.id, incoming);
        Ok(self.answer_if_whole(put.id))
    }

    /// Takes a chunk; the last one is answered.
    pub fn chunk(&mut self, id: u64, bytes: &[u8]) -> Option<Event> {
        let incoming = self.0.get_mut(&id)?; // none: of a `put` that was refused
        incoming.take(bytes);
        self.answer_if_whole(id)
    }

    fn answer_if_whole(&mut self, id: u64) -> Option<Event> {
        if self.0.get(&id)?.missing > 0 {
            return None;
        }
        let incoming = self.0.remove(&id)?;
        Some(match incoming.finish() {
            Ok(()) => Event::Done(Done { id }),
            Err(failure) => failure.event(Some(id)),
        })
    }
}

impl Upload {
    fn take(&mut self, bytes: &[u8]) {
        let count = bytes.len() as u64;
        if count > self.missing {
            self.outcome = Err(Failure::Invalid(format!(
                "{}: more bytes came than were announced",
                self.path.display()
            )));
        }
        self.missing = self.missing.saturating_sub(count);
        if let Ok(temporary) = &mut self.outcome
            && let Err(cause) = temporary.file.write_all(bytes)
        {
            self.outcome = Err(Failure::system("write", &self.path, cause));
        }
    }

    fn finish(self) -> Result<(), Failure> {
        let (path, mode) = (self.path, self.mode);
        self.outcome.and_then(|temporary| {
            name(&temporary, &path, mode).map_err(|cause| Failure::system("write", &path, cause))
        })
    }
}

fn create(path: &Path, id: u64) -> Result<TemporaryFile, Failure> {
    let directory = path
        .parent()
        .ok_or_else(|| Failure::Invalid("/ is not a file".to_owned()))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
        .map_err(|cause| Failure::system("create", directory, cause))?;
    let temporary = directory.join(format!(".fairtrial-put-{}-{id}", std::process::id()));
    // Numbers come again: a killed agent's of this name must not be in the way for ever.
    if fs::symlink_metadata(&temporary).is_ok_and(|left| left.is_file()) {
        let _ = fs::remove_file(&temporary); // else it cannot be created, which says why
    }
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(|cause| Failure::system("create", &temporary, cause))?;
    Ok(TemporaryFile {
        file,
        path: temporary,
    })
}

fn name(temporary: &TemporaryFile, path: &Path, mode: u32) -> std::io::Result<()> {
    temporary
        .file
        .set_permissions(Permissions::from_mode(mode))?;
    temporary.file.sync_all()?;
    fs::rename(&temporary.path, path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory)?.sync_all() // else the name may be lost although its bytes are not
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::request::PATH_BYTES;

    fn put(id: u64, path: String) -> Put {
        let (bytes, mode) = (1, 0o644);
        Put {
            id,
            path,
            bytes,
            mode,
        }
    }

    #[test]
    fn what_a_killed_put_has_left_is_replaced_and_a_link_is_not() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        let left = path(&format!(".fairtrial-put-{}-7", std::process::id()));
        let put = put(7, path("file").to_str().expect("text").to_owned());
        let received = || {
            let mut transfers = Transfers::default();
            transfers.begin(&put).expect("begun");
            transfers.chunk(7, b"x").expect("answered")
        };
        fs::write(&left, "half of it").expect("written");
        assert!(matches!(received(), Event::Done(_)));
        assert_eq!(fs::read(path("file")).expect("there"), b"x");
        assert!(!left.exists());
        std::os::unix::fs::symlink(path("elsewhere"), &left).expect("a link");
        assert!(!matches!(received(), Event::Done(_)));
        assert!(!path("elsewhere").exists());
    }

    #[test]
    fn files_on_their_way_are_not_kept_without_end() {
        let mut transfers = Transfers::default();
        for id in 0..MOST_UPLOADS as u64 {
            let begun = transfers.begin(&put(id, "/proc/no/such".to_owned()));
            assert!(begun.is_ok_and(|answer| answer.is_none()), "{id}");
        }
        let refused = transfers.begin(&put(1_000, "/proc/no/such".to_owned()));
        assert!(refused.is_err_and(|failure| failure.to_string().contains("256 files")));
        assert!(transfers.chunk(0, b"x").is_some(), "answered, and gone");
        assert!(transfers.begin(&put(1_001, "/proc/x".to_owned())).is_ok());
        let long = transfers.begin(&put(1_002, format!("/{}", "x".repeat(PATH_BYTES))));
        assert!(long.is_err_and(|failure| failure.to_string().contains("4097 bytes")));
    }
}
