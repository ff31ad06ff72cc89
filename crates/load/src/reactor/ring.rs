//! Sockets by `io_uring`: what the tasks of one turn send and wait to receive goes to the kernel in one call.
//!
//! A receive and what was sent before it are one linked pair, so that the receive's end says that the kernel has let go
//! of both buffers. Buffers belong to the ring from then until that end, whatever becomes of the task that waits.
#![allow(unsafe_code)] // the kernel takes addresses; each use says why they stay valid

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use io_uring::{IoUring as Queues, opcode, squeue, types};

use super::direction::Direction;

/// Entries of the submission queue; a full queue is handed over at once.
const ENTRIES: u32 = 512;

/// So many entries are handed over before the turn ends: a server with another processor begins with them meanwhile.
const HAND_OVER: usize = 256;

/// More than this goes to the kernel directly instead of being copied.
const PENDING_BYTES: usize = 16_384;

/// A receive takes at least this much at once where that much has come.
const RECEIVE_BYTES: usize = 4096;

/// `IORING_RECVSEND_POLL_FIRST` of `linux/io_uring.h`: wait before the first try, which would find nothing.
const POLL_FIRST: u16 = 1;

/// Marks a send's completion, which comes only if it failed.
const SEND: u64 = 1 << 63;

/// The sockets of one loop.
pub struct Ring {
    queues: Queues,
    slots: Vec<RingSocket>,
    free: Vec<usize>,
    /// Slots whose buffers the kernel may use.
    lent: usize,
}

