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
                    missed: u64::from_ne_bytes(expirations).saturating_sub(1),
                });
            }
        }
    }
}

fn timer(interval_ns: i64) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let now = clock_gettime(ClockId::Monotonic);
    let first_ns = now.tv_nsec + interval_ns;
    let spec = Itimerspec {
        it_interval: timespec(interval_ns),
        it_value: Timespec {
            tv_sec: now.tv_sec + first_ns / NANOSECONDS_PER_SECOND,
            ..timespec(first_ns)
        },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &spec)?;
    Ok(timer)
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

    use super::{NANOSECONDS_PER_MILLISECOND, Ticker, Wake};

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
