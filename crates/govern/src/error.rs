//! Why purge could not be governed.

use std::io;
use std::path::PathBuf;

use fairtrial_sample::SampleError;

/// Why purge could not be governed, or its values not be restored.
#[derive(Debug, thiserror::Error)]
pub enum GovernError {
    /// A parameter contradicts another or lies outside its range.
    #[error("{field}: {problem}")]
    Parameter {
        /// Its name in the JSON document.
        field: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// The server could not be asked at all.
    #[error("cannot govern: {reason}")]
    Unreachable {
        /// In words.
        reason: String,
    },
    /// It answers, and not what must be asked of it.
    #[error("this server cannot be governed: {reason}")]
    Unfit {
        /// Its own words.
        reason: String,
    },
    /// It has another storage engine.
    #[error("the server has no InnoDB to govern: it is {version}")]
    NotInnodb {
        /// Its own words.
        version: String,
    },
    /// It does not say what the algorithm needs.
    #[error("this server ({version}) does not report its history length and checkpoint age")]
    Blind {
        /// Its own words.
        version: String,
    },
    /// Values may not be set.
    #[error("the server refuses `SET GLOBAL {variable}`: {message}")]
    Refused {
        /// Which.
        variable: &'static str,
        /// The server's words.
        message: String,
    },
    /// Original values are not in effect again.
    #[error("the original values could not be restored: {reason}")]
    NotRestored {
        /// In words.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot use {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The file of looks, the timer or the signals.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Standard output is gone.
    #[error("cannot write to standard output: {0}")]
    StandardOutput(#[source] io::Error),
}

impl GovernError {
    /// What the user can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => "correct the value",
            Self::Unreachable { .. } | Self::Unfit { .. } => {
                "check that the server runs, the socket, the user, its password and its privileges: PROCESS to look, \
                 SUPER (on MySQL 8 SYSTEM_VARIABLES_ADMIN) to govern"
            }
            Self::NotInnodb { .. } => "give a MariaDB or MySQL endpoint",
            Self::Blind { .. } => {
                "on MariaDB 10.2 to 10.4 and MySQL before 8.0.30, switch the counters on: \
                 SET GLOBAL innodb_monitor_enable = 'log_lsn_checkpoint_age'"
            }
            Self::Refused { .. } => {
                "give the user the privilege (SUPER; on MySQL 8 SYSTEM_VARIABLES_ADMIN), or use --dry-run, which changes nothing"
            }
            Self::NotRestored { .. } => {
                "set innodb_purge_threads and innodb_purge_batch_size by hand to the values listed above"
            }
            Self::File { .. } => "check that the directory exists, is writable and has free space",
            Self::Sample(error) => error.hint(),
            Self::StandardOutput(_) => {
                "the reader of the governor's output has closed it; run the governor again"
            }
        }
    }
}
