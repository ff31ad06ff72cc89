//! A stream socket whose waiting belongs to the loop.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Interface;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    connect, recv, send, socket_with, sockopt,
};

use super::direction::Direction;
use super::poller::Poller;
use super::{LoopState, STOP_LATENCY_NS, sleep, turn};

/// A receive takes at least this much at once where that much has come.
const RECEIVE_BYTES: usize = 4096;

/// How long a thread sleeps in a call before it looks whether it is to stop.
const SLEEP: Duration = Duration::from_nanos(STOP_LATENCY_NS.unsigned_abs());

/// A listener whose queue is full refuses a Unix socket at once (connect(2)); it empties as fast as it accepts.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(1);

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A TCP port.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
        /// What the name stands for, once that was asked.
        resolved: OnceLock<Vec<SocketAddr>>,
    },
}

impl Address {
    /// A TCP port of a host, by name or address.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self::Tcp {
            host: host.into(),
            port,
            resolved: OnceLock::new(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(formatter, "{}", path.display()),
            Self::Tcp { host, port, .. } => write!(formatter, "{host}:{port}"),
        }
    }
}

/// A connected socket. Only the thread that connected it can use it.
pub struct Socket {
    file: Rc<OwnedFd>,
    slot: usize,
    shared: Rc<LoopState>,
    limit_ns: i64,
    /// Why nothing can be sent any more.
    closed: Option<io::Error>,
}

