//! What a request means and what is answered, where that takes more than a call. Nothing here knows the session.

pub mod get;
pub mod hello;
pub mod put;

use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;

/// A path as it must come: absolute, since the agent's own directory means nothing to the control plane.
fn absolute(path: &str) -> Result<PathBuf, Failure> {
    if Path::new(path).is_absolute() {
        Ok(PathBuf::from(path))
    } else {
        Err(Failure::Invalid(format!("{path} is not an absolute path")))
    }
}
