//! Why a place could not be brought to a known state.

use std::io;
use std::path::{Path, PathBuf};

/// Why a place could not be brought to a known state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There are no prepared data where they should be.
    #[error("there is no directory {path} to restore from")]
    Missing {
        /// The prepared directory.
        path: PathBuf,
    },
    /// One of the two directories holds the other, so replacing one would destroy the other.
    #[error("{from} cannot be restored to {to}: one holds the other")]
    Overlap {
        /// The prepared directory.
        from: PathBuf,
        /// The work directory.
        to: PathBuf,
    },
    /// The owner of the copy is not known.
    #[error("no user {name} in /etc/passwd")]
    User {
        /// As asked.
        name: String,
    },
    /// The file system is full, or a quota is used up.
    #[error("no space left to write {path}")]
    Full {
        /// What was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or directory cannot be created, written, replaced or removed.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StateError {
    /// What the user can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "remove the prepared data of that key; fairtrial makes them again when next needed"
            }
            Self::Overlap { .. } => "choose a work directory outside the prepared data",
            Self::User { .. } => {
                "create the user, or run the agent as the user that should own the data"
            }
            Self::Full { .. } => {
                "free space there, or set FAIRTRIAL_STATE_DIRECTORY to a larger file system; a guest's disk is as large as \
                 `place.vm.disk` says"
            }
            Self::Read { .. } => {
                "check the permissions, and the kernel's log for errors of the disk"
            }
            Self::Write { .. } => {
                "check the permissions and whether the file system is mounted read-only"
            }
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                path: path.to_owned(),
                source,
            },
            _ => Self::Write {
                path: path.to_owned(),
                source,
            },
        }
    }
}
