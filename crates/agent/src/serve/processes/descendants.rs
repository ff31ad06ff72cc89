//! Finding and stopping whatever a session started, directly or not.
//!
//! Two traces lead to a process: its line of parents (the agent inherits orphans, so the line never breaks while it
//! lives), and the mark in its environment (which survives the agent).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process, test_kill_process};

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::limits::Limits;

/// In the environment of every process of a session and of whatever they start: how a later agent finds them.
pub const MARK: &str = "FAIRTRIAL_SESSION";

/// Between two looks for what still runs.
const POLL: Duration = Duration::from_millis(20);

/// A process, told apart from a later one with its number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: i32,
    start_ticks: u64,
}

/// A process, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub process: ProcessIdentity,
    /// Number of the process that it is a child of.
    pub parent: i32,
    /// Number of its process group.
    pub group: i32,
}

/// Stops what a living session started, but for those to `spare` and other users': SIGTERM, then SIGKILL to what remains
/// after the grace; returns how many outlive that.
pub fn stop(session: &str, limits: Limits, spare: impl Fn(ProcessIdentity) -> bool) -> usize {
    let find = || {
        let mut found = of_session(session);
        found.retain(|process| !spare(*process) && may_signal(*process));
        found
    };
    let mut signalled = HashSet::new();
    until_gone(
        find,
        limits.grace,
        || false,
        |process| {
            if signalled.insert(process) {
                signal(process, Signal::TERM);
            }
        },
    );
    kill(find, limits.hang).1
}

/// Whether this process may signal another: one of another user outlives anything.
fn may_signal(process: ProcessIdentity) -> bool {
    Pid::from_raw(process.pid).is_some_and(|pid| test_kill_process(pid) != Err(Errno::PERM))
}

/// Looks for processes, and acts on each, again and again until none is left, `limit` is over or somebody else `ends`
/// it; returns how many are left. Each look reads all of `/proc`, which takes a while on a busy machine.
pub fn until_gone<T>(
    find: impl Fn() -> Vec<T>,
    limit: Duration,
    ends: impl Fn() -> bool,
    mut act: impl FnMut(T),
) -> usize {
    let limit_ns = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
    let deadline_ns = monotonic_ns().saturating_add(limit_ns);
    loop {
        let running = find();
        if running.is_empty() || monotonic_ns() >= deadline_ns || ends() {
            return running.len();
        }
        running.into_iter().for_each(&mut act);
        thread::sleep(POLL);
    }
}

/// Kills everything a dead session left behind; returns how many processes that were.
pub fn kill_marked(session: &str, limit: Duration) -> usize {
    let find = || {
        processes()
            .into_iter()
            .map(|found| found.process)
            .filter(|process| is_marked(*process, MARK, session))
            .collect()
    };
    kill(find, limit).0
}

/// How many were killed, and how many of them are left.
fn kill(find: impl Fn() -> Vec<ProcessIdentity>, limit: Duration) -> (usize, usize) {
    let mut killed = HashSet::new();
    let left = until_gone(
        find,
        limit,
        || false,
        |process| {
            signal(process, Signal::KILL);
            killed.insert(process);
        },
    );
    (killed.len(), left)
}

fn of_session(session: &str) -> Vec<ProcessIdentity> {
    let all = processes();
    let parents: HashMap<i32, i32> = all
        .iter()
        .map(|found| (found.process.pid, found.parent))
        .collect();
    let agent = getpid().as_raw_nonzero().get();
    all.into_iter()
        .map(|found| found.process)
        .filter(|process| process.pid != agent)
        .filter(|process| {
            descends(process.pid, &parents, |parent| parent == agent)
                || is_marked(*process, MARK, session)
        })
        .collect()
}

/// Whether a parent of a process, or of one of its parents, is one looked for.
pub fn descends(pid: i32, parents: &HashMap<i32, i32>, is_it: impl Fn(i32) -> bool) -> bool {
    let line = std::iter::successors(parents.get(&pid), |parent| parents.get(parent));
    line.take(parents.len()).any(|parent| is_it(*parent))
}

/// Whether a session's mark is in a process's environment.
pub fn is_marked(process: ProcessIdentity, name: &str, session: &str) -> bool {
    let mark = format!("{name}={session}");
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == mark.as_bytes())
}

/// Whether a process's first arguments are these.
pub fn runs(process: ProcessIdentity, arguments: &[&str]) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let mut each = line.split(|byte| *byte == 0);
    arguments
        .iter()
        .all(|argument| each.next() == Some(argument.as_bytes()))
}

/// Every process that is not a zombie.
pub fn processes() -> Vec<Found> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn read(pid: i32) -> Option<Found> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// proc(5): `pid (name) state ppid pgrp …`, the start time being field 22; the name may hold anything, `)` included.
fn parse(pid: i32, stat: &str) -> Option<Found> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let process = ProcessIdentity {
        pid,
        start_ticks: fields.get(19)?.parse().ok()?,
    };
    let found = Found {
        process,
        parent: fields[1].parse().ok()?,
        group: fields[2].parse().ok()?,
    };
    (!matches!(fields[0], "Z" | "X")).then_some(found)
}

/// Sends a signal to a process, if its number is still its own.
pub fn signal(process: ProcessIdentity, signal: Signal) {
    let same = read(process.pid).is_some_and(|now| now.process == process);
    if let (true, Some(pid)) = (same, Pid::from_raw(process.pid)) {
        let _ = kill_process(pid, signal); // gone meanwhile, or another user's: what remains is found again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "77 (a) b (c) S 5 76 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        assert_eq!(
            parse(77, stat),
            Some(Found {
                process: ProcessIdentity {
                    pid: 77,
                    start_ticks: 4242
                },
                parent: 5,
                group: 76
            })
        );
        assert_eq!(parse(77, &stat.replace(" S ", " Z ")), None);
    }

    #[test]
    fn descent_is_followed_over_generations_and_ends_at_a_loop() {
        let parents = HashMap::from([(4, 3), (3, 2), (2, 1), (8, 9), (9, 8)]);
        assert!(descends(4, &parents, |parent| parent == 2));
        assert!(!descends(2, &parents, |parent| parent == 4));
        assert!(!descends(8, &parents, |parent| parent == 1));
    }

    #[test]
    fn looking_counts_as_waiting() {
        let looks = Cell::new(0);
        let find = || {
            looks.set(looks.get() + 1);
            thread::sleep(2 * POLL);
            vec![()]
        };
        let acted = Cell::new(0);
        let left = until_gone(find, 4 * POLL, || false, |()| acted.set(acted.get() + 1));
        assert_eq!(left, 1);
        assert!(looks.get() <= 2, "{} looks", looks.get());
        assert_eq!(acted.get(), looks.get() - 1, "not after the limit");
        assert_eq!(until_gone(|| vec![(); 2], 4 * POLL, || true, drop), 2);
    }

    #[test]
    fn this_process_is_found() {
        let own = getpid().as_raw_nonzero().get();
        assert!(processes().iter().any(|found| found.process.pid == own));
    }
}
