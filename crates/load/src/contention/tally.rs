//! What a thread counts by itself, so that threads meet at the locks alone: recording shares nothing that is written.
//!
//! A thread reads the clock at one acquisition of so many; those since the last one count into the interval of this
//! one. A part whose interval is over is handed to the thread that follows the drive, once per interval.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairtrial_protocol::locks::Turns;

use crate::drive::recorder::Slot;
use crate::drive::schedule::{Moment, Schedule};

/// Where one thread leaves what is over.
pub struct Shelf(Mutex<ShelfSlots>);

struct ShelfSlots {
    /// The interval that its thread is in: it leaves none before that any more.
    open: Moment,
    over: Vec<Slot>,
    spare: Vec<Slot>,
}

impl Shelf {
    /// Of a thread that has not begun.
    pub fn new() -> Self {
        Self(Mutex::new(ShelfSlots {
            open: Moment::RampUp(0),
            over: Vec::with_capacity(2),
            spare: vec![Slot::new(Moment::After, 1)],
        }))
    }

    /// The interval that its thread is in.
    pub fn open(&self) -> Moment {
        self.held().open
    }

    /// Hands everything on that is over.
    pub fn take(&self, mut to: impl FnMut(&Slot)) {
        let mut shelved = self.held();
        while let Some(slot) = shelved.over.pop() {
            to(&slot);
            shelved.spare.push(slot);
        }
    }

    fn exchange(&self, open: &mut Slot, next: Moment) {
        let mut shelved = self.held();
        let mut fresh = shelved.spare.pop().unwrap_or_else(|| Slot::new(next, 1));
        fresh.reset(next);
        shelved.over.push(std::mem::replace(open, fresh));
        shelved.open = next;
    }

    fn held(&self) -> MutexGuard<'_, ShelfSlots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One timed acquisition.
#[derive(Clone, Copy)]
pub struct TimedAcquisition {
    /// When it asked.
    pub began_ns: i64,
    /// When it got the lock.
    pub got_ns: i64,
    /// Whether it found it taken.
    pub contended: bool,
}

/// A thread's own counts.
pub struct ThreadTally<'a> {
    schedule: &'a Schedule,
    shelf: &'a Shelf,
    open: Slot,
    untimed: u64,
    untimed_handed: u64,
    timed_ns: i64,
    /// Acquisitions since the drive began.
    pub acquired: u64,
    /// Times that somebody else was inside, too.
    pub intruded: u64,
    /// What it got inside the window.
    pub turns: Turns,
}

impl<'a> ThreadTally<'a> {
    /// Nothing yet.
    pub fn new(schedule: &'a Schedule, shelf: &'a Shelf) -> Self {
        Self {
            schedule,
            shelf,
            open: Slot::new(Moment::RampUp(0), 1),
            untimed: 0,
            untimed_handed: 0,
            timed_ns: schedule.ramp_ns,
            acquired: 0,
            intruded: 0,
            turns: Turns::default(),
        }
    }

    /// An acquisition is over.
    #[inline]
    pub fn count(&mut self, handed: bool, intruded: bool) {
        self.acquired += 1;
        self.untimed += 1;
        self.untimed_handed += u64::from(handed);
        self.intruded += u64::from(intruded);
    }

    /// The last one counted was timed: all since the one before it belong where it does. Returns that interval.
    pub fn place(&mut self, timed: TimedAcquisition) -> Moment {
        let moment = self.schedule.moment(timed.got_ns);
        if moment != self.open.moment {
            self.shelf.exchange(&mut self.open, moment);
        }
        self.open.counts[0].committed += self.untimed;
        if let Moment::Measured(_) = moment {
            let waited_ns = u64::try_from(timed.got_ns - timed.began_ns).unwrap_or_default();
            self.open.latencies[0].saturating_record(waited_ns);
            self.turns.acquisitions += self.untimed;
            self.turns.handed += self.untimed_handed;
            self.turns.sampled += 1;
            self.turns.contended += u64::from(timed.contended);
            self.gap_until(timed.got_ns);
        }
        (self.untimed, self.untimed_handed) = (0, 0);
        moment
    }

