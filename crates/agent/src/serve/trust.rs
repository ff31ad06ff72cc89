//! Who may write what this agent obeys: what stands in an undo journal is done as the agent's user.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::serve::failure::Failure;

/// Writing by the group and by others (`inode(7)`).
const OTHERS_WRITE: u32 = 0o022;

/// Nobody else may look what is there. Servers of an agent that is root run as another user, and go through.
const PRIVATE: u32 = 0o700;
const PASSABLE: u32 = 0o711;

/// Makes a directory, or takes the one that is there if nobody else may write to it.
pub fn own_directory(path: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(if geteuid().is_root() {
            PASSABLE
        } else {
            PRIVATE
        })
        .create(path)
        .map_err(|cause| Failure::system("create", path, cause))?;
    let metadata = path
        .metadata()
        .map_err(|cause| Failure::system("look at", path, cause))?;
    require_own(path, &metadata)
}

/// Opens a file of such a directory, which is made if it is not there; a link is not followed.
pub fn own_file(path: &Path, options: &mut OpenOptions) -> Result<File, Failure> {
    let failed = |cause| Failure::system("open", path, cause);
    let file = options
        .create(true)
        .mode(0o600) // who may read a file may lock it
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    require_own(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

fn require_own(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let own = geteuid().as_raw();
    if metadata.uid() == own && metadata.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{path} can be written by other users (owner {}, mode {:04o}), and what stands there is done as user {own}: \
         expected owner {own} and no write permission for group and others; look at what it holds, then \
         `chown {own} {path} && chmod go-w {path}`, or name another state directory",
        metadata.uid(),
        metadata.mode() & 0o7777,
        path = path.display(),
    )))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn open(path: &Path) -> Result<File, Failure> {
        own_file(path, File::options().read(true).append(true))
    }

    #[test]
    fn what_is_made_is_taken_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let state = directory.path().join("a/b");
        own_directory(&state).expect("made");
        own_directory(&state).expect("taken");
        let mode = state.metadata().expect("there").mode();
        assert_eq!(mode & 0o066, 0, "{mode:o}");
        open(&state.join("undo.jsonl")).expect("made");
        open(&state.join("undo.jsonl")).expect("taken");
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("undo.jsonl");
        open(&file).expect("made");
        for mode in [0o620, 0o602, 0o666] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
            let refused = open(&file).expect_err("others may write");
            assert!(
                refused
                    .to_string()
                    .contains("can be written by other users")
            );
        }
        for mode in [0o775, 0o757, 0o1777] {
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).expect("set");
            let refused = own_directory(directory.path()).expect_err("others may write");
            assert!(refused.to_string().contains(&format!("mode {mode:04o}")));
        }
    }

    #[test]
    fn what_is_another_users_is_refused() {
        if !geteuid().is_root() {
            return; // only root gives files away
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("undo.jsonl");
        open(&file).expect("made");
        chown(&file, Some(65534), None).expect("given away");
        assert!(open(&file).is_err());
        chown(directory.path(), Some(65534), None).expect("given away");
        let refused = own_directory(directory.path()).expect_err("another user's");
        assert!(refused.to_string().contains("owner 65534"));
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let link = directory.path().join("undo.jsonl");
        symlink(directory.path().join("elsewhere"), &link).expect("a link");
        assert!(open(&link).is_err());
        assert!(!directory.path().join("elsewhere").exists());
    }
}
