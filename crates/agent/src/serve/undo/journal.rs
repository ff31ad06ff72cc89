//! The undo journal: one JSON line per step, on disk before the step acts, and one when it is undone.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use fairtrial_protocol::step::{Check, Step};
use serde::{Deserialize, Serialize};

use crate::serve::failure::Failure;
use crate::serve::trust;
use crate::serve::undo::inverse::Way;

/// random(4): another one after every boot. Containers are given one of their own at every start.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// proc(5): `btime`, seconds since 1970, the kernel's own in a container, too; it moves when the clock is set.
const STATISTICS: &str = "/proc/stat";
/// No kernel boots again within so many seconds.
const SAME_BOOT_S: u64 = 3;

/// A step that was applied, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Counts from 0 in one journal.
    pub number: u64,
    /// What a person calls the step.
    pub name: String,
    /// The way back.
    pub way: Way,
    /// How to see whether the setting still holds.
    pub check: Option<Check>,
    /// The boot in which it acted; absent in journals of agents that did not note it.
    #[serde(default)]
    pub boot: Option<BootIdentity>,
}

/// One boot of a kernel, as far as it can be told from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootIdentity {
    /// Its random name.
    pub id: String,
    /// When it began, seconds since 1970.
    pub began_s: u64,
}

impl BootIdentity {
    fn this() -> Option<Self> {
        let id = fs::read_to_string(BOOT).ok()?;
        let statistics = fs::read_to_string(STATISTICS).ok()?;
        let began = statistics
            .lines()
            .find_map(|line| line.strip_prefix("btime "))?;
        Some(Self {
            id: id.trim().to_owned(),
            began_s: began.trim().parse().ok()?,
        })
    }

    fn is(&self, other: &Self) -> bool {
        self.id == other.id || self.began_s.abs_diff(other.began_s) <= SAME_BOOT_S
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Applying(Box<JournalEntry>),
    Undone(u64),
}

/// The journal of one place.
pub struct Journal {
    file: File,
    path: PathBuf,
    boot: Option<BootIdentity>,
    next: u64,
    /// Where the last whole line ends.
    end_bytes: u64,
}

impl Journal {
    /// Opens the journal and returns the steps in it that are to be undone, oldest first. A device or a mount of an
    /// earlier boot went with it, and what has its name now is somebody else's.
    pub fn open(path: &Path) -> Result<(Self, Vec<JournalEntry>), Failure> {
        let failed = |cause| Failure::system("open", path, cause);
        let mut file = trust::own_file(path, File::options().read(true).append(true))?;
        sync_directory(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = whole_lines(&bytes);
        let entries = outstanding(whole).map_err(|line| {
            Failure::Refused(format!(
                "line {line} of {} was not written by this agent: settings of an earlier run may not be restored; \
                 run the agent that wrote it once more, or restore them by hand and move the file away",
                path.display()
            ))
        })?;
        let next = entries.last().map_or(0, |entry| entry.number + 1);
        let mut journal = Self {
            file,
            path: path.to_owned(),
            boot: BootIdentity::this(),
            next,
            end_bytes: whole.len() as u64,
        };
        if whole.len() < bytes.len() {
            journal.cut_torn_line()?;
        }
        let (gone, left): (Vec<JournalEntry>, Vec<JournalEntry>) = entries
            .into_iter()
            .partition(|entry| journal.is_gone(entry));
        for entry in &gone {
            journal.undone(entry)?;
        }
        Ok((journal, left))
    }

    fn is_gone(&self, entry: &JournalEntry) -> bool {
        let is_of_another_boot = match (&entry.boot, &self.boot) {
            (Some(one), Some(other)) => !one.is(other),
            _ => false,
        };
        is_of_another_boot && entry.way.ends_with_a_boot()
    }

    /// Notes a step that is about to act.
    pub fn add(&mut self, step: &Step, way: Way) -> Result<JournalEntry, Failure> {
        let entry = JournalEntry {
            number: self.next,
            name: step.name.clone(),
            way,
            check: step.check.clone(),
            boot: self.boot.clone(),
        };
        self.note(&entry)?;
        self.next += 1;
        Ok(entry)
    }

    /// Notes a step of another journal, whose copy this is.
    pub fn note(&mut self, entry: &JournalEntry) -> Result<(), Failure> {
        self.write(&JournalLine::Applying(Box::new(entry.clone())))
    }

    /// Notes that a step was undone.
    pub fn undone(&mut self, entry: &JournalEntry) -> Result<(), Failure> {
        self.write(&JournalLine::Undone(entry.number))
    }

    /// Forgets everything, since everything is undone, and says whether it could. Failing is harmless where the lines
    /// say the same.
    pub fn clear(&mut self) -> bool {
        if self.end_bytes > 0 && self.file.set_len(0).is_ok() {
            self.end_bytes = 0;
            let _ = self.file.sync_all();
        }
        self.end_bytes == 0
    }

    /// Takes it away. Failing is harmless, as for `clear`.
    pub fn remove(mut self) {
        self.clear();
        let _ = fs::remove_file(&self.path);
    }

    /// A line cut by a crash or a full disk belongs to a step that never acted; the next line must not be glued to it.
    fn cut_torn_line(&mut self) -> Result<(), Failure> {
        self.file
            .set_len(self.end_bytes)
            .map_err(|cause| Failure::system("write", &self.path, cause))
    }

    fn write(&mut self, line: &JournalLine) -> Result<(), Failure> {
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
        match written {
            Ok(()) => {
                self.end_bytes += bytes.len() as u64;
                Ok(())
            }
            Err(cause) => {
                self.cut_torn_line()?;
                Err(Failure::system("write", &self.path, cause))
            }
        }
    }
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Everything up to the last newline: a line that has none was cut while it was written.
pub fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |position| position + 1)]
}

/// Steps that were not undone, oldest first; or the number of the first line that makes no sense.
pub fn outstanding(lines: &[u8]) -> Result<Vec<JournalEntry>, usize> {
    let mut entries: Vec<JournalEntry> = Vec::new();
    for (index, line) in lines.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match serde_json::from_slice(line).map_err(|_| index + 1)? {
            JournalLine::Applying(entry) => entries.push(*entry),
            JournalLine::Undone(number) => entries.retain(|entry| entry.number != number),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
