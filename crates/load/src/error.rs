//! Why load could not be generated, and what the user can do about it.

use std::path::PathBuf;

use crate::driver::{DriverError, OPEN_FILES, SETTING_REFUSED};

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
    #[error("{doing} failed")]
    Statement {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: DriverError,
    },
    /// The tables were made by another scale.
    #[error("the tables hold {found} {unit}, not {asked}")]
    Scale {
        /// Units asked for.
        asked: i64,
        /// Units found.
        found: i64,
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
    #[error("{} holds at byte {offset} what belongs {found}", path.display())]
    WrongBlock {
        /// The file.
        path: PathBuf,
        /// Where it was read.
        offset: u64,
        /// What its stamp says, in words.
        found: String,
    },
    /// Progress could not be written: whoever reads it has gone.
    #[error("cannot write progress")]
    Progress(#[source] std::io::Error),
    /// No transaction ended for too long in a drive that waits for a number of them.
    #[error(
        "no transaction ended within {seconds} s; {missing} of the {asked} asked for were still missing"
    )]
    Stalled {
        /// The bound.
        seconds: f64,
        /// Transactions not yet seen.
        missing: u64,
        /// Transactions asked for.
        asked: u64,
    },
    /// The kernel refused a thread, a signal handler or a reactor.
    #[error("cannot start {what}")]
    Start {
        /// What was to be started.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A signal came before a search's first probe was over.
    #[error("ended before the first probe was over")]
    Ended,
    /// A worker ended by a panic: a fault of this program.
    #[error("a {0} thread panicked")]
    Panicked(&'static str),
}

impl LoadError {
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
                "load again with the scale that is asked for, or ask for the scale that is loaded"
            }
            Self::Output { .. } => {
                "check that the directory exists, is writable and has space left"
            }
            Self::File { .. } => {
                "check the file system, its space and its permissions; `dmesg` has the device's errors"
            }
            Self::WrongBlock { .. } => {
                "this storage, or what lies above it, gave data of another place: do not trust it with any"
            }
            Self::Progress(_) => "keep standard output open until the subcommand ends",
            Self::Stalled { .. } => {
                "look at the server's log: it stopped answering; result.json has the errors counted"
            }
            Self::Start { .. } => {
                "raise the limits on processes and open files (ulimit -u, ulimit -n)"
            }
            Self::Ended => "let the search run: its length is that of its probes",
            Self::Panicked(_) => {
                "this is a fault in fairtrial: please report it with the lines above"
            }
        }
    }
}
