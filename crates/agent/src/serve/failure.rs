//! Why a request could not be carried out, with the code that programs see and the hint that people need.

use std::io;
use std::path::PathBuf;

use fairtrial_protocol::VERSION;
use fairtrial_protocol::event::{Event, Failed};

/// Why a request could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The control plane speaks another version.
    #[error("the control plane speaks protocol version {theirs}, this agent speaks {VERSION}")]
    Version {
        /// Its version.
        theirs: String,
    },
    /// Another session holds the place.
    #[error("the place is held by {holder}")]
    Busy {
        /// Who, in its own words.
        holder: String,
    },
    /// A file, directory, program or user is not there.
    #[error("{what} does not exist")]
    NotFound {
        /// What.
        what: String,
    },
    /// The agent does not do this, or not now.
    #[error("{0}")]
    Refused(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// What was asked does not read back.
    #[error("{name}: expected {expected:?}, found {read_back:?} (before: {before:?}); undone")]
    Check {
        /// Name of the step.
        name: String,
        /// What should have been read.
        expected: String,
        /// What was read before the step.
        before: String,
        /// What was read after it.
        read_back: String,
    },
    /// A program a step runs did not succeed.
    #[error("`{program}` {outcome}: {said}")]
    Program {
        /// The program and its arguments.
        program: String,
        /// How it ended.
        outcome: String,
        /// What it said.
        said: String,
    },
    /// The system refused.
    #[error("{doing} {}: {cause}", path.display())]
    System {
        /// What the agent was doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl Failure {
    /// A refusal by the system; a missing path becomes [`Failure::NotFound`].
    pub fn system(
        doing: &'static str,
        path: impl Into<PathBuf>,
        cause: impl Into<io::Error>,
    ) -> Self {
        let (path, cause) = (path.into(), cause.into());
        match cause.kind() {
            io::ErrorKind::NotFound => Self::NotFound {
                what: path.display().to_string(),
            },
            _ => Self::System { doing, path, cause },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Version { .. } => "version",
            Self::Busy { .. } => "busy",
            Self::NotFound { .. } => "not_found",
            Self::Refused(_) => "refused",
            Self::Invalid(_) => "invalid",
            Self::Check { .. } => "check",
            Self::Program { .. } | Self::System { .. } => "system",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Version { .. } => Some("install the same version of fairtrial on both sides"),
            Self::Busy { .. } => {
                Some("wait for it to end, or end it; its lock goes with its process")
            }
            Self::Check { .. } => {
                Some("this kernel does not accept the value; see its documentation")
            }
            Self::System { cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied => {
                Some("run the agent as a user who may do this")
            }
            Self::System { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => {
                Some("free space on the place's disk")
            }
            _ => None,
        }
    }

    /// The event that tells it.
    pub fn event(&self, id: Option<u64>) -> Event {
        Event::Failed(Failed {
            id,
            code: self.code().to_owned(),
            message: self.to_string(),
            hint: self.hint().map(str::to_owned),
        })
    }
}
