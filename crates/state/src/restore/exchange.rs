//! Putting a finished directory in the place of another.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::StateError;

/// A hidden name beside a path, the same every time, so that what a kill left behind is found and removed.
pub fn beside(path: &Path, purpose: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(purpose);
    path.with_file_name(name)
}

/// Removes a file or a directory with everything below it; it need not exist.
pub fn remove(path: &Path) -> Result<(), StateError> {
    let removed = fs::symlink_metadata(path).and_then(|metadata| {
        if metadata.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    });
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StateError::write(path)(error)),
        _ => Ok(()),
    }
}

/// Gives the finished directory its name. What had the name before is removed afterwards.
pub fn put_in_place(finished: &Path, target: &Path) -> Result<(), StateError> {
    match renameat_with(CWD, finished, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => remove(finished), // it holds the old content by now
        Err(Errno::NOENT) => fs::rename(finished, target).map_err(StateError::write(target)),
        Err(Errno::INVAL | Errno::NOSYS) => step_aside(finished, target),
        Err(error) => Err(StateError::write(target)(io::Error::from(error))),
    }
}

/// For file systems that cannot exchange names (NFS, some overlays): for an instant there is no such directory.
fn step_aside(finished: &Path, target: &Path) -> Result<(), StateError> {
    let old = beside(target, "replaced");
    remove(&old)?;
    fs::rename(target, &old).map_err(StateError::write(target))?;
    fs::rename(finished, target).map_err(StateError::write(target))?;
    remove(&old)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{beside, put_in_place, step_aside};

    fn two_directories(root: &Path) -> (PathBuf, PathBuf) {
        let target = root.join("data");
        let finished = beside(&target, "restoring");
        for (directory, content) in [(&target, "old"), (&finished, "new")] {
            fs::create_dir(directory).expect("made");
            fs::write(directory.join("file"), content).expect("written");
        }
        fs::write(target.join("stale"), "").expect("written");
        (finished, target)
    }

    fn replaced_by(put: impl Fn(&Path, &Path)) {
        let root = tempfile::tempdir().expect("a directory");
        let (finished, target) = two_directories(root.path());
        put(&finished, &target);
        assert_eq!(
            fs::read_to_string(target.join("file")).expect("read"),
            "new"
        );
        assert!(!target.join("stale").exists());
        assert_eq!(
            fs::read_dir(root.path()).expect("listed").count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_directory_is_replaced_whole() {
        replaced_by(|finished, target| put_in_place(finished, target).expect("put in place"));
    }

    #[test]
    fn the_same_where_names_cannot_be_exchanged() {
        replaced_by(|finished, target| step_aside(finished, target).expect("put in place"));
    }
}
