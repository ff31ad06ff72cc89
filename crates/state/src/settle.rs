//! A page cache at rest: nothing left to write, and nothing left from before if that is wanted.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::state::{Settle, Settled};

use crate::error::StateError;

/// How long between looks. Each look syncs again, because what is dirtied meanwhile would otherwise stay for the
/// kernel's half a minute (`vm.dirty_expire_centisecs`).
const PAUSE: Duration = Duration::from_millis(50);

/// Page cache, directory entries and inodes (Documentation/admin-guide/sysctl/vm.rst).
const DROP_ALL: &str = "3";

const KIBIBYTE: u64 = 1024;

/// Syncs, waits until few pages are dirty or being written, then drops the page cache if asked and allowed. Running out
/// of time is no error: the result says how much is still dirty.
pub fn settle(parameters: &Settle) -> Result<Settled, StateError> {
    settle_below(Path::new("/proc"), parameters)
}

/// [`settle`] by a `/proc` that may be a tree of one's own.
pub fn settle_below(root: &Path, parameters: &Settle) -> Result<Settled, StateError> {
    let started_ns = monotonic_ns();
    let waited_s = || Duration::from_nanos(monotonic_ns().abs_diff(started_ns)).as_secs_f64();
    let dirty_bytes = loop {
        rustix::fs::sync();
        let dirty_bytes = dirty_bytes(&root.join("meminfo"))?;
        if dirty_bytes <= parameters.dirty_bytes || waited_s() >= parameters.timeout_s {
            break dirty_bytes;
        }
        thread::sleep(PAUSE);
    };
    let dropped = parameters.drop_caches && drop_caches(&root.join("sys/vm/drop_caches"))?;
    Ok(Settled {
        dirty_bytes,
        waited_s: waited_s(),
        dropped,
    })
}

/// Pages that still have to reach a disk, or are on their way.
fn dirty_bytes(path: &Path) -> Result<u64, StateError> {
    let content = fs::read_to_string(path).map_err(StateError::read(path))?;
    let known = |name| {
        // Not knowing is not rest.
        kibibytes(&content, name).ok_or_else(|| {
            let message = format!("it has no count of {name} pages");
            StateError::read(path)(std::io::Error::new(ErrorKind::InvalidData, message))
        })
    };
    Ok(known("Dirty")?
        .saturating_add(known("Writeback")?)
        .saturating_mul(KIBIBYTE))
}

/// A line of `/proc/meminfo`.
pub fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether the kernel let us: it asks for root, and a container may not show the file or not let it be written.
fn drop_caches(path: &Path) -> Result<bool, StateError> {
    let refused = [
        ErrorKind::PermissionDenied,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::NotFound,
    ];
    match fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| {
            use std::io::Write as _;
            file.write_all(DROP_ALL.as_bytes())
        }) {
        Ok(()) => Ok(true),
        Err(error) if refused.contains(&error.kind()) => Ok(false),
        Err(error) => Err(StateError::write(path)(error)),
    }
}
