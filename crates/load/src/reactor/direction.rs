//! Which way a task waits for a socket.

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Something to receive.
    Read,
    /// Room to send.
    Write,
}
