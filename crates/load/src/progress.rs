//! Progress as JSON lines, each flushed, so that a reader sees it when it happens.

use std::io::{self, Write};

use fairtrial_protocol::load::Progress;

use crate::error::LoadError;

/// Writes one line.
pub fn say(out: &mut dyn Write, progress: &Progress) -> Result<(), LoadError> {
    let mut line = serde_json::to_vec(progress)
        .map_err(|error| LoadError::Progress(io::Error::other(error)))?;
    line.push(b'\n');
    out.write_all(&line)
        .and_then(|()| out.flush())
        .map_err(LoadError::Progress)
}
