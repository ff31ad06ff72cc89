//! What a request means and what is answered, where that takes more than a call. Nothing here knows the session.

pub mod get;
pub mod hello;
pub mod put;

use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;

/// The longest path that the kernel takes (`path_resolution(7)`).
const PATH_BYTES: usize = 4096;

/// A path as it must come: absolute, since the agent's own directory means nothing to the control plane.
fn absolute(path: &str) -> Result<PathBuf, Failure> {
    if path.len() >= PATH_BYTES {
        return Err(Failure::Invalid(format!("a path of {} bytes", path.len())));
    }
    if Path::new(path).is_absolute() {
        Ok(PathBuf::from(path))
    } else {
        Err(Failure::Invalid(format!("{path} is not an absolute path")))
    }
}
