//! `script`: a user's own transactions, and rows for their tables.
//!
//! What a script says was read and checked before it came here; what is checked again is what this code relies on.

mod draw;
mod plan;
pub mod population;
pub mod preflight;
mod user;
pub mod workload;

use crate::error::LoadError;

/// A script that contradicts itself: the reader of scripts has let something pass.
fn refused(problem: String) -> LoadError {
    LoadError::parameter("script", problem)
}

/// A name that lives as long as the process, which drives or loads once: results and tables ask for static names.
fn lasting(name: &str) -> &'static str {
    name.to_owned().leak()
}
