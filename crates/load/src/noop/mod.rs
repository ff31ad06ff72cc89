//! A server that does nothing: accepts every login and answers every statement from a can.
//!
//! What the load engine reaches against it is the engine's own ceiling on this host. One thread, level-triggered epoll,
//! a Unix socket. It knows the protocol's packets only, and nothing of the engine it measures.

pub mod answers;
mod session;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use fairtrial_protocol::load::Noop;
use rustix::event::epoll::{self, EventData, EventFlags};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::LoadError;
use session::NoopConnection;

/// Events taken at once; more stay with the kernel until the next turn.
const EVENTS: usize = 256;

const END: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// A socket that clients can connect to already; nobody is answered before it serves.
pub struct NoopServer {
    listener: UnixListener,
    path: PathBuf,
}

impl NoopServer {
    /// Binds the socket and listens: a client that connects from now on waits, and is not refused.
    pub fn bind(parameters: &Noop) -> Result<Self, LoadError> {
        let path = PathBuf::from(&parameters.socket);
        match UnixListener::bind(&path) {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(LoadError::Output { path, source }),
        }
    }

    /// Serves until `end` can be read or has hung up, or a signal asks to end; removes the socket's file then.
    pub fn serve(self, end: impl AsFd) -> Result<(), LoadError> {
        let served = run(&self.listener, end).map_err(LoadError::start("the no-operation server"));
        std::fs::remove_file(&self.path).map_err(|source| LoadError::Output {
            path: self.path,
            source,
        })?;
        served
    }
}

fn run(listener: &UnixListener, end: impl AsFd) -> io::Result<()> {
    let (signalled, signals) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, signals.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGINT, signals)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (descriptor, token) in [
        (end.as_fd(), END),
        (signalled.as_fd(), END),
        (listener.as_fd(), LISTENER),
    ] {
        epoll::add(&poll, descriptor, EventData::new_u64(token), EventFlags::IN)?;
    }
    let mut sessions: HashMap<u64, NoopConnection> = HashMap::new();
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                END => return Ok(()),
                LISTENER => accept(listener, &poll, &mut sessions)?,
                token => {
                    // Dropping a session closes its socket, which takes it out of the poll.
                    if sessions.get_mut(&token).is_some_and(|one| !one.turn()) {
                        sessions.remove(&token);
                    }
                }
            }
        }
    }
}

fn accept(
    listener: &UnixListener,
    poll: impl AsFd,
    sessions: &mut HashMap<u64, NoopConnection>,
) -> io::Result<()> {
    let socket = match listener.accept() {
        Ok((socket, _)) => socket,
        // The client has gone again.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        Err(error) => return Err(error),
    };
    socket.set_nonblocking(true)?;
    let token = u64::from(socket.as_raw_fd().unsigned_abs());
    epoll::add(poll, &socket, EventData::new_u64(token), EventFlags::IN)?;
    sessions.extend(NoopConnection::begin(socket).map(|session| (token, session)));
    Ok(())
}
