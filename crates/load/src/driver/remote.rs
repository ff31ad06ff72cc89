//! What drivers of servers behind sockets have in common: how their users share threads, and what a lost answer is.
//! SQLite's driver takes from here what is said where no descriptor is left.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use fairtrial_protocol::load::Rows;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustls::ClientConfig;

use super::{DriverError, ErrorKind, OPEN_FILES};
use crate::reactor::Address;

/// One loop serves this many users before another thread is worth its switches: the more of them answer at once, the
/// fewer times it waits.
const USERS_PER_LOOP: usize = 256;

/// Statements prepared in one exchange: their answers must fit a socket's buffer, since nobody reads while they are sent.
pub const PREPARED_AT_ONCE: usize = 32;

/// A server, and who logs in to it.
#[derive(Clone, Debug)]
pub struct RemoteServer {
    /// Where it listens.
    pub address: Address,
    /// Who logs in.
    pub user: String,
    /// Proves it.
    pub password: String,
    /// The database in use.
    pub database: String,
    /// How connections are encrypted, if they are.
    pub tls: Option<Arc<ClientConfig>>,
}

impl RemoteServer {
    /// It in words, without secrets.
    pub fn describe(&self) -> String {
        format!("{}@{}/{}", self.user, self.address, self.database)
    }

    /// Who logs in, to this database or none.
    pub fn account<'a>(&'a self, database: Option<&'a str>) -> Account<'a> {
        Account {
            user: &self.user,
            password: &self.password,
            database,
            host: match &self.address {
                Address::Socket(_) => "localhost",
                Address::Tcp { host, .. } => host,
            },
            tls: self.tls.clone(),
            is_local: matches!(self.address, Address::Socket(_)),
        }
    }
}

/// Who logs in, and how.
pub struct Account<'a> {
    /// Its name.
    pub user: &'a str,
    /// Proves it.
    pub password: &'a str,
    /// The database in use from the beginning.
    pub database: Option<&'a str>,
    /// The name that the server's certificate must have.
    pub host: &'a str,
    /// How the connection is encrypted, if it is.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether it stays on this machine.
    pub is_local: bool,
}

impl Account<'_> {
    /// Whether nobody else can read the connection.
    pub fn is_private(&self) -> bool {
        self.is_local || self.tls.is_some()
    }
}

/// A login that does not come about.
pub fn refused(message: impl Into<String>) -> DriverError {
    DriverError {
        kind: ErrorKind::Connection,
        code: "login_refused".into(),
        message: message.into(),
        retryable: false,
    }
}

/// How many threads serve this many virtual users.
pub fn user_threads(users: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    users.div_ceil(USERS_PER_LOOP).clamp(1, processors)
}

/// What an answer as text may take up here: such are of counters, settings and sums.
const TEXT_BYTES: usize = 128 << 20;

/// Rows of an answer as text.
#[derive(Default)]
pub struct TextRows {
    rows: Vec<Vec<Option<String>>>,
    bytes: usize,
}

impl TextRows {
    /// Reads one more row, unless there are too many already: then the rest of the answer is read over.
    pub fn push(
        &mut self,
        read: impl FnOnce() -> Result<Vec<Option<String>>, DriverError>,
    ) -> Result<(), DriverError> {
        if self.bytes <= TEXT_BYTES {
            let row = read()?;
            let texts: usize = row.iter().flatten().map(String::capacity).sum();
            self.bytes += texts + size_of_val(row.as_slice()) + size_of_val(&row);
            self.rows.push(row);
        }
        Ok(())
    }

    /// All of them; an error where there were too many.
    pub fn finish(self, columns: Vec<String>) -> Result<Rows, DriverError> {
        if self.bytes > TEXT_BYTES {
            return Err(DriverError::unexpected(format!(
                "the answer takes more than {} MiB",
                TEXT_BYTES >> 20
            )));
        }
        let rows = self.rows;
        Ok(Rows { columns, rows })
    }
}

/// Names and values from the first two columns; a row without either is left out.
pub fn settings(rows: Rows) -> BTreeMap<String, String> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?, cells.next()?))
    };
    rows.rows.into_iter().filter_map(pair).collect()
}

/// An answer that does not come.
#[allow(clippy::needless_pass_by_value)] // the form that `map_err` takes
pub fn lost(error: io::Error) -> DriverError {
    let mut message = error.to_string();
    let code = match error.kind() {
        io::ErrorKind::TimedOut => "no_answer",
        _ if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            if let Some(most) = getrlimit(Resource::Nofile).current {
                message = format!("{message}: this process may have {most} open files");
            }
            OPEN_FILES
        }
        _ => "connection_lost",
    };
    DriverError {
        kind: ErrorKind::Connection,
        code: code.into(),
        message,
        retryable: false,
    }
}

/// What is said where the call that has just failed found no descriptor left, by a library that does not tell the cause:
/// whatever it has called since has succeeded and left `errno` alone (errno(3)).
pub fn no_descriptor_left() -> Option<DriverError> {
    let cause = io::Error::last_os_error();
    (cause.raw_os_error() == Some(Errno::MFILE.raw_os_error())).then(|| lost(cause))
}

#[cfg(test)]
pub mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;
    use std::rc::Rc;
    use std::sync::mpsc::{Receiver, channel};

    use rustix::io::Errno;

    use super::{TEXT_BYTES, TextRows, lost};
    use crate::error::LoadError;
    use crate::reactor::{Address, block_on, run};
    use crate::stop::Stop;

    /// Has clients meet a server that says `words` and leaves, by each of the kernel's interfaces. A client asks only
    /// once it has heard that the server is gone.
    pub fn meet_leaving<F: Future<Output = ()> + 'static>(
        words: &'static [u8],
        client: impl Fn(Address, Rc<Receiver<()>>) -> F,
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let (leaving, gone) = channel();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.expect("a connection");
                client.write_all(words).expect("it is heard");
                drop(client);
                leaving.send(()).expect("someone waits");
            }
        });
        let gone = Rc::new(gone);
        let client = || client(Address::Socket(path.clone()), Rc::clone(&gone));
        block_on(client()).expect("a loop");
        // One has its thread to itself, more share a ring.
        for clients in [1, 2] {
            let clients = (0..clients).map(|_| client()).collect();
            run(clients, &Stop::default()).expect("a loop");
        }
    }

    #[test]
    fn an_answer_as_text_is_not_kept_without_end() {
        let mut rows = TextRows::default();
        let large = || Ok(vec![None, Some(String::with_capacity(TEXT_BYTES + 1))]);
        rows.push(large)
            .expect("it is known to be too large once it is read");
        rows.push(|| panic!("nothing more is read"))
            .expect("read over");
        let error = rows.finish(Vec::new()).expect_err("too large");
        assert!(error.message.contains("128 MiB"), "{error}");
        assert!(!error.is_end(), "the connection is in step");
    }

    #[test]
    fn a_user_without_a_descriptor_is_told_of_the_limit_and_not_of_passwords() {
        let of = |source| LoadError::Connect {
            endpoint: "a server".to_owned(),
            source,
        };
        let none_left = lost(Errno::MFILE.into());
        assert!(
            none_left.message.contains("this process may have"),
            "{none_left}"
        );
        assert!(of(none_left).hint().contains("ulimit -Hn"));
        let refused = lost(Errno::CONNREFUSED.into());
        assert!(of(refused).hint().contains("password"));
    }
}
