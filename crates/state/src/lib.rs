//! Known state of a place.

use std::path::PathBuf;

use fairtrial_protocol::state::{Facts, Restore, Restored, Settle, Settled};

/// Why the place could not be brought to a known state.
#[derive(Debug, thiserror::Error)]
#[error("this build knows no state")]
pub struct StateError;

/// Facts of the place.
pub fn facts() -> Result<Facts, StateError> {
    Err(StateError)
}

/// Copies prepared data.
pub fn restore(_parameters: &Restore) -> Result<Restored, StateError> {
    Err(StateError)
}

/// Brings the page cache to rest.
pub fn settle(_parameters: &Settle) -> Result<Settled, StateError> {
    Err(StateError)
}

/// Where the agent keeps its state.
#[must_use]
pub fn state_directory() -> PathBuf {
    PathBuf::from("/var/lib/fairtrial")
}
