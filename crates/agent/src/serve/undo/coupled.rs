//! Kernel parameters in pairs, of which writing one zeroes the other (Documentation/admin-guide/sysctl/vm.rst): the one
//! that is 0 because its partner counts is restored through its partner. Written back, the 0 is refused or, worse, taken.
//! And the scheduler of a block device, which sets the device's number of requests to its own default (block/elevator.c).

use std::fs;
use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;

const PAIRS: [(&str, &str); 3] = [
    ("dirty_bytes", "dirty_ratio"),
    ("dirty_background_bytes", "dirty_background_ratio"),
    ("overcommit_kbytes", "overcommit_ratio"),
];
const DIRECTORY: &str = "sys/vm";

/// The partner of a file that is 0 now, and the partner's value, if it is the one that counts.
pub fn partner(path: &str, content: &str) -> Result<Option<(String, String)>, Failure> {
    let Some(other) = sibling(Path::new(path)) else {
        return Ok(None);
    };
    if content.trim() != "0" || !other.exists() {
        return Ok(None);
    }
    let other = other.to_string_lossy().into_owned();
    let value =
        fs::read_to_string(&other).map_err(|cause| Failure::system("read", &other, cause))?;
    Ok((value.trim() != "0").then_some((other, value)))
}

/// The file that the kernel changes whenever this one is written, and its content.
pub fn overwritten(path: &str) -> Result<Option<(String, String)>, Failure> {
    let requests = Path::new(path).with_file_name("nr_requests");
    if !Path::new(path).ends_with("queue/scheduler") || !requests.exists() {
        return Ok(None);
    }
    let requests = requests.to_string_lossy().into_owned();
    let value =
        fs::read_to_string(&requests).map_err(|cause| Failure::system("read", &requests, cause))?;
    Ok(Some((requests, value)))
}

fn sibling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let other = PAIRS.iter().find_map(|&(one, other)| match name {
        _ if name == one => Some(other),
        _ if name == other => Some(one),
        _ => None,
    })?;
    path.parent()?
        .ends_with(DIRECTORY)
        .then(|| path.with_file_name(other))
}
