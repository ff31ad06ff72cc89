//! Telemetry of a place.

use fairtrial_protocol::sample::Sample;

/// Why the place could not be sampled.
#[derive(Debug, thiserror::Error)]
#[error("this build has no sampler")]
pub struct SampleError;

/// Samples until SIGTERM.
pub fn sample(_parameters: &Sample) -> Result<(), SampleError> {
    Err(SampleError)
}
