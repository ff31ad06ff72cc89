//! A prepared directory, and where it is restored to.

use std::fs;
use std::path::{Path, PathBuf};

use fairtrial_protocol::state::{Restore, Restored};
use fairtrial_state::{StateError, restore};
use tempfile::TempDir;

pub struct PreparedData {
    pub directory: TempDir,
}

impl PreparedData {
    pub fn new() -> Self {
        let data = Self {
            directory: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(data.prepared()).expect("made");
        data
    }

    pub fn prepared(&self) -> PathBuf {
        self.directory.path().join("prepared")
    }

    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work").join("data")
    }

    pub fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.prepared().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, content).expect("written");
        path
    }

    pub fn restore(&self) -> Result<Restored, StateError> {
        restore(&parameters(&self.prepared(), &self.work()))
    }

    /// Nothing but the work directory itself may be left where it is.
    pub fn is_tidy(&self) -> bool {
        let parent = self.directory.path().join("work");
        fs::read_dir(parent)
            .expect("listed")
            .all(|entry| entry.expect("an entry").file_name() == "data")
    }
}

pub fn parameters(from: &Path, to: &Path) -> Restore {
    let text = |path: &Path| path.to_str().expect("plain").to_owned();
    Restore {
        from: text(from),
        to: text(to),
        user: None,
    }
}