impl Socket {
    /// Connects. From then on each wait ends with `TimedOut` after `limit`.
    pub async fn connect(address: &Address, limit: Duration) -> io::Result<Self> {
        let limit_ns = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
        let deadline_ns = monotonic_ns().saturating_add(limit_ns);
        let Address::Tcp {
            host,
            port,
            resolved,
        } = address
        else {
            return Self::unix(address, limit_ns, deadline_ns).await;
        };
        // Resolving blocks the thread: once, at the start of a drive, before anything is measured.
        let addresses = if let Some(addresses) = resolved.get() {
            addresses
        } else {
            let found = (host.as_str(), *port).to_socket_addrs()?.collect();
            resolved.get_or_init(|| found)
        };
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for address in addresses {
            match Self::tcp(*address, limit_ns, deadline_ns).await {
                Ok(socket) => return Ok(socket),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    async fn unix(address: &Address, limit_ns: i64, deadline_ns: i64) -> io::Result<Self> {
        let Address::Socket(path) = address else {
            unreachable!("`connect` sends only Unix sockets here");
        };
        let file = Self::open(AddressFamily::UNIX)?;
        let path = SocketAddrUnix::new(path.as_path())?;
        loop {
            match connect(&file, &path) {
                Ok(()) => return Self::watched(file, limit_ns),
                Err(Errno::AGAIN) if monotonic_ns() < deadline_ns => sleep(QUEUE_FULL_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn tcp(address: SocketAddr, limit_ns: i64, deadline_ns: i64) -> io::Result<Self> {
        let is_v4 = address.is_ipv4();
        let file = Self::open(if is_v4 {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        })?;
        sockopt::set_tcp_nodelay(&file, true)?;
        match connect(&file, &SocketAddrAny::from(address)) {
            Ok(()) => return Self::watched(file, limit_ns),
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let socket = Self::watched(file, limit_ns)?;
        socket.ready(Direction::Write, deadline_ns).await?;
        socket.has_room()?;
        sockopt::socket_error(&socket.file)??;
        Ok(socket)
    }

    fn open(family: AddressFamily) -> io::Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        Ok(socket_with(family, SocketType::STREAM, flags, None)?)
    }

    /// Joins the loop. Not before it connects: until then the kernel says that it has ended.
    fn watched(file: OwnedFd, limit_ns: i64) -> io::Result<Self> {
        let shared = LoopState::here();
        if shared.interface == Interface::Blocking {
            rustix::io::ioctl_fionbio(&file, false)?;
            for side in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
                sockopt::set_socket_timeout(&file, side, Some(SLEEP))?;
            }
        }
        let file = Rc::new(file);
        let slot = shared.poller.borrow_mut().add(&file)?;
        Ok(Self {
            file,
            slot,
            shared,
            limit_ns,
            closed: None,
        })
    }

    /// Another limit for each wait; none for work of unknown length.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        let nanoseconds = limit.map(|limit| i64::try_from(limit.as_nanos()));
        self.limit_ns = nanoseconds.and_then(Result::ok).unwrap_or(i64::MAX);
    }

    /// Sends all of it, with the next receive at the latest: a system call for both where the loop's interface has one.
    ///
    /// That the other side has closed is told by a receive: what it said before, which is mostly why, comes first.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.closed.is_some() {
            return Ok(());
        }
        match self.send_or_pend(bytes).await {
            Err(error) if is_closed(&error) => {
                self.closed = Some(error);
                Ok(())
            }
            sent => sent,
        }
    }

    async fn send_or_pend(&mut self, bytes: &[u8]) -> io::Result<()> {
        let earlier = match &mut *self.shared.poller.borrow_mut() {
            Poller::Epoll(_) => None,
            Poller::Ring(ring) => match ring.pend(self.slot, bytes)? {
                None => return Ok(()),
                earlier => earlier,
            },
        };
        if let Some(earlier) = earlier {
            self.send_now(&earlier).await?;
        }
        self.send_now(bytes).await
    }

    async fn send_now(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut was_full = false;
        while !bytes.is_empty() {
            match send(&self.file, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    was_full = true;
                    self.ready(Direction::Write, self.deadline_ns()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if was_full { self.has_room() } else { Ok(()) }
    }

    /// Sends last words behind what was sent before, if there is room; and does not mind if there is not.
    pub fn farewell(&self, bytes: &[u8]) {
        let pended = match &mut *self.shared.poller.borrow_mut() {
            Poller::Epoll(_) => false,
            Poller::Ring(ring) => matches!(ring.pend(self.slot, bytes), Ok(None)),
        };
        if !pended {
            // Whether they arrive changes nothing any more.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let _ = send(&self.file, bytes, flags);
        }
    }

    /// Nobody waits for room to send any more.
    fn has_room(&self) -> io::Result<()> {
        match &mut *self.shared.poller.borrow_mut() {
            Poller::Epoll(epoll) => epoll.sent(self.slot, self.file.as_fd()),
            Poller::Ring(_) => Ok(()),
        }
    }

    /// Appends what has come, waiting for it if need be; a connection that has ended is an error.
    pub async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let received = match self.receive_some(buffer).await {
            // By completion this may be a send's error, with which the kernel has given the receive up.
            Err(error) if is_closed(&error) && self.closed.is_none() => {
                self.closed = Some(error);
                self.receive_some(buffer).await
            }
            received => received,
        };
        match received {
            Ok(1..) => Ok(()),
            received => Err(self.closed.take().or(received.err()).unwrap_or_else(ended)),
        }
    }

    async fn receive_some(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let deadline_ns = self.deadline_ns();
        match self.shared.interface {
            Interface::IoUring => self.received(buffer, deadline_ns).await,
            Interface::Epoll => self.receive_ready(buffer, deadline_ns).await,
            Interface::Blocking => self.receive_asleep(buffer, deadline_ns).await,
        }
    }

    /// By completion.
    async fn received(&self, buffer: &mut Vec<u8>, deadline_ns: i64) -> io::Result<usize> {
        poll_fn(|context| match &mut *self.shared.poller.borrow_mut() {
            Poller::Ring(ring) => ring.receive(self.slot, buffer, context.waker(), deadline_ns),
            Poller::Epoll(_) => unreachable!("`receive` looked"),
        })
        .await
    }

    /// In the kernel, for the only task of the thread; now and then the loop looks whether it is to stop.
    async fn receive_asleep(&self, buffer: &mut Vec<u8>, deadline_ns: i64) -> io::Result<usize> {
        loop {
            buffer.reserve(RECEIVE_BYTES);
            let before_ns = monotonic_ns();
            let received = recv(&self.file, spare_capacity(buffer), RecvFlags::empty());
            self.shared.slept(before_ns);
            match received {
                Ok((_, count)) => return Ok(count),
                Err(Errno::AGAIN | Errno::INTR) if before_ns < deadline_ns => turn().await,
                Err(Errno::AGAIN | Errno::INTR) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// By readiness.
    async fn receive_ready(&self, buffer: &mut Vec<u8>, deadline_ns: i64) -> io::Result<usize> {
        loop {
            self.ready(Direction::Read, deadline_ns).await?;
            buffer.reserve(RECEIVE_BYTES);
            let room = buffer.capacity() - buffer.len();
            match recv(&self.file, spare_capacity(buffer), RecvFlags::empty()) {
                Ok((_, count)) => {
                    if let (true, Poller::Epoll(epoll)) =
                        (count == room, &mut *self.shared.poller.borrow_mut())
                    {
                        epoll.more(self.slot);
                    }
                    return Ok(count);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn deadline_ns(&self) -> i64 {
        self.shared.looked_ns.get().saturating_add(self.limit_ns)
    }

    async fn ready(&self, direction: Direction, deadline_ns: i64) -> io::Result<()> {
        poll_fn(|context| {
            let mut poller = self.shared.poller.borrow_mut();
            poller.ready(
                (self.slot, &self.file),
                direction,
                context.waker(),
                deadline_ns,
            )
        })
        .await
    }
}

/// Whether the other side has closed.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionReset | ConnectionAborted
    )
}

/// The other side has ended the connection.
pub fn ended() -> io::Error {
    let problem = "the server closed the connection";
    io::Error::new(io::ErrorKind::UnexpectedEof, problem)
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut poller = self.shared.poller.borrow_mut();
        poller.remove(self.slot, &self.file);
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Socket")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
