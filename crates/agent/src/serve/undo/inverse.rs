//! The way back of a step, worked out and complete before the step acts, so that anyone can follow it later.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::step::{Action, Inverse, Step};
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use crate::serve::failure::Failure;
use crate::serve::processes::Processes;
use crate::serve::undo::{act, coupled, group, mounts, normalise};

/// A mount may be busy for a moment after its last user was killed.
const UNMOUNT_TRIES: u32 = 50;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

/// What lies there lasts as long as the kernel runs.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The only file known that marks its choice with parentheses (kernel/sched/debug.c); elsewhere they are content.
const PARENTHESISED: &str = "debug/sched/preempt";

/// A way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Way {
    /// Write what was there.
    Write {
        /// File.
        path: String,
        /// Its previous content, or the bracketed word of it.
        value: String,
    },
    /// Write what was there, and then what that changes beside it.
    WriteBoth {
        /// File.
        path: String,
        /// Its previous content, or the bracketed word of it.
        value: String,
        /// The file that changes with it.
        beside: String,
        /// That file's previous content.
        beside_value: String,
    },
    /// Unmount.
    Unmount {
        /// Mount point.
        target: String,
    },
    /// Remove a directory with everything below it.
    Remove {
        /// The directory.
        path: String,
    },
    /// Kill what runs in a control group and remove it.
    Disband {
        /// Its directory.
        path: String,
    },
    /// Run a program.
    Execute {
        /// Program and arguments.
        argv: Vec<String>,
        /// Whether what it takes back is not this machine's.
        #[serde(default)]
        lasting: bool,
    },
    /// Nothing to undo.
    Nothing,
}

/// Works the way back out; what is restored is read now.
pub fn way_back(step: &Step) -> Result<Way, Failure> {
    match (&step.inverse, &step.action) {
        (Inverse::None {}, _) => Ok(Way::Nothing),
        (Inverse::Execute { argv, lasting }, _) => Ok(Way::Execute {
            argv: argv.clone(),
            lasting: *lasting,
        }),
        (Inverse::Restore {}, Action::Write { path, .. }) => {
            let content =
                fs::read_to_string(path).map_err(|cause| Failure::system("read", path, cause))?;
            if let Some((path, value)) = coupled::partner(path, &content)? {
                return Ok(Way::Write { path, value });
            }
            let value = choice(path, &content).map_or(content.clone(), str::to_owned);
            let path = path.clone();
            Ok(match coupled::overwritten(&path) {
                Some((beside, beside_value)) => Way::WriteBoth {
                    path,
                    value,
                    beside,
                    beside_value,
                },
                None => Way::Write { path, value },
            })
        }
        (Inverse::Restore {}, Action::Mount { target, .. }) => Ok(Way::Unmount {
            target: target.clone(),
        }),
        (Inverse::Restore {}, Action::Create { path } | Action::Group { path })
            if Path::new(path).exists() =>
        {
            Err(Failure::Refused(format!(
                "{path} exists already: undoing would remove it"
            )))
        }
        (Inverse::Restore {}, Action::Group { path }) => Ok(Way::Disband { path: path.clone() }),
        (Inverse::Restore {}, Action::Create { path }) => Ok(Way::Remove { path: path.clone() }),
        (Inverse::Restore {}, Action::Execute { .. }) => Err(Failure::Invalid(format!(
            "{}: what a program changed can only be undone by a program",
            step.name
        ))),
    }
}

/// The word of a file's content that is in effect, where the file shows a choice.
fn choice<'text>(path: &str, content: &'text str) -> Option<&'text str> {
    if Path::new(path).ends_with(PARENTHESISED) {
        return normalise::parenthesised(content);
    }
    normalise::bracketed(content)
}

impl Way {
    /// Whether what it takes back cannot outlast the boot it was made in: all but files on a disk and what is not the
    /// machine's. A program's files are in the trial's directory, which goes when a place is next opened for a run.
    pub fn ends_with_a_boot(&self) -> bool {
        match self {
            Self::Write { path, .. } | Self::WriteBoth { path, .. } | Self::Remove { path } => {
                OF_THE_KERNEL
                    .iter()
                    .any(|place| Path::new(path).starts_with(place))
            }
            Self::Execute { .. } => !self.is_elsewhere(),
            Self::Unmount { .. } | Self::Disband { .. } | Self::Nothing => true,
        }
    }

    /// Whether what it takes back is not the machine's own.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Execute { lasting: true, .. })
    }

    /// Goes back. Going twice is going once: the agent may die between doing it and noting it.
    pub fn follow(&self, processes: &Processes) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Write { path, value } => act::write(path, value, processes, true),
            Self::WriteBoth {
                path,
                value,
                beside,
                beside_value,
            } => {
                act::write(path, value, processes, true)?;
                restore_beside(beside, beside_value, processes)
            }
            Self::Execute { argv, .. } => act::execute(argv, processes, true),
            Self::Unmount { target } => take_down(target),
            Self::Remove { path } => remove(path),
            Self::Disband { path } => group::disband(path),
        }
    }
}

/// A device may not let it be written, and then it has not changed.
fn restore_beside(path: &str, value: &str, processes: &Processes) -> Result<(), Failure> {
    let now = fs::read_to_string(path).map_err(|cause| Failure::system("read", path, cause))?;
    if now == value {
        return Ok(());
    }
    act::write(path, value, processes, true)
}

fn take_down(target: &str) -> Result<(), Failure> {
    let mut tries = 0;
    while mounts::is_mount_point(target)? {
        match unmount(target, UnmountFlags::empty()) {
            Ok(()) => {}
            Err(rustix::io::Errno::BUSY) if tries < UNMOUNT_TRIES => thread::sleep(UNMOUNT_PAUSE),
            Err(cause) => return Err(Failure::system("unmount", target, cause)),
        }
        tries += 1;
    }
    Ok(())
}

fn remove(path: &str) -> Result<(), Failure> {
    if mounts::any_below(path)? {
        // Removing would empty the mounted file system.
        return Err(Failure::Refused(format!(
            "{path} is not removed: something is still mounted there"
        )));
    }
    match fs::remove_dir_all(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Failure::system("remove", path, cause))
        }
        _ => Ok(()),
    }
}
