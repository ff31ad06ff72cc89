//! Clients of one drive, each on a thread of its own: they begin when they are told.

use std::io::{Result as IoResult, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fairtrial_load::LoadError;
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Driven, FleetShare};

use super::wait_until;

const READY: &[u8] = br#""progress":"ready""#;

/// From the word to the start: a client that hears of it too late refuses, and a machine may stand still for seconds.
const LEAD_NS: i64 = 10_000_000_000;

/// Drives with each client, which are told when to begin once all have said that they are ready; when that was, and what
/// each has done.
pub fn together<R: Sync>(
    requests: &[R],
    share: fn(&R) -> &FleetShare,
    drive: fn(&R, &mut dyn Write) -> Result<Driven, LoadError>,
) -> (i64, Vec<Driven>) {
    let ready = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients: Vec<_> = requests
            .iter()
            .map(|request| scope.spawn(move || drive(request, &mut ReadyCount(ready))))
            .collect();
        wait_until("all are ready, or one has failed", || {
            ready.load(Ordering::Relaxed) == requests.len()
                || clients.iter().any(thread::ScopedJoinHandle::is_finished)
        });
        let start_ns = monotonic_ns() + LEAD_NS;
        for request in requests {
            let path = &share(request).start_path;
            let unfinished = format!("{path}.new"); // as the agent writes files: there when they are whole
            std::fs::write(&unfinished, format!("{start_ns}\n")).expect("written");
            std::fs::rename(&unfinished, path).expect("told");
        }
        let driven = clients
            .into_iter()
            .map(|client| client.join().expect("it ends").expect("it drives"))
            .collect();
        assert_eq!(
            ready.load(Ordering::Relaxed),
            requests.len(),
            "each says so once"
        );
        (start_ns, driven)
    })
}

/// Counts who says that it is ready.
struct ReadyCount<'a>(&'a AtomicUsize);

impl Write for ReadyCount<'_> {
    fn write(&mut self, line: &[u8]) -> IoResult<usize> {
        let is_ready = line.windows(READY.len()).any(|part| part == READY);
        self.0.fetch_add(is_ready.into(), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}
