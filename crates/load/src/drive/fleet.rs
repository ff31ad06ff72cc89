//! One client of several: what it may be asked, and the start that it waits for.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Drive, FleetShare, Progress};

use super::schedule::nanoseconds;
use super::user::START_POLL;
use crate::error::{LoadError, require};
use crate::progress;

/// Users look for the start now and then, so that one set earlier than this could pass unseen.
#[allow(clippy::cast_possible_truncation)] // milliseconds
pub const START_LEAD_NS: i64 = 2 * START_POLL.as_nanos() as i64;

/// How often a client looks whether the start is set.
const LOOK: Duration = Duration::from_millis(5);

/// Whether a share is one that can be driven.
pub fn check(parameters: &Drive) -> Result<(), LoadError> {
    let Some(share) = &parameters.fleet else {
        return Ok(());
    };
    require(
        "fleet.client",
        share.client < share.clients,
        "must be below the number of clients",
    )?;
    require(
        "fleet.user_numbers",
        share.user_numbers.len() == parameters.virtual_users as usize,
        "must be one for each virtual user",
    )?;
    require(
        "fleet.user_numbers",
        share
            .user_numbers
            .iter()
            .all(|number| *number < share.users),
        "must be below the number of users of all clients",
    )?;
    require(
        "transactions",
        parameters.transactions.is_none() && parameters.ramp_up_transactions.is_none(),
        "several clients have one window, which only a time can end",
    )
}

/// Says that this client is ready, and waits for the start that all agree on, or for the end if that is asked for.
pub fn agreed_start(
    share: &FleetShare,
    progress: &mut dyn Write,
    end_signal: &AtomicBool,
    limit: Duration,
) -> Result<i64, LoadError> {
    let ready_ns = monotonic_ns();
    progress::say(progress, &Progress::Ready { time_ns: ready_ns })?;
    let late_ns = ready_ns + nanoseconds(limit.as_secs_f64());
    loop {
        if let Some(start_ns) = read(Path::new(&share.start_path))? {
            let left_ns = start_ns - monotonic_ns();
            if left_ns < START_LEAD_NS {
                let problem = format!("it was heard of {} ns too late", START_LEAD_NS - left_ns);
                return Err(LoadError::Agreement(problem));
            }
            return Ok(start_ns);
        }
        let now_ns = monotonic_ns();
        if end_signal.load(Ordering::Relaxed) {
            return Ok(now_ns + START_LEAD_NS);
        }
        if now_ns > late_ns {
            let problem = format!("none was set within {} s", limit.as_secs_f64());
            return Err(LoadError::Agreement(problem));
        }
        thread::sleep(LOOK);
    }
}

/// The start, once it is there; the file appears whole.
fn read(path: &Path) -> Result<Option<i64>, LoadError> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    let start_ns = text.trim_end().parse();
    start_ns
        .map(Some)
        .map_err(|_| LoadError::Agreement(format!("{text:?} is not a time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(directory: &Path) -> FleetShare {
        FleetShare {
            client: 1,
            clients: 2,
            users: 3,
            user_numbers: vec![2],
            start_path: directory.join("start").to_string_lossy().into_owned(),
        }
    }

    fn waited(share: &FleetShare, limit_ms: u64) -> (Result<i64, LoadError>, String) {
        let mut said = Vec::new();
        let limit = Duration::from_millis(limit_ms);
        let start_ns = agreed_start(share, &mut said, &AtomicBool::new(false), limit);
        (start_ns, String::from_utf8(said).expect("text"))
    }

    #[test]
    fn a_client_says_that_it_is_ready_and_begins_when_it_is_told() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let share = share(directory.path());
        let start_ns = monotonic_ns() + 3_600_000_000_000;
        thread::scope(|scope| {
            let waiting = scope.spawn(|| waited(&share, 60_000));
            let beside = directory.path().join("beside"); // renamed, as `put` does: it looks at any time
            std::fs::write(&beside, format!("{start_ns}\n")).expect("written");
            std::fs::rename(&beside, &share.start_path).expect("renamed");
            let (heard, said) = waiting.join().expect("it ends");
            assert_eq!(heard.expect("a start"), start_ns);
            assert!(said.starts_with(r#"{"progress":"ready""#), "{said}");
        });
    }

    #[test]
    fn a_start_that_is_past_or_not_set_or_no_time_is_an_error() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let share = share(directory.path());
        let refused = |about: &str| {
            let error = waited(&share, 20).0.expect_err("no start").to_string();
            assert!(error.contains(about), "{error}");
        };
        refused("within 0.02 s");
        std::fs::write(&share.start_path, format!("{}\n", monotonic_ns())).expect("written");
        refused("too late");
        std::fs::write(&share.start_path, "soon\n").expect("written");
        refused("not a time");
    }
}
