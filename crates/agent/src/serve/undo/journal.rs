//! The undo journal: one JSON line per step, on disk before the step acts, and one when it is undone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtrial_protocol::step::{Check, Step};
use serde::{Deserialize, Serialize};

use crate::serve::failure::Failure;
use crate::serve::undo::inverse::Way;

/// A step that was applied, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 0 in one journal.
    pub number: u64,
    /// What a person calls the step.
    pub name: String,
    /// The way back.
    pub way: Way,
    /// How to see whether the setting still holds.
    pub check: Option<Check>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Applying(Entry),
    Undone(u64),
}

/// The journal of one place.
pub struct Journal {
    file: File,
    path: PathBuf,
    next: u64,
}

impl Journal {
    /// Opens the journal and returns the steps in it that were not undone, oldest first.
    pub fn open(path: &Path) -> Result<(Self, Vec<Entry>), Failure> {
        let failed = |cause| Failure::system("open", path, cause);
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(failed)?;
        sync_directory(path).map_err(failed)?;
        let entries = outstanding(&fs::read_to_string(path).map_err(failed)?);
        let next = entries.last().map_or(0, |entry| entry.number + 1);
        let mut journal = Self {
            file,
            path: path.to_owned(),
            next,
        };
        journal.end_torn_line()?;
        Ok((journal, entries))
    }

    /// Notes a step that is about to act.
    pub fn add(&mut self, step: &Step, way: Way) -> Result<Entry, Failure> {
        let entry = Entry {
            number: self.next,
            name: step.name.clone(),
            way,
            check: step.check.clone(),
        };
        self.write(&Line::Applying(entry.clone()))?;
        self.next += 1;
        Ok(entry)
    }

    /// Notes that a step was undone.
    pub fn undone(&mut self, entry: &Entry) -> Result<(), Failure> {
        self.write(&Line::Undone(entry.number))
    }

    /// Forgets everything, since everything is undone. Failing is harmless: the lines say the same.
    pub fn clear(&mut self) {
        let _ = self.file.set_len(0).and_then(|()| self.file.sync_all());
    }

    /// A line cut by a crash belongs to a step that never acted; the next line must not be glued to it.
    fn end_torn_line(&mut self) -> Result<(), Failure> {
        let text =
            fs::read(&self.path).map_err(|cause| Failure::system("read", &self.path, cause))?;
        if text.last().is_some_and(|last| *last != b'\n') {
            self.append(b"\n")
        } else {
            Ok(())
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text =
            serde_json::to_vec(line).map_err(|cause| Failure::Invalid(cause.to_string()))?;
        text.push(b'\n');
        self.append(&text)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data());
        written.map_err(|cause| Failure::system("write", &self.path, cause))
    }
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

fn outstanding(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
    {
        match line {
            Line::Applying(entry) => entries.push(entry),
            Line::Undone(number) => entries.retain(|entry| entry.number != number),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairtrial_protocol::step::{Action, Inverse};

    fn step(name: &str) -> Step {
        Step {
            name: name.to_owned(),
            action: Action::Create {
                path: format!("/{name}"),
            },
            check: None,
            inverse: Inverse::Restore,
        }
    }

    fn names(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn what_was_not_undone_is_found_again_after_a_kill() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("undo.jsonl");
        let (mut journal, found) = Journal::open(&path).expect("opens");
        assert!(found.is_empty());
        let added: Vec<Entry> = ["a", "b", "c"]
            .map(|name| journal.add(&step(name), Way::Nothing).expect("written"))
            .into();
        journal.undone(&added[1]).expect("written");
        drop(journal);

        let (mut journal, found) = Journal::open(&path).expect("opens");
        assert_eq!(names(&found), ["a", "c"]);
        let next = journal.add(&step("d"), Way::Nothing).expect("written");
        assert_eq!(
            next.number, 3,
            "numbers are not reused while any is outstanding"
        );
        journal.clear();
        assert!(Journal::open(&path).expect("opens").1.is_empty());
    }

    #[test]
    fn a_torn_last_line_is_of_a_step_that_never_acted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("undo.jsonl");
        Journal::open(&path)
            .expect("opens")
            .0
            .add(&step("whole"), Way::Nothing)
            .expect("written");
        let whole = fs::read(&path).expect("readable");
        fs::write(&path, [&whole[..], &whole[..whole.len() / 2]].concat()).expect("writable");

        let (mut journal, found) = Journal::open(&path).expect("opens");
        assert_eq!(names(&found), ["whole"]);
        journal.add(&step("after"), Way::Nothing).expect("written");
        assert_eq!(
            names(&Journal::open(&path).expect("opens").1),
            ["whole", "after"]
        );
    }
}
