//! Original values on disk: written before the first change, taken away when all is restored. Whoever finds them can
//! restore a server that outlived its governor.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairtrial_protocol::load::Endpoint;
use serde::{Deserialize, Serialize};

use crate::error::GovernError;
use crate::knobs::Values;
use crate::server::{Incarnation, Server, Trouble};

/// A server that hangs longer than this keeps the originals' file, for the next try.
pub const RESTORE_LIMIT: Duration = Duration::from_secs(10);

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
pub enum Outcome {
    /// The values are in effect again; these variables had to be set.
    Set(Vec<&'static str>),
    /// Somebody else has set other values since: theirs stay.
    Foreign(Values),
    /// The server is gone, or another start of it: nothing of what was set is left.
    Gone,
}

/// A file of originals, there or not.
pub struct Kept {
    path: Option<PathBuf>,
}

impl Kept {
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
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(GovernError::File {
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
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(cause)),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| failed(error.into())),
        }
    }
}

/// Restores what a file says, for a governor that is no more. Doing it twice is doing it once.
pub fn restore_from(path: &Path) -> Result<Option<Outcome>, GovernError> {
    let Some(originals) = Kept::read(path)? else {
        return Ok(None);
    };
    let mut server = Server::new(originals.endpoint.clone(), RESTORE_LIMIT);
    let outcome = restore(&mut server, &originals, None)?;
    Kept {
        path: Some(path.to_owned()),
    }
    .remove()?;
    Ok(Some(outcome))
}

/// Restores a server.
///
/// `last`: what was set last, of a governor that knows; other values than those are somebody else's, and stay.
pub fn restore(
    server: &mut Server,
    originals: &Originals,
    last: Option<Values>,
) -> Result<Outcome, GovernError> {
    match restored(server, originals, last) {
        Ok(outcome) => Ok(outcome),
        Err(Trouble::Lost(_)) if !server.is_connected() => {
            // A lost connection says nothing of the server; that there is no other one does.
            match restored(server, originals, last) {
                Ok(outcome) => Ok(outcome),
                // Variables live as long as their server. Of one behind a network nobody knows whether it lives.
                Err(Trouble::Lost(_)) if is_here(&originals.endpoint) => Ok(Outcome::Gone),
                Err(trouble) => Err(not_restored(&trouble, originals)),
            }
        }
        Err(trouble) => Err(not_restored(&trouble, originals)),
    }
}

fn is_here(endpoint: &Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::Mysql {
            socket: Some(_),
            ..
        }
    )
}

fn restored(
    server: &mut Server,
    originals: &Originals,
    last: Option<Values>,
) -> Result<Outcome, Trouble> {
    let current = server.current()?;
    if !current.incarnation.continues(&originals.incarnation) {
        return Ok(Outcome::Gone);
    }
    if last.is_some_and(|last| last != current.values) {
        return Ok(Outcome::Foreign(current.values));
    }
    let changes = originals.values.statements_from(current.values);
    for (variable, value) in &changes {
        server.set(variable, *value)?;
    }
    Ok(Outcome::Set(
        changes.into_iter().map(|(variable, _)| variable).collect(),
    ))
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
