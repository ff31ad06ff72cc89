//! `put`: a file received in chunks, whole under its name or not there at all.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fairtrial_protocol::event::{Done, Event};
use fairtrial_protocol::request::Put;

use crate::serve::failure::Failure;
use crate::serve::request::absolute;
use crate::serve::session::Session;

const PERMISSION_BITS: u32 = 0o7777;

/// A file on its way.
pub struct Incoming {
    path: PathBuf,
    mode: u32,
    missing: u64,
    /// Why it cannot be written; the rest of its chunks is thrown away.
    outcome: Result<Temporary, Failure>,
}

/// A file under a temporary name, removed unless it got its real one.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // gone already if it was renamed
    }
}

/// Begins to receive; an empty file is received at once.
pub fn apply(session: &mut Session, put: &Put) -> Result<(), Failure> {
    let path = absolute(&put.path)?;
    let outcome = create(&path, put.id);
    let incoming = Incoming {
        path,
        mode: put.mode & PERMISSION_BITS,
        missing: put.bytes,
        outcome,
    };
    session.incoming.insert(put.id, incoming);
    if put.bytes == 0 {
        finish(session, put.id);
    }
    Ok(())
}

/// Takes a chunk.
pub fn chunk(session: &mut Session, id: u64, bytes: &[u8]) {
    let Some(incoming) = session.incoming.get_mut(&id) else {
        return;
    }; // of a `put` that was refused
    let count = bytes.len() as u64;
    if count > incoming.missing {
        incoming.outcome = Err(Failure::Invalid(format!(
            "{}: more bytes came than were announced",
            incoming.path.display()
        )));
    }
    incoming.missing = incoming.missing.saturating_sub(count);
    if let Ok(temporary) = &mut incoming.outcome
        && let Err(cause) = temporary.file.write_all(bytes)
    {
        incoming.outcome = Err(Failure::system("write", &incoming.path, cause));
    }
    if incoming.missing == 0 {
        finish(session, id);
    }
}

fn create(path: &Path, id: u64) -> Result<Temporary, Failure> {
    let directory = path
        .parent()
        .ok_or_else(|| Failure::Invalid("/ is no file".to_owned()))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
        .map_err(|cause| Failure::system("create", directory, cause))?;
    let temporary = directory.join(format!(".fairtrial-put-{}-{id}", std::process::id()));
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(|cause| Failure::system("create", &temporary, cause))?;
    Ok(Temporary {
        file,
        path: temporary,
    })
}

fn finish(session: &mut Session, id: u64) {
    let Some(incoming) = session.incoming.remove(&id) else {
        return;
    };
    let (path, mode) = (incoming.path, incoming.mode);
    let done = incoming.outcome.and_then(|temporary| {
        name(&temporary, &path, mode).map_err(|cause| Failure::system("write", &path, cause))
    });
    session.wires.say(&match done {
        Ok(()) => Event::Done(Done { id }),
        Err(failure) => failure.event(Some(id)),
    });
}

fn name(temporary: &Temporary, path: &Path, mode: u32) -> std::io::Result<()> {
    temporary
        .file
        .set_permissions(Permissions::from_mode(mode))?;
    temporary.file.sync_all()?;
    fs::rename(&temporary.path, path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory)?.sync_all() // else the name may be lost although its bytes are not
}
