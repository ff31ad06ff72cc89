//! When ramp-up, the measured window and its intervals begin and end, on the place's monotonic clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use fairtrial_protocol::clock::monotonic_ns;

use crate::shared::lock;

/// What ends ramp-up, or the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Its length.
    DurationNs(i64),
    /// The number of transactions that ended in it.
    Transactions(u64),
}

/// Transactions that ramp-up and window still wait for.
#[derive(Debug)]
struct TransactionsLeft {
    ramp: u64,
    window: Option<u64>,
}

/// A moment that is not known yet.
const UNKNOWN_NS: i64 = i64::MAX;

/// Seconds on the clock's scale.
#[allow(clippy::cast_possible_truncation)] // below 10^9 seconds, which whoever asks has checked
pub fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Where a moment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// In this interval of ramp-up, counted from 0.
    RampUp(i64),
    /// In this interval of the window, counted from 0.
    Measured(i64),
    /// After the window.
    After,
}

/// The schedule of one drive. Where the window's begin and end depend on transactions, or its end on a signal, they become
/// known when they happen.
#[derive(Debug)]
pub struct Schedule {
    /// Ramp-up begins.
    pub ramp_ns: i64,
    /// Width of an interval.
    pub interval_ns: i64,
    length_ns: Option<i64>,
    window_ns: AtomicI64,
    end_ns: AtomicI64,
    missing: Option<Mutex<TransactionsLeft>>,
}

impl Schedule {
    /// A schedule whose ramp-up begins at `ramp_ns`; `ramp` ends it.
    pub fn new(ramp_ns: i64, ramp: Measure, interval_ns: i64, measure: Measure) -> Self {
        let (window_ns, ramp) = match ramp {
            Measure::DurationNs(length_ns) => (ramp_ns + length_ns, 0),
            Measure::Transactions(count) => (UNKNOWN_NS, count),
        };
        let (length_ns, window) = match measure {
            Measure::DurationNs(length_ns) => (Some(length_ns), None),
            Measure::Transactions(count) => (None, Some(count)),
        };
        let schedule = Self {
            ramp_ns,
            interval_ns,
            length_ns,
            window_ns: UNKNOWN_NS.into(),
            end_ns: UNKNOWN_NS.into(),
            missing: (ramp > 0 || window.is_some())
                .then(|| Mutex::new(TransactionsLeft { ramp, window })),
        };
        schedule.begin_window(window_ns);
        schedule
    }

    fn begin_window(&self, time_ns: i64) {
        self.window_ns.store(time_ns, Ordering::Release);
        if let Some(length_ns) = self.length_ns {
            self.end_by(time_ns.saturating_add(length_ns));
        }
    }

    /// The window begins; far away while unknown.
    pub fn window_ns(&self) -> i64 {
        self.window_ns.load(Ordering::Acquire)
    }

    /// The first nanosecond after the window; far away while unknown.
    pub fn end_ns(&self) -> i64 {
        self.end_ns.load(Ordering::Acquire)
    }

    /// Transactions still missing, if ramp-up or window waits for a number of them.
    pub fn missing(&self) -> Option<u64> {
        let missing = self.missing.as_ref()?;
        let missing = lock(missing);
        match *missing {
            TransactionsLeft {
                ramp: 0,
                window: None,
            } => None,
            TransactionsLeft { ramp, window } => Some(ramp + window.unwrap_or_default()),
        }
    }

    /// Says that a transaction ends now: the time, and where it lies. The one that completes a number asked for
    /// ends ramp-up or window, itself included.
    pub fn transaction_ends(&self) -> (i64, Moment) {
        let Some(missing) = &self.missing else {
            let now = monotonic_ns();
            return (now, self.moment(now));
        };
        // The clock is read under the lock, so that the order of ends is the order of counting.
        let mut missing = lock(missing);
        let now = monotonic_ns();
        let moment = self.moment(now);
        match (moment, &mut *missing) {
            (Moment::RampUp(_), TransactionsLeft { ramp, .. }) if *ramp > 0 => {
                *ramp -= 1;
                if *ramp == 0 {
                    self.begin_window(now + 1);
                }
            }
            (
                Moment::Measured(_),
                TransactionsLeft {
                    window: Some(window),
                    ..
                },
            ) => {
                *window = window.saturating_sub(1);
                if *window == 0 {
                    self.end_by(now + 1);
                }
            }
            _ => {}
        }
        (now, moment)
    }

    /// Ends the window at `time_ns`, unless it ends before that; a window that has not begun is empty.
    pub fn end_by(&self, time_ns: i64) {
        self.end_ns.fetch_min(time_ns, Ordering::AcqRel);
    }

    /// Where a moment lies.
    pub fn moment(&self, time_ns: i64) -> Moment {
        if time_ns >= self.end_ns() {
            Moment::After
        } else if time_ns < self.window_ns() {
            Moment::RampUp((time_ns - self.ramp_ns).max(0) / self.interval_ns)
        } else {
            Moment::Measured((time_ns - self.window_ns()) / self.interval_ns)
        }
    }

