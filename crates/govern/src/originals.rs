//! Original values on disk: written before the first change, taken away when all is restored. Whoever finds them can
//! restore a server that outlived its governor.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::Endpoint;
use serde::{Deserialize, Serialize};

use crate::error::GovernError;
use crate::knobs::Values;
use crate::server::{GovernedServer, Incarnation, Trouble};

/// A server that hangs longer than this keeps the originals' file, for the next try.
pub const RESTORE_LIMIT: Duration = Duration::from_secs(10);

/// A server that lives takes a connection, or turns it away, at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// What one start of a server had before it was governed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Originals {
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Which start of it; another one has values of its own.
    pub incarnation: Incarnation,
    /// What it had.
    pub values: Values,
}

/// How restoring ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The values are in effect again; these variables had to be set.
    Set(Vec<&'static str>),
    /// Somebody else has set a variable to another value since: that one stays.
    Foreign(Values),
    /// The server is gone, or another start of it: nothing of what was set is left.
    Gone,
}

/// A file of originals, there or not.
pub struct OriginalsFile {
    path: Option<PathBuf>,
}

impl OriginalsFile {
    /// Nothing is written yet. Without a path nothing ever is.
    pub fn new(path: Option<&str>) -> Self {
        Self {
            path: path.map(PathBuf::from),
        }
    }

    /// Writes them, whole and on disk before this returns.
    pub fn write(&self, originals: &Originals) -> Result<(), GovernError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let failed = |cause| GovernError::File {
            path: path.clone(),
            cause,
        };
        let text = serde_json::to_vec(originals).map_err(|error| failed(error.into()))?;
        let beside = path.with_extension("new");
        let write = || {
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600) // it may hold a password
                .open(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&beside, path)?;
            path.parent()
                .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
        };
        write().map_err(failed)
    }

    /// Takes them away: nothing is left to restore.
    pub fn remove(&self) -> Result<(), GovernError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let _ = fs::remove_file(path.with_extension("new")); // of a writer that was killed; it is rarely there
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(GovernError::File {
                path: path.clone(),
                cause,
            }),
            _ => Ok(()),
        }
    }

    /// Reads them; `None` where nothing was written, or all is restored.
    fn read(path: &Path) -> Result<Option<Originals>, GovernError> {
        let failed = |cause| GovernError::File {
            path: path.to_owned(),
            cause,
        };
        match fs::read(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(cause)),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| failed(error.into())),
        }
    }
}

/// Restores what a file says, for a governor that is no more. Doing it twice is doing it once.
pub fn restore_from(path: &Path) -> Result<Option<RestoreOutcome>, GovernError> {
    let Some(originals) = OriginalsFile::read(path)? else {
        return Ok(None);
    };
    let mut server = GovernedServer::new(originals.endpoint.clone(), RESTORE_LIMIT);
    let outcome = restore(&mut server, &originals, None)?;
    OriginalsFile {
        path: Some(path.to_owned()),
    }
    .remove()?;
    Ok(Some(outcome))
}

/// Restores a server.
///
/// `last`: what was set last, of a governor that knows; a variable with another value is somebody else's, and stays.
pub fn restore(
    server: &mut GovernedServer,
    originals: &Originals,
    last: Option<Values>,
) -> Result<RestoreOutcome, GovernError> {
    match restored(server, originals, last) {
        Ok(outcome) => Ok(outcome),
        Err(Trouble::Lost(_)) if !server.is_connected() => {
            // A lost connection says nothing of the server; that nobody listens where it did says that it is gone.
            match restored(server, originals, last) {
                Ok(outcome) => Ok(outcome),
                Err(Trouble::Lost(_)) if nobody_listens(&originals.endpoint) => {
                    Ok(RestoreOutcome::Gone)
                }
                Err(trouble) => Err(not_restored(&trouble, originals)),
            }
        }
        Err(trouble) => Err(not_restored(&trouble, originals)),
    }
}

/// Whether there is no server behind a socket any more, and its variables with it. One that turns a login away, or has no
/// room for one more, lives; of one behind a network nobody knows.
fn nobody_listens(endpoint: &Endpoint) -> bool {
    let Endpoint::Mysql {
        socket: Some(socket),
        ..
    } = endpoint
    else {
        return false;
    };
    let (said, hears) = channel();
    let socket = socket.clone();
    // In a thread of its own: a server whose queue of logins is full keeps whoever connects waiting.
    thread::spawn(move || said.send(UnixStream::connect(socket).map_err(|error| error.kind())));
    matches!(
        hears.recv_timeout(CONNECT_LIMIT),
        Ok(Err(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
    )
}

fn restored(
    server: &mut GovernedServer,
    originals: &Originals,
    last: Option<Values>,
) -> Result<RestoreOutcome, Trouble> {
    let known = server.is_met();
    let current = server.current()?;
    let same = known && server.is_met();
    if !same && !current.incarnation.continues(&originals.incarnation) {
        return Ok(RestoreOutcome::Gone);
    }
    let changes = originals.values.statements_from(current.values);
    let foreign = last.map_or(Vec::new(), |last| last.statements_from(current.values));
    let (foreign, own): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|(variable, _)| foreign.iter().any(|(name, _)| name == variable));
    for (variable, value) in &own {
        server.set(variable, *value)?;
    }
    Ok(if foreign.is_empty() {
        RestoreOutcome::Set(own.into_iter().map(|(variable, _)| variable).collect())
    } else {
        RestoreOutcome::Foreign(current.values)
    })
}

fn not_restored(trouble: &Trouble, originals: &Originals) -> GovernError {
    let Values {
        threads,
        batch_size,
    } = originals.values;
    GovernError::NotRestored {
        reason: format!(
            "{trouble}; they are innodb_purge_threads = {threads}, innodb_purge_batch_size = {batch_size}"
        ),
    }
}
