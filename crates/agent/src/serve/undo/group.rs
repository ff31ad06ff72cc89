//! Taking a control group away.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::serve::failure::Failure;

/// A process that was killed leaves its group when it has given its memory back, which takes large ones a while.
const TRIES: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// Kills what still runs in a group and in those that it has made below it, and removes them; one that is not there is
/// gone already.
pub fn disband(path: &str) -> Result<(), Failure> {
    for _ in 0..TRIES {
        empty(Path::new(path))?;
        match fs::remove_dir(path) {
            Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::system("remove", path, cause));
            }
            _ => return Ok(()),
        }
    }
    Err(Failure::Refused(format!(
        "{path} is not removed: its processes do not end"
    )))
}

fn empty(group: &Path) -> Result<(), Failure> {
    for below in fs::read_dir(group).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            empty(&below.path())?;
            let _ = fs::remove_dir(below.path()); // busy until its processes have ended: tried again
        }
    }
    kill_members(group)
}

fn kill_members(group: &Path) -> Result<(), Failure> {
    let path = group.join("cgroup.procs");
    let members = match fs::read_to_string(&path) {
        Ok(members) => members,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(Failure::system("read", path, cause)),
    };
    let numbers = members.lines().filter_map(|line| line.parse().ok());
    for pid in numbers.filter_map(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL); // one that has just ended is what is wanted
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_gone_is_disbanded() {
        let directory = tempfile::tempdir().expect("a directory");
        let group = directory.path().join("group");
        fs::create_dir_all(group.join("below/further")).expect("made");
        for _ in 0..2 {
            disband(group.to_str().expect("text")).expect("gone after it");
            assert!(!group.exists());
        }
    }

    #[test]
    fn what_is_no_empty_group_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("mine"), "kept").expect("written");
        let path = directory.path().to_str().expect("text");
        disband(path).expect_err("it has a file of somebody's");
        assert!(directory.path().join("mine").exists());
    }
}
