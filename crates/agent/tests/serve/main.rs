//! The supervisor, as a real process, from the other end of its pipes.

mod controller;
mod stream;
mod undo;
