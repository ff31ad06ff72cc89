//! How a loop waits for its sockets: by `io_uring` where the kernel offers it, else by `epoll`.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use fairtrial_protocol::load::Interface;

use super::direction::Direction;
use super::epoll::Epoll;
use super::ring::Ring;

/// The sockets of one loop.
pub enum Poller {
    /// By readiness.
    Epoll(Epoll),
    /// By completion.
    Ring(Box<Ring>),
}

impl Poller {
    /// A poller without sockets; by `epoll` where the kernel refuses what is asked for.
    pub fn new(interface: Interface) -> io::Result<Self> {
        if let (Interface::IoUring, Ok(ring)) = (interface, Ring::new()) {
            return Ok(Self::Ring(Box::new(ring)));
        }
        Ok(Self::Epoll(Epoll::new()?))
    }

    /// What it is.
    pub fn interface(&self) -> Interface {
        match self {
            Self::Epoll(_) => Interface::Epoll,
            Self::Ring(_) => Interface::IoUring,
        }
    }

    /// Takes a socket in; returns its slot.
    pub fn add(&mut self, file: &Rc<OwnedFd>) -> io::Result<usize> {
        match self {
            Self::Epoll(epoll) => epoll.add(file.as_fd()),
            Self::Ring(ring) => Ok(ring.add(file)),
        }
    }

    /// Lets a socket go.
    pub fn remove(&mut self, slot: usize, file: &OwnedFd) {
        match self {
            Self::Epoll(epoll) => epoll.remove(slot, file.as_fd()),
            Self::Ring(ring) => ring.remove(slot),
        }
    }

    /// Whether a socket is ready; else its task is woken when it is, or past its deadline.
    pub fn ready(
        &mut self,
        (slot, file): (usize, &OwnedFd),
        direction: Direction,
        waker: &Waker,
        deadline_ns: i64,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Epoll(epoll) => {
                match epoll.ready((slot, file.as_fd()), direction, waker, deadline_ns) {
                    Ok(true) => Poll::Ready(Ok(())),
                    Ok(false) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
            Self::Ring(ring) => ring.ready(slot, direction, waker, deadline_ns),
        }
    }

    /// Waits until something happens, `wait_ns` at most, and wakes whom it concerns.
    pub fn wait(&mut self, wait_ns: i64) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(wait_ns),
            Self::Ring(ring) => ring.wait(wait_ns),
        }
    }

    /// Wakes whoever has waited past its deadline, to be told so.
    pub fn expire(&mut self, now_ns: i64) {
        match self {
            Self::Epoll(epoll) => epoll.expire(now_ns),
            Self::Ring(ring) => ring.expire(now_ns),
        }
    }
}
