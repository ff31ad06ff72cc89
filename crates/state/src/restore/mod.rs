//! Prepared data copied to a work directory: by reflink where the file system can, else sparse and in parallel.
//!
//! The copy grows beside the work directory and takes its place only when it is whole, so that a restore that was cut
//! off leaves the old directory or the new one, never a mixture. Nothing is synced here: settling does that.

mod exchange;
mod file;
mod tree;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fairtrial_protocol::state::{Restore, Restored};
use rustix::process::geteuid;

use crate::error::StateError;
use crate::owner::{Account, owner_named};
use file::{Copier, CopySize, SourceTree};
use tree::{DirectoryTree, TreeEntry};

/// More threads than this only make one disk seek.
const MOST_THREADS: usize = 8;

/// While a directory is being filled, only its owner may look.
const UNFINISHED: u32 = 0o700;

/// Copies prepared data to a work directory, which is replaced if it exists.
///
/// Permissions and symbolic links are kept; sockets, pipes and devices, which mean nothing without their process, are
/// left out. An agent that is root gives the copy to `user`, or keeps each file's owner if none is named.
pub fn restore(parameters: &Restore) -> Result<Restored, StateError> {
    let owner = owner_named(parameters.user.as_deref())?;
    let (from, to) = (
        PathBuf::from(&parameters.from),
        PathBuf::from(&parameters.to),
    );
    if !from.is_dir() {
        return Err(StateError::Missing { path: from });
    }
    let to = resolved(&to)?;
    refuse_overlap(&from, &to)?;
    let unfinished = exchange::beside(&to, "restoring");
    exchange::remove(&unfinished)?;
    let outcome = fill(&from, &unfinished, owner.as_ref());
    if outcome.is_err() {
        let _ = exchange::remove(&unfinished); // the first error is the one to tell
    }
    let restored = outcome?;
    exchange::put_in_place(&unfinished, &to)?;
    Ok(restored)
}

/// The target with its parents made and their links followed.
fn resolved(to: &Path) -> Result<PathBuf, StateError> {
    let (parent, name) = to
        .parent()
        .zip(to.file_name())
        .ok_or_else(|| StateError::Write {
            path: to.to_owned(),
            source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
        })?;
    fs::create_dir_all(parent).map_err(StateError::write(parent))?;
    Ok(parent
        .canonicalize()
        .map_err(StateError::write(parent))?
        .join(name))
}

fn refuse_overlap(from: &Path, to: &Path) -> Result<(), StateError> {
    let from = from.canonicalize().map_err(StateError::read(from))?;
    let target = to.canonicalize().unwrap_or_else(|_| to.to_owned());
    if from.starts_with(&target) || target.starts_with(&from) {
        return Err(StateError::Overlap {
            from,
            to: to.to_owned(),
        });
    }
    Ok(())
}

fn fill(from: &Path, to: &Path, owner: Option<&Account>) -> Result<Restored, StateError> {
    let source = SourceTree::open(from)?;
    let tree = tree::survey(from)?;
    for directory in &tree.directories {
        let path = to.join(&directory.path);
        fs::create_dir(&path).map_err(StateError::write(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(UNFINISHED))
            .map_err(StateError::write(&path))?;
    }
    let method = Copier::default();
    let copied = copy_files(&tree, |file| {
        let target = to.join(&file.path);
        let copied = method.copy(&source, &file.path, &target)?;
        finish(file, &target, owner)?;
        Ok(copied)
    })?;
    for link in &tree.links {
        let path = to.join(&link.entry.path);
        symlink(&link.target, &path).map_err(StateError::write(&path))?;
        give(&link.entry, &path, owner)?;
    }
    // A directory's own permissions come last, deepest first: they may forbid to write in it.
    for directory in tree.directories.iter().rev() {
        finish(directory, &to.join(&directory.path), owner)?;
    }
    Ok(Restored {
        method: method.name().to_owned(),
        files: tree.files.len() as u64,
        bytes: copied.iter().map(|copied| copied.data_bytes).sum(),
    })
}

/// Copies all files, each by the next free thread; the largest go first, so that none is left for the end.
fn copy_files<F>(tree: &DirectoryTree, copy: F) -> Result<Vec<CopySize>, StateError>
where
    F: Fn(&TreeEntry) -> Result<CopySize, StateError> + Sync,
{
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(file) = tree.files.get(next.fetch_add(1, Ordering::Relaxed)) {
            match copy(file) {
                Ok(copied) => done.push(copied),
                Err(error) => {
                    next.store(tree.files.len(), Ordering::Relaxed); // the others stop too
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_THREADS));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let outcomes = workers
            .into_iter()
            .map(|worker| worker.join().expect("a copying thread does not panic"));
        outcomes
            .collect::<Result<Vec<_>, _>>()
            .map(|done| done.into_iter().flatten().collect())
    })
}

/// Owner first: changing it clears the set-user-id bits.
fn finish(entry: &TreeEntry, path: &Path, owner: Option<&Account>) -> Result<(), StateError> {
    give(entry, path, owner)?;
    fs::set_permissions(path, Permissions::from_mode(entry.mode)).map_err(StateError::write(path))
}

fn give(entry: &TreeEntry, path: &Path, owner: Option<&Account>) -> Result<(), StateError> {
    if !geteuid().is_root() {
        return Ok(()); // only root may give files away
    }
    let (user, group) = match owner {
        Some(owner) => (owner.user.as_raw(), owner.group.as_raw()),
        None => (entry.user, entry.group),
    };
    lchown(path, Some(user), Some(group)).map_err(StateError::write(path))
}
