//! What there is to copy.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::StateError;

/// Permission bits, the set-id and sticky bits included.
const MODE_MASK: u32 = 0o7777;

/// A file or directory below the root of the tree.
pub struct TreeEntry {
    /// Relative to the root; empty for the root itself.
    pub path: PathBuf,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub bytes: u64,
}

/// A symbolic link and what it says.
pub struct SymbolicLink {
    pub entry: TreeEntry,
    pub target: PathBuf,
}

/// A directory tree.
pub struct DirectoryTree {
    /// Each after the one that holds it, the root first.
    pub directories: Vec<TreeEntry>,
    /// The largest first.
    pub files: Vec<TreeEntry>,
    pub links: Vec<SymbolicLink>,
}

/// Lists a directory tree; links are not followed.
pub fn survey(root: &Path) -> Result<DirectoryTree, StateError> {
    let of_root = fs::metadata(root).map_err(StateError::read(root))?;
    let directories = vec![TreeEntry::new(PathBuf::new(), &of_root)];
    let mut tree = DirectoryTree {
        directories,
        files: Vec::new(),
        links: Vec::new(),
    };
    let mut next = 0;
    while let Some(directory) = tree.directories.get(next) {
        let relative = directory.path.clone();
        let absolute = root.join(&relative);
        for entry in fs::read_dir(&absolute).map_err(StateError::read(&absolute))? {
            let entry = entry.map_err(StateError::read(&absolute))?;
            let path = entry.path();
            let metadata = entry.metadata().map_err(StateError::read(&path))?;
            let child = TreeEntry::new(relative.join(entry.file_name()), &metadata);
            if metadata.is_dir() {
                tree.directories.push(child);
            } else if metadata.is_file() {
                tree.files.push(child);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).map_err(StateError::read(&path))?;
                tree.links.push(SymbolicLink {
                    entry: child,
                    target,
                });
            }
        }
        next += 1;
    }
    tree.files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    Ok(tree)
}

impl TreeEntry {
    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        Self {
            path,
            mode: metadata.permissions().mode() & MODE_MASK,
            user: metadata.uid(),
            group: metadata.gid(),
            bytes: metadata.len(),
        }
    }
}
