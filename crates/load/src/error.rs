//! Why load could not be generated, and what the user can do about it.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::driver::{DriverError, OPEN_FILES, SETTING_REFUSED};

/// What a kernel may lack, or forbid.
pub const RING: &str = "io_uring";

/// Characters of what was being done.
const MOST_SHOWN: usize = 200;

/// Why a subcommand of the load engine ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A parameter contradicts another or lies outside its range.
    #[error("{field}: {problem}")]
    Parameter {
        /// The parameter's name in the JSON document.
        field: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// What the environment says of limits is none.
    #[error("{0}")]
    Limits(String),
    /// The database could not be reached, or refused the connection.
    #[error("cannot connect to {endpoint}")]
    Connect {
        /// The endpoint in words.
        endpoint: String,
        /// What the driver said.
        source: DriverError,
    },
    /// A statement failed outside the measured mix.
    #[error("{} failed", cut(doing))]
    Statement {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: DriverError,
    },
    /// The tables were made by another scale.
    #[error("the tables hold {count} {unit}, not {expected}")]
    Scale {
        /// Units asked for.
        expected: i64,
        /// Units found.
        count: i64,
        /// What is counted: `warehouses`, `rows in sbtest1`.
        unit: String,
    },
    /// A result file could not be written.
    #[error("cannot write {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file could not be read, written or mapped.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done: `open`, `read`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A block was read that is not the one asked for.
    #[error("{} holds at byte {offset} a block that belongs {owner}", path.display())]
    WrongBlock {
        /// The file.
        path: PathBuf,
        /// Where it was read.
        offset: u64,
        /// What its stamp says, in words.
        owner: String,
    },
    /// Progress could not be written: whoever reads it has gone.
    #[error("cannot write progress")]
    Progress(#[source] std::io::Error),
    /// No transaction ended for too long in a drive that waits for a number of them.
    #[error(
        "no transaction ended within {seconds} s; {missing} of the {transactions} asked for were still missing"
    )]
    Stalled {
        /// The bound.
        seconds: f64,
        /// Transactions not yet seen.
        missing: u64,
        /// Transactions asked for.
        transactions: u64,
    },
    /// Several clients did not begin together.
    #[error("no start together with the other clients: {0}")]
    Agreement(String),
    /// The kernel refused a thread, a signal handler or a reactor.
    #[error("cannot start {what}")]
    Start {
        /// What was to be started.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A signal came before a search's first probe was over.
    #[error("ended before the first probe had finished")]
    Ended,
    /// A worker ended by a panic: a fault of this program.
    #[error("a {0} thread panicked")]
    Panicked(&'static str),
}

impl LoadError {
    /// A parameter that contradicts another or lies outside its range.
    pub(crate) fn parameter(field: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Parameter { field, problem }
    }

    /// The kernel refused something that was to be started.
    pub(crate) fn start(what: &'static str) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::Start { what, source }
    }

    /// What the user can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => "correct the value in the study",
            Self::Limits(_) => "write FAIRTRIAL_LIMITS=stall_s=30,finish_s=60, or unset it",
            Self::Connect { source, .. } if source.code == SETTING_REFUSED => {
                "the system ignores settings it cannot apply: check the name, the value and what it depends on"
            }
            Self::Connect { source, .. } if source.code == OPEN_FILES => {
                "each connection is an open file: raise the hard limit of the agent's user (`ulimit -Hn`, \
                 limits.conf(5), LimitNOFILE=), or ask for fewer users"
            }
            Self::Connect { .. } => {
                "check that the server runs and that socket, host, port, user and password are right"
            }
            Self::Statement { .. } => {
                "the system's own message names the cause; its log may say more"
            }
            Self::Scale { .. } => {
                "load again at the scale of the study, or change the study to the scale that is loaded"
            }
            Self::Output { .. } => {
                "check that the directory exists, is writable and has space left"
            }
            Self::File { .. } => {
                "check the file system, its space and its permissions; `dmesg` has the device's errors"
            }
            Self::WrongBlock { .. } => {
                "this storage, or a layer above it, returned data from another place: do not trust it with data"
            }
            Self::Progress(_) => "keep standard output open until the subcommand ends",
            Self::Stalled { .. } => {
                "the server stopped answering: see its log; result.json counts the errors"
            }
            Self::Agreement(_) => {
                "the other clients, or the network to them, are too slow: look at them, and try again"
            }
            Self::Start { what: RING, source } if !is_limit(source) => {
                "the kernel lacks io_uring or forbids it (`fairtrial doctor` says which): allow it, or choose another \
                 engine"
            }
            Self::Start { .. } => {
                "raise the limits on processes and open files (ulimit -u, ulimit -n)"
            }
            Self::Ended => "let the search run until its first probe has finished",
            Self::Panicked(_) => {
                "this is a fault in fairtrial: please report it with the lines above"
            }
        }
    }
}

/// An error with its causes.
#[must_use]
pub fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Whether there is no room for more files, or memory.
fn is_limit(error: &std::io::Error) -> bool {
    let limits = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|code| limits.contains(&code))
}

/// The beginning of what was done: a statement that reads every variable of a server fills a screen.
fn cut(doing: &str) -> Cow<'_, str> {
    match doing.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &doing[..end]).into(),
        None => doing.into(),
    }
}

/// Refuses a parameter unless something holds of it.
pub fn require(field: &'static str, holds: bool, problem: &str) -> Result<(), LoadError> {
    if holds {
        Ok(())
    } else {
        Err(LoadError::parameter(field, problem))
    }
}

/// Narrower intervals cost more than they show.
const NARROWEST_INTERVAL_MS: u32 = 10;

/// Refuses an interval that is too narrow.
pub fn require_interval(interval_ms: u32) -> Result<(), LoadError> {
    let holds = interval_ms >= NARROWEST_INTERVAL_MS;
    require("interval_ms", holds, "must be at least 10")
}

/// The same of a number that lies between 1 and a limit.
pub fn require_count(field: &'static str, count: u32, limit: u32) -> Result<(), LoadError> {
    let holds = (1..=limit).contains(&count);
    require(field, holds, &format!("must be 1 to {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_without_a_descriptor_is_told_of_the_limit_and_not_of_the_kernel() {
        let refused = |code| LoadError::start(RING)(std::io::Error::from_raw_os_error(code));
        assert!(refused(libc::EPERM).hint().contains("another engine"));
        assert!(refused(libc::EMFILE).hint().contains("ulimit -n"));
    }

    #[test]
    fn a_long_statement_is_named_by_its_beginning() {
        assert_eq!(cut("SELECT 1"), "SELECT 1");
        assert_eq!(cut(&"ß".repeat(200)), "ß".repeat(200));
        assert_eq!(cut(&"ß".repeat(201)), "ß".repeat(200) + "…");
    }
}
