//! One thread's life: outside, into a lock, inside, and out again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fairtrial_locks::{NoObserver, Observer};
use fairtrial_protocol::arrivals::Spacing;
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::locks::{LockDrive, Turns};

use super::kinds::{Lock, LockRow, ThreadContext};
use super::section::{self, Draws, Sections};
use super::tally::{Shelf, ThreadTally, TimedAcquisition};
use crate::drive::schedule::{Moment, Schedule};
use crate::gate::Gate;

/// What threads and the one that follows them share. Nothing of it is written between two intervals.
pub struct ContentionState<'a> {
    pub parameters: &'a LockDrive,
    pub sections: Sections,
    pub shelves: Vec<Shelf>,
    pub schedule: OnceLock<Schedule>,
    pub gate: Gate,
    /// Ends everything: the window is over, or somebody asked.
    pub stop: AtomicBool,
}

/// What a thread leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerTotals {
    pub turns: Turns,
    pub acquired: u64,
    pub intruded: u64,
}

/// Notes whether a lock was found taken.
struct TakenFlag(bool);

impl Observer for TakenFlag {
    fn contended(&mut self) {
        self.0 = true;
    }

    fn spun(&mut self) {}
}

/// Lives until the drive stops.
pub fn live<L: Lock, R: LockRow<L>>(
    row: &R,
    thread: u32,
    mut context: ThreadContext<'_>,
    shared: &ContentionState<'_>,
) -> WorkerTotals {
    let parameters = shared.parameters;
    let spread = (
        parameters.outside_turns,
        parameters.spacing == Spacing::Exponential,
    );
    let mut draws = Draws::new((parameters.seed, thread), parameters.locks, spread);
    if !shared.gate.wait() {
        return WorkerTotals::default();
    }
    let Some(schedule) = shared.schedule.get() else {
        return WorkerTotals::default();
    };
    let mut tally = ThreadTally::new(schedule, &shared.shelves[thread as usize]);
    let inside = u64::from(parameters.critical_turns);
    let mut untimed = 0_u64;
    while !shared.stop.load(Relaxed) {
        let (number, outside) = draws.next();
        section::turn(outside);
        let lock = row.at(number);
        if untimed > 0 {
            untimed -= 1;
            lock.lock(&mut context, &mut NoObserver);
            let handed = shared.sections.enter(number, thread);
            section::turn(inside);
            let intruded = shared.sections.leave(number, thread);
            lock.unlock(&mut context);
            tally.count(handed, intruded);
            continue;
        }
        let mut watch = TakenFlag(false);
        let began_ns = monotonic_ns();
        lock.lock(&mut context, &mut watch);
        let got_ns = monotonic_ns();
        let handed = shared.sections.enter(number, thread);
        section::turn(inside);
        let intruded = shared.sections.leave(number, thread);
        lock.unlock(&mut context);
        tally.count(handed, intruded);
        let timed = TimedAcquisition {
            began_ns,
            got_ns,
            contended: watch.0,
        };
        if tally.place(timed) == Moment::After {
            break;
        }
        untimed = until_next(parameters, &tally.turns);
        if parameters.acquisitions == Some(tally.turns.acquisitions) {
            schedule.end_by(got_ns + 1);
            shared.stop.store(true, Relaxed);
        }
    }
    let (turns, acquired, intruded) = tally.finish();
    WorkerTotals {
        turns,
        acquired,
        intruded,
    }
}

/// Acquisitions before the next timed one; fewer where the window ends with that one.
fn until_next(parameters: &LockDrive, turns: &Turns) -> u64 {
    let every = u64::from(parameters.sample_every);
    let left = parameters
        .acquisitions
        .map_or(every, |total| total - turns.acquisitions);
    left.min(every).saturating_sub(1)
}
