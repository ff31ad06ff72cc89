//! What the unit tests of this crate share.

pub mod chance;