    /// The thread has ended: what is left is handed over, and what it waited for at the end counts.
    pub fn finish(mut self) -> (Turns, u64, u64) {
        if self.schedule.end_ns() > self.schedule.window_ns() {
            self.gap_until(self.schedule.end_ns());
        }
        self.shelf.exchange(&mut self.open, Moment::After);
        (self.turns, self.acquired, self.intruded)
    }

    /// Time outside of the window is nobody's gap.
    fn gap_until(&mut self, time_ns: i64) {
        let gap_ns = time_ns - self.timed_ns.max(self.schedule.window_ns());
        self.turns.longest_gap_ns = self.turns.longest_gap_ns.max(gap_ns);
        self.timed_ns = time_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::schedule::Measure;

    /// Ramp-up from 0 to 100, a window from there to 200, intervals of 50.
    fn schedule() -> Schedule {
        Schedule::new(0, Measure::DurationNs(100), 50, Measure::DurationNs(100))
    }

    fn got(tally: &mut ThreadTally<'_>, acquisitions: u32, got_ns: i64) -> Moment {
        for _ in 0..acquisitions {
            tally.count(true, false);
        }
        tally.place(TimedAcquisition {
            began_ns: got_ns - 7,
            got_ns,
            contended: got_ns % 2 == 1,
        })
    }

    #[test]
    fn acquisitions_belong_to_the_interval_of_the_timed_one_that_ends_them() {
        let (schedule, shelf) = (schedule(), Shelf::new());
        let mut tally = ThreadTally::new(&schedule, &shelf);
        assert_eq!(got(&mut tally, 1, 10), Moment::RampUp(0));
        assert_eq!(got(&mut tally, 4, 101), Moment::Measured(0));
        assert_eq!(got(&mut tally, 4, 149), Moment::Measured(0));
        assert_eq!(got(&mut tally, 4, 160), Moment::Measured(1));
        assert_eq!(shelf.open(), Moment::Measured(1));
        assert_eq!(got(&mut tally, 4, 200), Moment::After);
        let (turns, acquired, intruded) = tally.finish();
        assert_eq!((acquired, intruded), (17, 0));
        let expected = Turns {
            acquisitions: 12,
            handed: 12,
            sampled: 3,
            contended: 2,
            longest_gap_ns: 48, // from 101 to 149
        };
        assert_eq!(turns, expected);
        let mut left = Vec::new();
        shelf.take(|slot| {
            left.push((
                slot.moment,
                slot.counts[0].committed,
                slot.latencies[0].len(),
                slot.latencies[0].max(),
            ));
        });
        left.sort_unstable();
        let expected = [
            (Moment::RampUp(0), 1, 0, 0),
            (Moment::Measured(0), 8, 2, 7),
            (Moment::Measured(1), 4, 1, 7),
            (Moment::After, 4, 0, 0),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn who_gets_nothing_starves_as_long_as_the_window() {
        let (schedule, shelf) = (schedule(), Shelf::new());
        let (turns, ..) = ThreadTally::new(&schedule, &shelf).finish();
        assert_eq!((turns.acquisitions, turns.longest_gap_ns), (0, 100));
    }

    #[test]
    fn waiting_for_the_end_of_the_window_counts_and_waiting_before_it_does_not() {
        let (schedule, shelf) = (schedule(), Shelf::new());
        let mut tally = ThreadTally::new(&schedule, &shelf);
        got(&mut tally, 1, 120);
        assert_eq!(
            tally.turns.longest_gap_ns, 20,
            "from the window's beginning"
        );
        got(&mut tally, 1, 5_000);
        assert_eq!(
            tally.finish().0.longest_gap_ns,
            80,
            "from 120 to the window's end"
        );
    }

    #[test]
    fn a_window_that_never_began_has_no_gap() {
        let (schedule, shelf) = (schedule(), Shelf::new());
        schedule.end_by(50);
        let (turns, ..) = ThreadTally::new(&schedule, &shelf).finish();
        assert_eq!(turns.longest_gap_ns, 0);
    }
}
