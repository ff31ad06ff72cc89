//! The supervisor, as a real process, from the other end of its pipes.

pub mod controller;
mod crowd;
mod launch;
mod machine;
mod steps;
mod stream;
mod undo;
