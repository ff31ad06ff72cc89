//! Keeping the supervisor alive and in memory while the place is under pressure. Best effort: an unprivileged agent
//! supervises as well as it may.

use std::fs;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{geteuid, getpid, set_child_subreaper};

const SCORE: &str = "/proc/self/oom_score_adj";

/// The out-of-memory killer never takes a process with this score (proc(5)).
const LAST_TO_BE_KILLED: &str = "-1000";

/// Locks the agent in memory, makes it the last to be killed and the one who inherits orphans. Returns the
/// out-of-memory score that its children get back, if it was changed.
pub fn protect() -> Option<String> {
    let flags = if geteuid().is_root() {
        MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT
    } else {
        // With FUTURE, an unprivileged agent could not map another byte beyond its RLIMIT_MEMLOCK.
        MlockAllFlags::CURRENT
    };
    let _ = mlockall(flags);
    let _ = set_child_subreaper(Some(getpid()));
    let initial = fs::read_to_string(SCORE).ok()?;
    fs::write(SCORE, LAST_TO_BE_KILLED).ok()?;
    Some(initial.trim().to_owned())
}
