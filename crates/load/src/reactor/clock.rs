//! How busy a loop was: what says whether the client was the bottleneck.

use std::fs;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Interface;
use rustix::time::{ClockId, clock_gettime};

/// The scheduler's account of this thread: nanoseconds on a processor, nanoseconds ready for one, turns.
const ACCOUNT: &str = "/proc/thread-self/schedstat";

/// Of one loop: its time in the window it was told of, or in its life; its extremes in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Nanoseconds spent waiting for something to happen.
    pub idle_ns: i64,
    /// Nanoseconds on a processor or, where the kernel says so, ready for one.
    pub busy_ns: i64,
    /// Longest time between two looks for what had happened, without that of sending what a turn has to send.
    pub longest_turn_ns: i64,
    /// Longest time by which a timer was late.
    pub latest_timer_ns: i64,
    /// How it waited.
    pub interface: Interface,
}

/// A moment, and how long the thread had been busy until then.
type Reading = (i64, i64);

/// Keeps a loop's account.
pub struct LoopAccount {
    load: Load,
    /// When it began, or the window did.
    began: Reading,
    /// When the window ended; none before that, or without one.
    ended: Option<Reading>,
    /// What is asked for: first nanosecond, and the first after it.
    window: Option<(i64, i64)>,
    /// The loop has seen it begin.
    in_window: bool,
    left_ns: i64,
}

impl LoopAccount {
    /// Begins, on the loop's thread.
    pub fn new(interface: Interface) -> Self {
        let load = Load {
            idle_ns: 0,
            busy_ns: 0,
            longest_turn_ns: 0,
            latest_timer_ns: 0,
            interface,
        };
        Self {
            load,
            began: (monotonic_ns(), thread_busy_ns()),
            ended: None,
            window: None,
            in_window: false,
            left_ns: i64::MAX,
        }
    }

    /// Says when the window begins and ends, as far as that is known.
    pub fn window(&mut self, start_ns: i64, end_ns: i64) {
        self.window = Some((start_ns, end_ns));
    }

    /// The loop waited from `before_ns` to `now_ns`.
    pub fn waited(&mut self, before_ns: i64, now_ns: i64) {
        let turn_ns = before_ns.saturating_sub(self.left_ns);
        self.load.longest_turn_ns = self.load.longest_turn_ns.max(turn_ns);
        self.left_ns = now_ns;
        self.look(before_ns, now_ns, thread_busy_ns);
    }

    /// Reads the thread's account where the window began or ended; while the loop waited, the thread was not busy.
    fn look(&mut self, before_ns: i64, now_ns: i64, busy_ns: impl Fn() -> i64) {
        let Some((start_ns, end_ns)) = self.window.filter(|_| self.ended.is_none()) else {
            return;
        };
        if !self.in_window && now_ns >= start_ns {
            self.in_window = true;
            self.began = (start_ns.clamp(before_ns, now_ns), busy_ns());
        }
        if self.in_window && now_ns >= end_ns {
            self.ended = Some((end_ns.clamp(before_ns, now_ns), busy_ns()));
        }
    }

    /// Timers fired, the latest of them by this much.
    pub fn fired(&mut self, late_ns: i64) {
        self.load.latest_timer_ns = self.load.latest_timer_ns.max(late_ns);
    }

    /// Up to now or to the window's end, on the same thread.
    pub fn load(&self) -> Load {
        self.at(monotonic_ns(), thread_busy_ns())
    }

    fn at(&self, now_ns: i64, thread_busy_ns: i64) -> Load {
        let (now_ns, thread_busy_ns) = self.ended.unwrap_or((now_ns, thread_busy_ns));
        let (began_ns, busy_before_ns) = self.began;
        let whole_ns = (now_ns - began_ns).max(0);
        let busy_ns = (thread_busy_ns - busy_before_ns).clamp(0, whole_ns);
        Load {
            busy_ns,
            idle_ns: whole_ns - busy_ns,
            ..self.load
        }
    }
}

/// Time this thread was on a processor or ready for one. A loop's waits cannot be timed by itself: one call sends and
/// waits. Without the scheduler's account it is the time on a processor alone.
fn thread_busy_ns() -> i64 {
    let account = fs::read_to_string(ACCOUNT).unwrap_or_default();
    let mut numbers = account.split_whitespace().map(str::parse::<i64>);
    if let (Some(Ok(_)), Some(Ok(ready_ns))) = (numbers.next(), numbers.next()) {
        return on_processor_ns() + ready_ns;
    }
    on_processor_ns()
}

/// Exact, where the scheduler's account is as old as its last tick.
fn on_processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_is_either_idle_or_busy() {
        let mut account = LoopAccount::new(Interface::Epoll);
        account.began = (1_000, 70);
        let shares = |now_ns, busy_ns| {
            let load = account.at(now_ns, busy_ns);
            (load.idle_ns, load.busy_ns)
        };
        assert_eq!(shares(1_000, 70), (0, 0));
        assert_eq!(shares(1_030, 70), (30, 0));
        assert_eq!(shares(1_050, 95), (25, 25));
        // The scheduler's account is some milliseconds off where others crowd the processors.
        assert_eq!(shares(1_050, 60), (50, 0));
        assert_eq!(shares(1_050, 190), (0, 50));
    }

    #[test]
    fn time_before_and_after_the_window_does_not_count() {
        let mut account = LoopAccount::new(Interface::Epoll);
        account.began = (0, 0);
        account.window(1_000, i64::MAX); // its end depends on transactions
        account.look(100, 900, || 10);
        account.look(950, 1_200, || 20); // it slept when the window began
        account.window(1_000, 2_000);
        account.look(1_900, 1_950, || 700);
        assert_eq!(account.at(1_950, 700).busy_ns, 680);
        account.look(2_010, 2_020, || 790); // it computed when the window ended
        account.look(3_000, 9_000, || 800);
        let load = account.at(9_000, 810);
        assert_eq!((load.busy_ns, load.idle_ns), (770, 240));
    }

    #[test]
    fn a_thread_is_busy_while_it_computes_and_not_while_it_sleeps() {
        let before_ns = thread_busy_ns();
        let until_ns = on_processor_ns() + 30_000_000;
        while on_processor_ns() < until_ns {}
        assert!(thread_busy_ns() - before_ns >= 30_000_000);
        let rests = |_| {
            let before_ns = thread_busy_ns();
            thread::sleep(Duration::from_millis(30));
            thread_busy_ns() - before_ns < 15_000_000
        };
        assert!((0..100).any(rests), "others may crowd it now and then");
    }

    #[test]
    fn the_longest_turn_and_the_latest_timer_are_kept() {
        let mut account = LoopAccount::new(Interface::Epoll);
        for (before_ns, now_ns) in [(100, 150), (170, 200), (290, 300)] {
            account.waited(before_ns, now_ns);
        }
        account.fired(7);
        account.fired(3);
        let load = account.load();
        assert_eq!((load.longest_turn_ns, load.latest_timer_ns), (90, 7));
    }
}