    /// First nanosecond of an interval, and the first after it; the last intervals of ramp-up and window are cut.
    pub fn span(&self, moment: Moment) -> (i64, i64) {
        let (first, limit) = match moment {
            Moment::RampUp(index) => (self.ramp_ns + index * self.interval_ns, self.window_ns()),
            Moment::Measured(index) => (self.window_ns() + index * self.interval_ns, i64::MAX),
            Moment::After => return (self.end_ns(), i64::MAX),
        };
        (
            first,
            (first + self.interval_ns).min(limit).min(self.end_ns()),
        )
    }

    /// The interval after one, if there is another before the window's end.
    pub fn next(&self, moment: Moment) -> Moment {
        let (_, end) = self.span(moment);
        self.moment(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_cover_ramp_up_and_window_without_gap_or_overlap() {
        let schedule = Schedule::new(1_000, Measure::DurationNs(25), 10, Measure::DurationNs(34));
        let mut spans = Vec::new();
        let mut moment = schedule.moment(1_000);
        while moment != Moment::After {
            spans.push((moment, schedule.span(moment)));
            moment = schedule.next(moment);
        }
        let expected = [
            (Moment::RampUp(0), (1_000, 1_010)),
            (Moment::RampUp(1), (1_010, 1_020)),
            (Moment::RampUp(2), (1_020, 1_025)),
            (Moment::Measured(0), (1_025, 1_035)),
            (Moment::Measured(1), (1_035, 1_045)),
            (Moment::Measured(2), (1_045, 1_055)),
            (Moment::Measured(3), (1_055, 1_059)),
        ];
        assert_eq!(spans, expected);
    }

    #[test]
    fn the_last_transaction_asked_for_is_inside_the_window_and_the_next_is_not() {
        let schedule = Schedule::new(
            monotonic_ns(),
            Measure::DurationNs(0),
            1_000_000_000,
            Measure::Transactions(3),
        );
        let ends: Vec<_> = (0..5).map(|_| schedule.transaction_ends()).collect();
        let measured = ends
            .iter()
            .filter(|(_, moment)| matches!(moment, Moment::Measured(_)))
            .count();
        assert_eq!(measured, 3, "{ends:?}");
        assert_eq!(schedule.end_ns(), ends[2].0 + 1);
        assert_eq!(schedule.missing(), Some(0));
    }

    #[test]
    fn ramp_up_counts_no_transaction() {
        let schedule = Schedule::new(
            monotonic_ns(),
            Measure::DurationNs(3_600_000_000_000),
            1_000,
            Measure::Transactions(1),
        );
        assert!(matches!(schedule.transaction_ends().1, Moment::RampUp(_)));
        assert_eq!(schedule.missing(), Some(1));
        schedule.end_by(monotonic_ns());
        assert_eq!(
            schedule.transaction_ends().1,
            Moment::After,
            "ended before it began"
        );
    }

    #[test]
    fn ramp_up_ends_with_the_transaction_that_completes_its_number() {
        for (measure, missing) in [
            (Measure::Transactions(2), [5, 4, 3, 2, 1, 0, 0]),
            (
                Measure::DurationNs(3_600_000_000_000),
                [3, 2, 1, 0, 0, 0, 0],
            ),
        ] {
            let begin_ns = monotonic_ns();
            let schedule =
                Schedule::new(begin_ns, Measure::Transactions(3), 1_000_000_000, measure);
            assert_eq!(
                schedule.moment(begin_ns + 60_000_000_000),
                Moment::RampUp(60)
            );
            let mut ends = Vec::new();
            for left in missing {
                assert_eq!(schedule.missing().unwrap_or_default(), left, "{ends:?}");
                ends.push(schedule.transaction_ends());
            }
            let ramp = |(_, moment): &&(i64, Moment)| matches!(moment, Moment::RampUp(_));
            assert_eq!(ends.iter().filter(ramp).count(), 3, "{ends:?}");
            assert_eq!(schedule.window_ns(), ends[2].0 + 1);
            assert_eq!(schedule.span(ends[2].1).1, schedule.window_ns());
            assert_eq!(schedule.next(ends[2].1), Moment::Measured(0));
            let end_ns = match measure {
                Measure::Transactions(_) => ends[4].0 + 1,
                Measure::DurationNs(length_ns) => schedule.window_ns() + length_ns,
            };
            assert_eq!(schedule.end_ns(), end_ns);
        }
    }

    #[test]
    fn a_window_that_never_began_ends_empty() {
        let begin_ns = monotonic_ns();
        let schedule = Schedule::new(
            begin_ns,
            Measure::Transactions(3),
            1_000,
            Measure::DurationNs(1_000),
        );
        schedule.transaction_ends();
        schedule.end_by(monotonic_ns());
        assert_eq!(schedule.transaction_ends().1, Moment::After);
        assert!(schedule.window_ns() > schedule.end_ns());
    }
}
