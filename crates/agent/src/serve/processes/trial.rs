//! What a trial's server and load have left running: found and ended, so that it is not beside the next trial.
//!
//! Three traces lead to it: the mark in its environment, which some servers write their title over; the process group
//! that it was started in, which it can leave; and its line of parents, as far as one of them is found.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::time::Duration;

use rustix::process::{Signal, getpid};

use super::descendants::{self, Found, until_gone};
use fairtrial_protocol::event::Swept;

/// In the environment of a trial's server and load, and of whatever they start. Not a shorter name: a service's port may
/// be called `trial`, which the load finds by that.
pub const MARK: &str = "FAIRTRIAL_SESSION_TRIAL";

/// How long is waited before and after the kill.
#[derive(Clone, Copy)]
pub struct Patience {
    /// For what runs to end by itself, or when told.
    pub grace: Duration,
    /// For what was killed to be gone.
    pub hang: Duration,
}

/// The process groups of a trial, and whether the whole group had a SIGTERM: some take a second one for "now".
#[derive(Default)]
pub struct TrialGroups(HashMap<i32, bool>);

impl TrialGroups {
    /// A process was started, in a group of its own.
    pub fn started(&mut self, pid: i32, of_trial: bool) {
        if of_trial {
            self.0.insert(pid, false);
        } else {
            self.0.remove(&pid); // the kernel uses numbers again
        }
    }

    /// A whole group had a SIGTERM.
    pub fn told(&mut self, pid: i32) {
        if let Some(told) = self.0.get_mut(&pid) {
            *told = true;
        }
    }

    /// Ends what is left of them: SIGTERM to what had none, then SIGKILL. Gives up when the session `ends`, which stops
    /// everything.
    pub fn sweep(&mut self, session: &str, patience: Patience, ends: impl Fn() -> bool) -> Swept {
        let mut programs = BTreeSet::new();
        let mut told = HashSet::new();
        let find = || self.running(session);
        until_gone(find, patience.grace, &ends, |found| {
            if self.0.get(&found.group) != Some(&true) && told.insert(found.process) {
                programs.extend(name(&found));
                descendants::signal(found.process, Signal::TERM);
            }
        });
        let mut killed = HashSet::new();
        let left = until_gone(find, patience.hang, &ends, |found| {
            if killed.insert(found.process) {
                programs.extend(name(&found));
            }
            descendants::signal(found.process, Signal::KILL);
        });
        if left == 0 {
            self.0.clear();
        }
        Swept {
            id: 0,
            programs: programs.into_iter().collect(),
            killed: killed.len(),
            left,
        }
    }

    fn running(&self, session: &str) -> Vec<Found> {
        let agent = getpid().as_raw_nonzero().get();
        let all = descendants::processes();
        let parents: HashMap<i32, i32> = all
            .iter()
            .map(|found| (found.process.pid, found.parent))
            .collect();
        // A group's number may be another's by now, if nobody is left in it.
        let is_seed = |found: &Found| {
            (self.0.contains_key(&found.group)
                && descendants::descends(found.process.pid, &parents, |parent| parent == agent))
                || descendants::is_marked(found.process, MARK, session)
        };
        let seeds: HashSet<i32> = all
            .iter()
            .filter(|found| found.process.pid != agent && is_seed(found))
            .map(|found| found.process.pid)
            .collect();
        if seeds.is_empty() {
            return Vec::new();
        }
        let from_seed =
            |pid| descendants::descends(pid, &parents, |parent| seeds.contains(&parent));
        all.into_iter()
            .filter(|found| seeds.contains(&found.process.pid) || from_seed(found.process.pid))
            .collect()
    }
}

fn name(found: &Found) -> Option<String> {
    let name = fs::read(format!("/proc/{}/comm", found.process.pid)).ok()?; // none: it ended this moment
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}
