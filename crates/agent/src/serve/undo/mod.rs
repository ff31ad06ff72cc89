//! Steps applied to the place, and the way back.
//!
//! The way back is on disk before a step acts, so the place is restored at the latest when an agent next starts here.

mod act;
mod coupled;
mod group;
mod inverse;
pub mod journal;
mod mounts;
mod normalise;
mod read_back;

use std::fs;
use std::path::Path;

use fairtrial_protocol::step::{Inverse, Step};

use crate::serve::failure::Failure;
use crate::serve::machine::Machine;
use crate::serve::processes::Processes;
use journal::{Journal, JournalEntry};

/// Steps applied and not undone, oldest first.
pub struct AppliedSteps {
    machine: Machine,
    journal: Journal,
    /// The same beside the machine's lock, while that is held.
    copy: Option<Journal>,
    entries: Vec<JournalEntry>,
    /// How many of them a dead session left elsewhere, where they cannot be undone now.
    left: usize,
}

/// What a check read around a step, raw.
#[derive(Debug, Default)]
pub struct CheckValues {
    /// Before it; absent without a check.
    pub before: Option<String>,
    /// After it; absent without a check.
    pub read_back: Option<String>,
}

/// What undoing did.
#[derive(Debug, Default)]
pub struct Report {
    /// Steps undone.
    pub steps: usize,
    /// Steps that could not be, in words.
    pub failed: Vec<String>,
    /// Names of settings that no longer held their value.
    pub disturbed: Vec<String>,
    /// Files of theirs that did not hold what was restored either, and what they held.
    pub overwritten: Vec<String>,
}

impl AppliedSteps {
    /// Opens the place's journal and undoes what a dead session left in it.
    pub fn open(
        state_directory: &Path,
        machine: Machine,
        processes: &Processes,
    ) -> Result<(Self, Report), Failure> {
        let path = state_directory.join("undo.jsonl");
        let had_entries = path.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let (journal, entries) = Journal::open(&path)?;
        let is_elsewhere = !entries.is_empty() && !changes_machine(&entries);
        let mut applied = Self {
            machine,
            journal,
            copy: None,
            entries,
            left: 0,
        };
        let mut report = Report::default();
        if had_entries && !is_elsewhere {
            applied.hold(processes, &mut Report::default())?;
        } else if applied.machine.is_left() {
            match applied.hold(processes, &mut report) {
                Ok(()) | Err(Failure::Busy { .. }) => {}
                Err(failure) => report.failed.push(failure.to_string()), // only who changes something is refused
            }
        }
        applied.undo_into(&mut report, 0, processes);
        if !changes_machine(&applied.entries) {
            applied.left = applied.entries.len();
        }
        Ok((applied, report))
    }

    /// Lets who changes the machine next wait instead of being refused.
    pub fn ending(&mut self) {
        self.machine.ending();
    }

    /// How many steps are applied.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Applies a step and reads it back. A step that fails or does not read back is undone.
    pub fn apply(&mut self, step: &Step, processes: &Processes) -> Result<CheckValues, Failure> {
        let is_elsewhere = matches!(step.inverse, Inverse::Execute { lasting: true, .. });
        let held = if is_elsewhere {
            Ok(())
        } else {
            self.hold(processes, &mut Report::default())
        };
        let applied = held.and_then(|()| self.apply_held(step, processes));
        self.free_if_undone();
        applied
    }

    /// Takes the machine's lock, unless it is held, and begins the copy that lies beside it. What a dead session's copy
    /// restored is added to the report.
    fn hold(&mut self, processes: &Processes, report: &mut Report) -> Result<(), Failure> {
        if self.machine.is_held() {
            return Ok(());
        }
        self.machine.hold(changes_machine(&self.entries), |copy| {
            restore(copy, processes, report)
        })?;
        let path = self.machine.copy();
        self.copy = path.map(|path| self.copied(&path)).transpose()?;
        Ok(())
    }

    fn copied(&self, path: &Path) -> Result<Journal, Failure> {
        let (mut copy, _) = Journal::open(path)?;
        self.entries.iter().try_for_each(|entry| copy.note(entry))?;
        Ok(copy)
    }

    fn apply_held(&mut self, step: &Step, processes: &Processes) -> Result<CheckValues, Failure> {
        let before = read(step, processes)?;
        let way = inverse::way_back(step)?;
        let entry = self.journal.add(step, way)?;
        let noted = self.copy.as_mut().map_or(Ok(()), |copy| copy.note(&entry));
        self.entries.push(entry);
        let outcome = noted
            .and_then(|()| act::act(&step.action, processes))
            .and_then(|()| compare(step, before, processes));
        if outcome.is_err() {
            let report = self.undo(self.entries.len() - 1, processes);
            if !report.failed.is_empty() {
                return outcome.map_err(|failure| {
                    Failure::Refused(format!(
                        "{failure}; and it cannot be undone: {}",
                        report.failed.join("; ")
                    ))
                });
            }
        }
        outcome
    }

    /// Undoes steps, newest first, until `keep` are left. One that fails is reported and kept in the journal: the next
    /// agent tries again. What a dead session left elsewhere is that one's, too: this session has told of it.
    pub fn undo(&mut self, keep: usize, processes: &Processes) -> Report {
        let mut report = Report::default();
        self.undo_into(&mut report, keep, processes);
        report
    }

