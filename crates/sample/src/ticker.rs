//! When to sample: at deadlines that do not drift, until a signal ends it.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::error::SampleError;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Why `wait` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A deadline passed, and `missed` others before it.
    Tick {
        /// Deadlines that passed without a sample; they are not made up for.
        missed: u64,
    },
    /// A signal asked for the end.
    Stop,
}

/// A timer on absolute deadlines, and the signals that end it.
pub struct Ticker {
    timer: OwnedFd,
    signals: UnixStream,
}

impl Ticker {
    /// Starts: the first deadline is one interval from now.
    pub fn start(interval_ms: u32) -> Result<Self, SampleError> {
        let (signals, write_end) = UnixStream::pair().map_err(SampleError::Wait)?;
        for signal in [SIGTERM, SIGINT] {
            let write_end = write_end.try_clone().map_err(SampleError::Wait)?;
            pipe::register(signal, write_end).map_err(SampleError::Wait)?;
        }
        let timer = timer(i64::from(interval_ms) * NANOSECONDS_PER_MILLISECOND)
            .map_err(SampleError::Wait)?;
        Ok(Self { timer, signals })
    }

    /// Waits for the next deadline or a signal.
    pub fn wait(&mut self) -> Result<Wake, SampleError> {
        loop {
            let mut waiting = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&self.timer, PollFlags::IN),
            ];
            match poll(&mut waiting, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(SampleError::Wait(error.into())),
            }
            if !waiting[0].revents().is_empty() {
                let mut byte = [0];
                self.signals
                    .read_exact(&mut byte)
                    .map_err(SampleError::Wait)?;
                return Ok(Wake::Stop);
            }
            if !waiting[1].revents().is_empty() {
                let mut expirations = [0; size_of::<u64>()];
                rustix::io::read(&self.timer, &mut expirations)
                    .map_err(|error| SampleError::Wait(error.into()))?;
                return Ok(Wake::Tick {
                    missed: missed(expirations),
                });
            }
        }
    }
}

fn timer(interval_ns: i64) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let spec = Itimerspec {
        it_interval: timespec(interval_ns),
        it_value: later(clock_gettime(ClockId::Monotonic), interval_ns),
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &spec)?;
    Ok(timer)
}

/// The time `nanoseconds` after `now`.
fn later(now: Timespec, nanoseconds: i64) -> Timespec {
    let carried = timespec(now.tv_nsec + nanoseconds);
    Timespec {
        tv_sec: now.tv_sec + carried.tv_sec,
        ..carried
    }
}

/// What a read of the timer says: how many deadlines have passed, of which one is answered now.
fn missed(expirations: [u8; size_of::<u64>()]) -> u64 {
    u64::from_ne_bytes(expirations).saturating_sub(1)
}

fn timespec(nanoseconds: i64) -> Timespec {
    Timespec {
        tv_sec: nanoseconds / NANOSECONDS_PER_SECOND,
        tv_nsec: nanoseconds % NANOSECONDS_PER_SECOND,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use fairtrial_protocol::clock::monotonic_ns;

    use rustix::time::Timespec;

    use super::{NANOSECONDS_PER_MILLISECOND, NANOSECONDS_PER_SECOND, Ticker, Wake, later, missed};

    #[test]
    fn the_first_deadline_is_one_interval_after_now_across_seconds() {
        for (tv_nsec, interval_ns, expected) in [
            (0, 10_000_000, (7, 10_000_000)),
            (995_000_000, 10_000_000, (8, 5_000_000)),
            (990_000_000, 10_000_000, (8, 0)),
            (999_999_999, 1_000_000_000, (8, 999_999_999)),
            (1, 60_000_000_000, (67, 1)),
        ] {
            let deadline = later(Timespec { tv_sec: 7, tv_nsec }, interval_ns);
            assert_eq!((deadline.tv_sec, deadline.tv_nsec), expected);
        }
        let longest_ns = i64::from(u32::MAX) * NANOSECONDS_PER_MILLISECOND;
        let deadline = later(
            Timespec {
                tv_sec: 1,
                tv_nsec: 999_999_999,
            },
            longest_ns,
        );
        let sum_ns = 1_999_999_999 + longest_ns;
        assert_eq!(
            deadline.tv_sec * NANOSECONDS_PER_SECOND + deadline.tv_nsec,
            sum_ns
        );
        assert!(
            deadline.tv_nsec < NANOSECONDS_PER_SECOND,
            "or the kernel refuses it"
        );
    }

    #[test]
    fn of_the_deadlines_that_passed_one_is_answered_and_the_others_are_missed() {
        for (passed, expected) in [
            (0_u64, 0),
            (1, 0),
            (2, 1),
            (1000, 999),
            (u64::MAX, u64::MAX - 1),
        ] {
            assert_eq!(missed(passed.to_ne_bytes()), expected);
        }
    }

    #[test]
    fn missed_deadlines_are_counted_and_the_next_one_keeps_its_place_in_the_series() {
        const INTERVAL_MS: u32 = 20;
        let before_ns = monotonic_ns();
        let mut ticker = Ticker::start(INTERVAL_MS).expect("a ticker");
        thread::sleep(Duration::from_millis(5 * u64::from(INTERVAL_MS)));
        let mut passed = 0;
        for _ in 0..3 {
            let Wake::Tick { missed } = ticker.wait().expect("a tick") else {
                panic!("stopped by nobody")
            };
            passed += i64::try_from(missed + 1).expect("few");
            // However late a tick is seen, no more deadlines have passed than time allows, so nothing is bunched.
            let allowed = (monotonic_ns() - before_ns)
                / (i64::from(INTERVAL_MS) * NANOSECONDS_PER_MILLISECOND);
            assert!(
                passed <= allowed,
                "{passed} deadlines in the time of {allowed}"
            );
        }
        assert!(
            passed >= 7,
            "five passed while nobody waited, and two more were waited for, but only {passed} counted"
        );
    }
}
