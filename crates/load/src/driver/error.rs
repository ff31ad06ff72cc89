//! What drivers say went wrong.

use std::fmt;

/// Code of a connection setting that does not read back as asked.
pub const SETTING_REFUSED: &str = "setting_refused";

/// Code of a connection for which the process has no file descriptor left.
pub const OPEN_FILES: &str = "open_files_limit";

/// What went wrong, whatever the system calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The system chose this transaction as a deadlock's victim.
    Deadlock,
    /// A lock was not granted in time.
    LockTimeout,
    /// The database was held by another writer (SQLite).
    Busy,
    /// The connection was refused, lost or killed.
    Connection,
    /// The system has no room left on its disk.
    DiskFull,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// Its name in `result.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::LockTimeout => "lock_timeout",
            Self::Busy => "busy",
            Self::Connection => "connection",
            Self::DiskFull => "disk_full",
            Self::Other => "other",
        }
    }
}

/// An error of a system or its client library, classified by the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The system's code (`1213`, `SQLITE_BUSY`) or the driver's (`connection_lost`).
    pub code: String,
    /// The system's message.
    pub message: String,
    /// Whether the same transaction may succeed when run again.
    pub retryable: bool,
}

impl DriverError {
    /// An answer that does not have the form the statement promises; never retried.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Other,
            code: "unexpected_answer".into(),
            message: message.into(),
            retryable: false,
        }
    }

    /// Whether the session is gone, and no answer comes any more.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.kind == ErrorKind::Connection
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for DriverError {}
