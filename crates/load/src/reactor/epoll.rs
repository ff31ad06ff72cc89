//! Which sockets are ready, by edge-triggered epoll.
//!
//! A receive that leaves room in its buffer has taken everything (epoll(7)), so a statement's answer costs one readiness
//! and one receive, and a socket that nobody waits for costs nothing.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::Waker;

use super::direction::Direction;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Events taken at once; more stay with the kernel until the next turn.
const EVENTS: usize = 256;

/// Epoll counts in milliseconds on kernels before 5.11; shorter waits go through a timer of the kernel's.
const MILLISECOND_NS: i64 = 1_000_000;

const TIMER: u64 = u64::MAX;

const READING: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Nothing more will come: what is left can be received, and then the end.
const ENDED: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

/// The sockets of one loop.
pub struct Epoll {
    queue: OwnedFd,
    timer: OwnedFd,
    slots: Vec<EpollSocket>,
    free: Vec<usize>,
    events: Vec<epoll::Event>,
}

/// One socket. At most one task waits for it, in one direction.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // the kernel's flags, which hold side by side
struct EpollSocket {
    waker: Option<Waker>,
    is_waited_for: bool,
    is_late: bool,
    deadline_ns: i64,
    readable: bool,
    writable: bool,
    has_ended: bool,
}

impl Epoll {
    /// A poller without sockets.
    pub fn new() -> io::Result<Self> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // Edge-triggered, so its count need not be read.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&queue, &timer, epoll::EventData::new_u64(TIMER), flags)?;
        Ok(Self {
            queue,
            timer,
            slots: Vec::new(),
            free: Vec::new(),
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Takes a socket in; returns its slot.
    pub fn add(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(EpollSocket::default());
            self.slots.len() - 1
        });
        epoll::add(&self.queue, socket, data(slot), READING)?;
        Ok(slot)
    }

    /// Lets a socket go.
    pub fn remove(&mut self, slot: usize, socket: BorrowedFd<'_>) {
        // Fails only for a socket that the kernel has forgotten already.
        let _ = epoll::delete(&self.queue, socket);
        self.slots[slot] = EpollSocket::default();
        self.free.push(slot);
    }

    /// Whether a socket is ready, which is then used up; else its task is woken when it is, or past its deadline.
    pub fn ready(
        &mut self,
        (slot, socket): (usize, BorrowedFd<'_>),
        direction: Direction,
        waker: &Waker,
        deadline_ns: i64,
    ) -> io::Result<bool> {
        let state = &mut self.slots[slot];
        let is_ready = match direction {
            Direction::Read => std::mem::take(&mut state.readable),
            Direction::Write => std::mem::take(&mut state.writable),
        };
        if is_ready || state.has_ended {
            // Who was woken for both is not late for the next wait.
            (state.is_waited_for, state.is_late) = (false, false);
            return Ok(true);
        }
        if std::mem::take(&mut state.is_late) {
            state.is_waited_for = false;
            return Err(io::ErrorKind::TimedOut.into());
        }
        state.deadline_ns = deadline_ns;
        if !state
            .waker
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            state.waker = Some(waker.clone());
        }
        let was_waited_for = std::mem::replace(&mut state.is_waited_for, true);
        if direction == Direction::Write && !was_waited_for {
            // Asking again reports what is ready now, so no edge is lost.
            let flags = READING | epoll::EventFlags::OUT;
            epoll::modify(&self.queue, socket, data(slot), flags)?;
        }
        Ok(false)
    }

    /// Says that a receive filled its buffer: there may be more.
    pub fn more(&mut self, slot: usize) {
        self.slots[slot].readable = true;
    }

    /// Stops asking for room to send.
    pub fn sent(&mut self, slot: usize, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::modify(&self.queue, socket, data(slot), READING)?)
    }

    /// Waits until a socket is ready, `wait_ns` at most, and wakes who waits for it.
    pub fn wait(&mut self, wait_ns: i64) -> io::Result<()> {
        let timeout = if wait_ns % MILLISECOND_NS == 0 {
            Some(timespec(wait_ns))
        } else {
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once(wait_ns))?;
            None
        };
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.queue, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let (flags, slot) = (event.flags, event.data.u64());
            let slot = usize::try_from(slot)
                .ok()
                .and_then(|slot| self.slots.get_mut(slot));
            let Some(slot) = slot else {
                continue; // the timer
            };
            slot.readable |= flags.contains(epoll::EventFlags::IN);
            slot.writable |= flags.contains(epoll::EventFlags::OUT);
            slot.has_ended |= flags.intersects(ENDED);
            slot.wake();
        }
        Ok(())
    }

    /// Wakes whoever has waited past its deadline, to be told so.
    pub fn expire(&mut self, now_ns: i64) {
        for slot in &mut self.slots {
            if slot.is_waited_for && slot.deadline_ns < now_ns {
                slot.is_late = true;
                slot.wake();
            }
        }
    }
}

impl EpollSocket {
    fn wake(&self) {
        if self.is_waited_for
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }
}

fn data(slot: usize) -> epoll::EventData {
    epoll::EventData::new_u64(slot as u64)
}

fn timespec(nanoseconds: i64) -> Timespec {
    Timespec {
        tv_sec: nanoseconds / 1_000_000_000,
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}

fn once(nanoseconds: i64) -> Itimerspec {
    Itimerspec {
        it_interval: timespec(0),
        it_value: timespec(nanoseconds),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn readiness_that_comes_with_the_deadline_leaves_nothing_to_the_next_wait() {
        let mut epoll = Epoll::new().expect("a queue");
        let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
        let slot = epoll.add(ours.as_fd()).expect("taken in");
        let is_ready = |epoll: &mut Epoll, socket: &UnixStream, deadline_ns| {
            let waits = (slot, socket.as_fd());
            epoll.ready(waits, Direction::Read, Waker::noop(), deadline_ns)
        };
        assert!(!is_ready(&mut epoll, &ours, 5).expect("it waits"));
        theirs.write_all(b"x").expect("written");
        epoll.wait(60_000_000_000).expect("it comes");
        epoll.expire(6);
        assert!(is_ready(&mut epoll, &ours, 5).expect("not late"));
        ours.read_exact(&mut [0]).expect("read");
        assert!(!is_ready(&mut epoll, &ours, 10).expect("another wait"));
        epoll.expire(11);
        let late = is_ready(&mut epoll, &ours, 10).expect_err("now it is late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
