//! The way back of a step, worked out and complete before the step acts, so that anyone can follow it later.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::step::{Action, Inverse, Normalise, Step};
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

/// Files here may have a line for each device, and take one at a time ("Nested keyed" in
/// Documentation/admin-guide/cgroup-v2.rst).
const GROUPS: &str = "/sys/fs/cgroup";

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
        (Inverse::Restore {}, Action::Write { path, value }) => {
            let content =
                fs::read_to_string(path).map_err(|cause| Failure::system("read", path, cause))?;
            if let Some((path, value)) = coupled::partner(path, &content)? {
                return Ok(Way::Write { path, value });
            }
            require_one_line(path, &content, value)?;
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

/// Refuses a file of a control group that writing its content back would not restore: the kernel takes the line of a
/// device for that device alone, and nothing for no change.
fn require_one_line(path: &str, content: &str, value: &str) -> Result<(), Failure> {
    let device = |text: &str| {
        let word = text.split_whitespace().next()?;
        word.contains(':').then(|| word.to_owned())
    };
    let is_restored = content.lines().count() == 1 && device(content) == device(value);
    if is_restored || !Path::new(path).starts_with(GROUPS) {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{path} cannot be restored: it holds {content:?}, and writing that back would leave the line of {value:?}; \
         limit groups of the trial's own by `memory`, `io_limit` or `numa`"
    )))
}

/// Huge pages without those that are in use beyond what was asked for, which the kernel frees once they are not; it
/// counts them in the files of each size (Documentation/admin-guide/mm/hugetlbpage.rst).
fn less_surplus(path: &str, held: &str) -> Option<String> {
    let directory = path.strip_suffix("/nr_hugepages")?;
    let surplus = fs::read_to_string(format!("{directory}/surplus_hugepages")).ok()?;
    let (held, surplus): (u64, u64) = (held.trim().parse().ok()?, surplus.trim().parse().ok()?);
    Some(held.saturating_sub(surplus).to_string())
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

    /// A file that is written back and what it holds, where that is not what it held before the step.
    pub fn differing(&self, how: Normalise) -> Result<Option<String>, Failure> {
        let (Self::Write { path, value } | Self::WriteBoth { path, value, .. }) = self else {
            return Ok(None);
        };
        let held =
            fs::read_to_string(path).map_err(|cause| Failure::system("read", path, cause))?;
        let held = less_surplus(path, &held).unwrap_or(held);
        let is_same = [how, Normalise::Words, Normalise::Brackets]
            .iter()
            .any(|&how| normalise::equal(value, &held, how));
        Ok((!is_same).then(|| {
            let (held, value) = (held.trim(), value.trim());
            format!("{path} held {held:?} instead of {value:?}")
        }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_are_still_in_use_do_not_count_as_not_given_back() {
        let directory = tempfile::tempdir().expect("made");
        let path = directory.path().join("nr_hugepages").display().to_string();
        fs::write(&path, "1100\n").expect("written");
        let way = Way::Write {
            path,
            value: "0\n".into(),
        };
        assert!(way.differing(Normalise::Trim).expect("read").is_some());
        fs::write(directory.path().join("surplus_hugepages"), "1100\n").expect("written");
        assert_eq!(way.differing(Normalise::Trim).expect("read"), None);
    }

    #[test]
    fn a_line_of_a_device_is_refused_where_what_is_written_back_would_leave_it() {
        let group = "/sys/fs/cgroup/system.slice/x.service";
        let limit = "8:0 rbps=1048576 wbps=max riops=max wiops=max";
        let own = "8:0 rbps=5 wbps=max riops=max wiops=max\n";
        let other = own.replace("8:0", "8:16");
        for (file, content, value, is_taken) in [
            ("io.max", "", limit, false),
            ("io.max", &other, limit, false),
            ("io.max", &format!("{own}{other}"), limit, false),
            ("io.weight", "default 100\n", "8:0 200", false),
            ("io.max", own, limit, true),
            ("io.weight", "default 100\n", "default 200", true),
            ("cpu.max", "max 100000\n", "50000 100000", true),
            ("cpuset.cpus", "\n", "0-1", true),
        ] {
            let taken = require_one_line(&format!("{group}/{file}"), content, value);
            assert_eq!(taken.is_ok(), is_taken, "{file} {content:?}");
        }
        require_one_line("/srv/my.cnf", "", "port=8:0").expect("a plain file is restored whole");
    }
}