/// One socket. At most one task waits for it.
#[derive(Default)]
struct RingSocket {
    file: Option<Rc<OwnedFd>>,
    state: ReceiveState,
    waker: Option<Waker>,
    is_late: bool,
    deadline_ns: i64,
    /// To be sent with the next receive.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Where this receive's bytes begin.
    filled: usize,
    /// The kernel may hold more than the last receive had room for.
    has_more: bool,
    /// Dropped while the kernel had its buffers: it is free when they are back.
    is_dropped: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReceiveState {
    #[default]
    Idle,
    /// The kernel has the buffers.
    Receiving,
    /// The kernel looks for readiness.
    Polling,
    /// The kernel's answer.
    Ended(i32),
}

impl Ring {
    /// A ring without sockets. An error where the kernel has none, an old one, or forbids it.
    pub fn new() -> io::Result<Self> {
        let queues = Queues::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(ENTRIES)?;
        let parameters = queues.params();
        if !parameters.is_feature_ext_arg() || !parameters.is_feature_skip_cqe_on_success() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            queues,
            slots: Vec::new(),
            free: Vec::new(),
            lent: 0,
        })
    }

    /// Takes a socket in; returns its slot.
    pub fn add(&mut self, file: &Rc<OwnedFd>) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(RingSocket::default());
            self.slots.len() - 1
        });
        self.slots[slot].file = Some(Rc::clone(file));
        slot
    }

    /// Lets a socket go, and sends what it still had to.
    pub fn remove(&mut self, slot: usize) {
        let state = &mut self.slots[slot];
        let Some(file) = &state.file else { return };
        if matches!(state.state, ReceiveState::Idle | ReceiveState::Ended(_)) {
            // A good-bye: nobody is left to hear that it failed.
            let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
            if !state.outgoing.is_empty() {
                let _ = rustix::net::send(file, &state.outgoing, flags);
            }
            *state = RingSocket::default();
            self.free.push(slot);
        } else {
            end(file);
            state.is_dropped = true;
        }
    }

    /// Keeps bytes for the next receive. Where they are too many it returns those kept earlier, which must be sent
    /// before these.
    pub fn pend(&mut self, slot: usize, bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let state = &mut self.slots[slot];
        if state.state != ReceiveState::Idle {
            return Err(abandoned());
        }
        if state.outgoing.len() + bytes.len() > PENDING_BYTES {
            return Ok(Some(std::mem::take(&mut state.outgoing)));
        }
        state.outgoing.extend_from_slice(bytes);
        Ok(None)
    }

    /// Sends what is pending and appends what comes then.
    pub fn receive(
        &mut self,
        slot: usize,
        buffer: &mut Vec<u8>,
        waker: &Waker,
        deadline_ns: i64,
    ) -> Poll<io::Result<usize>> {
        let state = &mut self.slots[slot];
        match state.state {
            ReceiveState::Idle => {
                state.incoming = std::mem::take(buffer);
                state.wait(ReceiveState::Receiving, waker, deadline_ns);
                self.lent += 1;
                match self.exchange(slot) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
            ReceiveState::Receiving => state.wait_on(waker),
            ReceiveState::Polling => Poll::Ready(Err(abandoned())),
            ReceiveState::Ended(result) => {
                state.state = ReceiveState::Idle;
                *buffer = std::mem::take(&mut state.incoming);
                Poll::Ready(outcome(result))
            }
        }
    }

    /// Hands a slot's pair to the kernel.
    fn exchange(&mut self, slot: usize) -> io::Result<()> {
        let state = &mut self.slots[slot];
        let Some(file) = &state.file else {
            return Err(abandoned());
        };
        let file = types::Fd(file.as_raw_fd());
        state.filled = state.incoming.len();
        state.incoming.reserve(RECEIVE_BYTES);
        let room = state.incoming.spare_capacity_mut();
        let length = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let has_more = std::mem::take(&mut state.has_more);
        let receive = opcode::Recv::new(file, room.as_mut_ptr().cast(), length)
            .ioprio(if has_more { 0 } else { POLL_FIRST })
            .build()
            .user_data(slot as u64);
        if state.outgoing.is_empty() {
            return self.push(&[receive]);
        }
        let length = u32::try_from(state.outgoing.len()).unwrap_or(u32::MAX);
        // One completion for the pair: the receive's, or the failed send's, after which the kernel tells nothing of the rest.
        let send = opcode::Send::new(file, state.outgoing.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS)
            .user_data(slot as u64 | SEND);
        self.push(&[send, receive])
    }

    /// Whether a socket is ready, with nothing under way on it.
    pub fn ready(
        &mut self,
        slot: usize,
        direction: Direction,
        waker: &Waker,
        deadline_ns: i64,
    ) -> Poll<io::Result<()>> {
        let state = &mut self.slots[slot];
        match state.state {
            ReceiveState::Idle => {
                let Some(file) = &state.file else {
                    return Poll::Ready(Err(abandoned()));
                };
                let events = match direction {
                    Direction::Read => libc::POLLIN,
                    Direction::Write => libc::POLLOUT,
                };
                let poll = opcode::PollAdd::new(
                    types::Fd(file.as_raw_fd()),
                    events.cast_unsigned().into(),
                )
                .build()
                .user_data(slot as u64);
                state.wait(ReceiveState::Polling, waker, deadline_ns);
                match self.push(&[poll]) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
            ReceiveState::Polling => state.wait_on(waker),
            ReceiveState::Receiving => Poll::Ready(Err(abandoned())),
            ReceiveState::Ended(result) => {
                state.state = ReceiveState::Idle;
                Poll::Ready(outcome(result).map(drop))
            }
        }
    }

    fn push(&mut self, entries: &[squeue::Entry]) -> io::Result<()> {
        // SAFETY: an entry's buffers belong to its slot, which neither moves nor changes them before its completion, and
        // `drop` waits for every completion. The file is open as long as its slot holds it.
        let pushed = unsafe { self.queues.submission().push_multiple(entries) };
        if pushed.is_err() {
            self.hand_over()?;
            // SAFETY: as above.
            let pushed = unsafe { self.queues.submission().push_multiple(entries) };
            pushed.map_err(io::Error::other)?;
        }
        if self.queues.submission().len() >= HAND_OVER {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Gives the kernel what tasks have asked for so far.
    fn hand_over(&mut self) -> io::Result<()> {
        match self.queues.submit() {
            // What an interrupted or crowded call left in the queue goes with the next.
            Err(error) if is_passing(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Gives the kernel what tasks have asked for, waits until something has ended, `wait_ns` at most, and wakes who
    /// waits for it.
    pub fn wait(&mut self, wait_ns: i64) -> io::Result<()> {
        let nanoseconds = u64::try_from(wait_ns).unwrap_or_default();
        let timeout = types::Timespec::from(std::time::Duration::from_nanos(nanoseconds));
        let arguments = types::SubmitArgs::new().timespec(&timeout);
        match self.queues.submitter().submit_with_args(1, &arguments) {
            Err(error) if !is_passing(&error) => return Err(error),
            _ => {}
        }
        for completion in self.queues.completion() {
            let Ok(slot) = usize::try_from(completion.user_data() & !SEND) else {
                continue;
            };
            let result = match completion.result() {
                // So much went out before it failed.
                1.. if completion.user_data() & SEND != 0 => -libc::EPIPE,
                result => result,
            };
            let state = &mut self.slots[slot];
            if state.state == ReceiveState::Receiving {
                self.lent -= 1;
                state.received(result, completion.flags());
            }
            state.state = ReceiveState::Ended(result);
            if state.is_dropped {
                *state = RingSocket::default();
                self.free.push(slot);
            } else {
                state.wake();
            }
        }
        Ok(())
    }

    /// Wakes whoever has waited past its deadline, to be told so.
    pub fn expire(&mut self, now_ns: i64) {
        for slot in &mut self.slots {
            let waits = matches!(slot.state, ReceiveState::Receiving | ReceiveState::Polling);
            if waits && slot.deadline_ns < now_ns {
                slot.is_late = true;
                slot.wake();
            }
        }
    }
}

impl RingSocket {
    fn wait(&mut self, state: ReceiveState, waker: &Waker, deadline_ns: i64) {
        self.state = state;
        self.deadline_ns = deadline_ns;
        self.is_late = false;
        if !self
            .waker
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            self.waker = Some(waker.clone());
        }
    }

    fn wait_on<T>(&mut self, waker: &Waker) -> Poll<io::Result<T>> {
        if self.is_late {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.waker = Some(waker.clone());
        Poll::Pending
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// The kernel has given the buffers back.
    fn received(&mut self, result: i32, flags: u32) {
        self.outgoing.clear();
        let count = usize::try_from(result).unwrap_or_default();
        let room = self.incoming.capacity() - self.filled;
        self.has_more = count == room || io_uring::cqueue::sock_nonempty(flags);
        // SAFETY: the kernel has written `count` bytes behind the first `filled`, within the capacity.
        unsafe { self.incoming.set_len(self.filled + count) };
    }
}

fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

impl Drop for Ring {
    /// Waits until the kernel has let go of all buffers: ended sockets have nothing more to wait for.
    fn drop(&mut self) {
        for slot in &self.slots {
            if let (ReceiveState::Receiving, Some(file)) = (slot.state, &slot.file) {
                end(file);
            }
        }
        while self.lent > 0 {
            if self.wait(i64::MAX).is_err() {
                // Better to lose the memory than to have the kernel write into it.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
        }
    }
}

/// Ends a connection's both directions, so that the kernel is done with it.
fn end(file: &OwnedFd) {
    // Fails where the other side has ended it, or it has not begun.
    let _ = rustix::net::shutdown(file.as_fd(), rustix::net::Shutdown::Both);
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN)
    )
}

fn abandoned() -> io::Error {
    io::Error::other("an earlier wait on this socket was abandoned")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_send_that_is_cut_off_is_an_error_and_nothing_received() {
        let Ok(mut ring) = Ring::new() else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        // The kernel's least, so that a part goes out and the rest waits for room.
        rustix::net::sockopt::set_socket_send_buffer_size(&ours, 1).expect("a size");
        let slot = ring.add(&Rc::new(ours.into()));
        let sent = ring.pend(slot, &[7; PENDING_BYTES]);
        assert_eq!(sent.expect("not yet sent"), None);
        let mut buffer = Vec::new();
        let mut receive =
            |ring: &mut Ring| ring.receive(slot, &mut buffer, Waker::noop(), i64::MAX);
        assert!(receive(&mut ring).is_pending());
        ring.wait(10_000_000).expect("a turn");
        drop(theirs);
        ring.wait(60_000_000_000).expect("it is told");
        let Poll::Ready(ended) = receive(&mut ring) else {
            panic!("it has ended");
        };
        let kind = ended.expect_err("the other side is gone").kind();
        assert!([BrokenPipe, ConnectionReset].contains(&kind), "{kind}");
    }
}
