//! When transactions should begin in an open loop: one stream for all users, computed as it goes, so that a backlog of
//! any length takes no memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fairtrial_protocol::load::{Arrivals, Spacing};

use crate::error::LoadError;
use crate::random::Random;

/// Rates beyond what any server here can be asked.
const RATE_LIMIT_PER_S: f64 = 1e8;

/// Longest thinking time: a day.
const THINK_LIMIT_S: f64 = 86_400.0;

/// Refuses rates and times that mean nothing.
pub fn validate(arrivals: &Arrivals) -> Result<(), LoadError> {
    let problem = match arrivals {
        Arrivals::Open { rate_per_s, .. }
            if !(*rate_per_s > 0.0 && *rate_per_s <= RATE_LIMIT_PER_S) =>
        {
            format!("rate_per_s must lie between 0 and {RATE_LIMIT_PER_S}, not be {rate_per_s}")
        }
        Arrivals::Closed { think_s, .. } if !(0.0..=THINK_LIMIT_S).contains(think_s) => {
            format!("think_s must lie between 0 and {THINK_LIMIT_S}, not be {think_s}")
        }
        _ => return Ok(()),
    };
    Err(LoadError::Parameter {
        field: "arrivals",
        problem,
    })
}

/// A time between events, seconds, of this mean.
pub fn spaced_s(spacing: Spacing, mean_s: f64, random: &mut Random) -> f64 {
    match spacing {
        Spacing::Constant => mean_s,
        Spacing::Exponential => -libm::log(1.0 - random.fraction()) * mean_s,
    }
}

/// Arrivals in their order, as nanoseconds after the drive's start. Two streams of one seed are the same.
#[derive(Clone, Debug)]
pub struct Stream {
    gap_s: f64,
    spacing: Spacing,
    random: Random,
    next_s: f64,
    count: u64,
}

impl Stream {
    /// The stream of a drive; none if its users begin when they like.
    pub fn new(arrivals: &Arrivals, seed: u64) -> Option<Self> {
        let Arrivals::Open {
            rate_per_s,
            spacing,
        } = *arrivals
        else {
            return None;
        };
        Some(Self {
            gap_s: 1.0 / rate_per_s,
            spacing,
            random: Random::derive(seed, "arrivals", &[]),
            next_s: 0.0,
            count: 0,
        })
    }

    /// When the next one is, nanoseconds.
    #[allow(clippy::cast_possible_truncation)] // a drive's length fits 63 bits of nanoseconds
    pub fn peek_ns(&self) -> i64 {
        (self.next_s * 1e9) as i64
    }

    /// Takes the next one.
    #[allow(clippy::cast_precision_loss)] // counts of a drive stay far below 2^53
    pub fn take_ns(&mut self) -> i64 {
        let taken_ns = self.peek_ns();
        self.count += 1;
        self.next_s = match self.spacing {
            // Multiplied, not added up: a long drive must not drift from its rate.
            Spacing::Constant => self.count as f64 * self.gap_s,
            Spacing::Exponential => {
                self.next_s + spaced_s(self.spacing, self.gap_s, &mut self.random)
            }
        };
        taken_ns
    }

    /// How many there are before a time, which only grows from call to call.
    pub fn before(&mut self, time_ns: i64) -> u64 {
        while self.peek_ns() < time_ns {
            self.take_ns();
        }
        self.count
    }
}

/// The stream that users share, and how many of it they have begun.
#[derive(Debug)]
pub struct Queue {
    stream: Mutex<Stream>,
    begun: AtomicU64,
}

impl Queue {
    /// A queue at its beginning.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream: Mutex::new(stream),
            begun: 0.into(),
        }
    }

    /// The oldest arrival that no user has taken, nanoseconds after the drive's start.
    pub fn take_ns(&self) -> i64 {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.take_ns()
    }

    /// Says that a user begins the one it took.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// How many have begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::chance::assert_share;

    const SECOND_NS: i64 = 1_000_000_000;

    fn stream(rate_per_s: f64, spacing: Spacing) -> Stream {
        let arrivals = Arrivals::Open {
            rate_per_s,
            spacing,
        };
        Stream::new(&arrivals, 7).expect("an open loop")
    }

    #[test]
    fn a_constant_rate_is_kept_for_a_day_to_the_transaction() {
        let mut three = stream(3.0, Spacing::Constant);
        assert_eq!(
            (
                three.take_ns(),
                three.take_ns(),
                three.take_ns(),
                three.take_ns()
            ),
            (0, 333_333_333, 666_666_666, SECOND_NS)
        );
        let day = 86_400;
        assert_eq!(three.before(day * SECOND_NS), 3 * 86_400);
        assert_eq!(three.peek_ns(), day * SECOND_NS);
    }

    #[test]
    fn exponential_gaps_are_a_poisson_process_of_the_rate() {
        let mut stream = stream(50.0, Spacing::Exponential);
        let counts: Vec<u64> = (1..=20_000)
            .scan(0, |before, tenth| {
                let now = stream.before(tenth * SECOND_NS / 10);
                let count = now - *before;
                *before = now;
                Some(count)
            })
            .collect();
        // In a tenth of a second five are expected: Poisson's shares of none, five and ten.
        for (number, share) in [(0, 0.006_738), (5, 0.175_467), (10, 0.018_133)] {
            let found = counts.iter().filter(|count| **count == number).count() as u64;
            assert_share(&format!("{number} arrivals"), found, 20_000, share);
        }
    }

    #[test]
    fn streams_of_one_seed_are_one_and_a_queue_hands_each_arrival_to_one_user() {
        let queue = Queue::new(stream(1e6, Spacing::Exponential));
        let taken = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..250 {
                        let arrival = queue.take_ns();
                        taken.lock().expect("no panic").push(arrival);
                        queue.begin();
                    }
                });
            }
        });
        let mut taken = taken.into_inner().expect("no panic");
        taken.sort_unstable();
        let mut other = stream(1e6, Spacing::Exponential);
        let expected: Vec<i64> = (0..1_000).map(|_| other.take_ns()).collect();
        assert_eq!(taken, expected);
        assert_eq!(queue.begun(), 1_000);
    }

    #[test]
    fn rates_and_times_that_mean_nothing_are_refused() {
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            let spacing = Spacing::Constant;
            assert!(
                validate(&Arrivals::Open {
                    rate_per_s,
                    spacing
                })
                .is_err(),
                "{rate_per_s}"
            );
        }
        for think_s in [-1.0, f64::NAN, 1e6] {
            let spacing = Spacing::Constant;
            assert!(
                validate(&Arrivals::Closed { think_s, spacing }).is_err(),
                "{think_s}"
            );
        }
        assert!(validate(&Arrivals::default()).is_ok());
        assert!(Stream::new(&Arrivals::default(), 1).is_none());
    }
}