    fn undo_into(&mut self, report: &mut Report, keep: usize, processes: &Processes) {
        let keep = keep.max(self.left);
        let (mut stuck, mut unnoted) = (Vec::new(), Vec::new());
        let mut early = asked_early(self.entries.get(keep..).unwrap_or_default(), processes);
        while self.entries.len() > keep {
            let Some(entry) = self.entries.pop() else {
                break;
            };
            let asked = early.pop().flatten();
            match take_back(&entry, asked, processes, report) {
                Err(failure) => {
                    report.failed.push(format!("{}: {failure}", entry.name));
                    stuck.push(entry);
                }
                Ok(()) => match self.note_undone(&entry) {
                    Ok(()) => report.steps += 1,
                    Err(failure) => unnoted.push((entry, failure)),
                },
            }
        }
        // A full disk takes no line, and lets a file be emptied.
        if stuck.is_empty()
            && self.entries.is_empty()
            && !unnoted.is_empty()
            && self.journal.clear()
        {
            report.steps += unnoted.len();
            unnoted.clear();
        }
        for (entry, failure) in unnoted {
            report.failed.push(format!("{}: {failure}", entry.name));
            stuck.push(entry);
        }
        stuck.sort_by_key(|entry| entry.number);
        self.entries.extend(stuck);
        self.free_if_undone();
    }

    fn note_undone(&mut self, entry: &JournalEntry) -> Result<(), Failure> {
        self.journal.undone(entry)?;
        self.copy.as_mut().map_or(Ok(()), |copy| copy.undone(entry))
    }

    /// What is left elsewhere, such as options of a server that is down, stays in the journal and holds nobody up.
    fn free_if_undone(&mut self) {
        if self.entries.is_empty() {
            self.journal.clear();
        }
        if !changes_machine(&self.entries) {
            if let Some(copy) = self.copy.take() {
                copy.remove();
            }
            self.machine.free();
        }
    }
}

fn changes_machine(entries: &[JournalEntry]) -> bool {
    entries.iter().any(|entry| !entry.way.is_elsewhere())
}

/// Undoes by the copy of a journal whose directory is away; false if there is none.
fn restore(copy: &Path, processes: &Processes, report: &mut Report) -> Result<bool, Failure> {
    if fs::symlink_metadata(copy).is_err() {
        return Ok(false);
    }
    let (mut journal, entries) = Journal::open(copy)?;
    let mut early = asked_early(&entries, processes);
    for entry in entries.iter().rev() {
        take_back(entry, early.pop().flatten(), processes, report)
            .and_then(|()| journal.undone(entry))
            .map_err(|failure| Failure::Refused(format!("{}: {failure}", entry.name)))?;
        report.steps += 1;
    }
    journal.remove();
    Ok(true)
}

/// Goes a step's way back and looks whether it led there: the kernel may take less than is written, or nothing.
fn take_back(
    entry: &JournalEntry,
    asked: Option<bool>,
    processes: &Processes,
    report: &mut Report,
) -> Result<(), Failure> {
    let differing = || match &entry.check {
        Some(check) => entry.way.differing(check.normalise),
        None => Ok(None),
    };
    if asked.unwrap_or_else(|| is_disturbed(entry, processes)) {
        report.disturbed.push(entry.name.clone());
        // A later step's way back may have set it right by now.
        if is_disturbed(entry, processes) {
            report.overwritten.extend(differing().ok().flatten());
        }
    }
    entry.way.follow(processes)?;
    differing()?.map_or(Ok(()), |held| {
        Err(Failure::Refused(format!(
            "after it was written back, {held}"
        )))
    })
}

/// Whether each step is disturbed, while all of them are applied: a way back may restore a file of another step, too.
/// None for one whose check a later step has taken over: it is asked once that is undone.
fn asked_early(entries: &[JournalEntry], processes: &Processes) -> Vec<Option<bool>> {
    let mut later = Vec::new();
    let mut asked: Vec<_> = entries
        .iter()
        .rev()
        .map(|entry| {
            let read = entry.check.as_ref().map(|check| &check.read);
            let is_last = !later.contains(&read);
            later.push(read);
            is_last.then(|| is_disturbed(entry, processes))
        })
        .collect();
    asked.reverse();
    asked
}

fn is_disturbed(entry: &JournalEntry, processes: &Processes) -> bool {
    let Some(check) = &entry.check else {
        return false;
    };
    match read_back::read(&check.read, processes, true) {
        Ok(value) => !normalise::equal(&check.expect, &value, check.normalise),
        Err(_) => true,
    }
}

fn compare(
    step: &Step,
    before: Option<String>,
    processes: &Processes,
) -> Result<CheckValues, Failure> {
    let read_back = read(step, processes)?;
    if let (Some(check), Some(value)) = (&step.check, &read_back)
        && !normalise::equal(&check.expect, value, check.normalise)
    {
        return Err(Failure::Check {
            name: step.name.clone(),
            expected: check.expect.clone(),
            before: before.unwrap_or_default(),
            read_back: value.clone(),
        });
    }
    Ok(CheckValues { before, read_back })
}

fn read(step: &Step, processes: &Processes) -> Result<Option<String>, Failure> {
    step.check
        .as_ref()
        .map(|check| read_back::read(&check.read, processes, false))
        .transpose()
}
