//! Servers that are there already: what is held on them for a run, and how their own options come back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Endpoint;

/// Runs statements on one connection, prints the rows of the last one, and keeps the connection open until SIGTERM: a
/// session's locks are held as long. Ends with an error where the server ends the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlHold {
    /// Where.
    pub endpoint: Endpoint,
    /// Statements, run in order.
    pub statements: Vec<String>,
}

/// What a server had before options were set, in a file that `sql-restore` is told by name. It holds a password, so
/// only its owner may read it; it is there before the first change and goes when all is restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerOriginals {
    /// Where.
    pub endpoint: Endpoint,
    /// Whether what is set outlasts the server's process. Otherwise a server that nobody listens for any more has
    /// nothing left to restore.
    pub lasting: bool,
    /// What is set.
    pub options: Vec<OriginalOption>,
    /// What the server changes along with it: restored last. Before the options are set, all that it could be.
    pub others: Vec<OriginalOption>,
    /// Statements that bring restored options into effect.
    pub after: Vec<String>,
    /// Command line that restarts the server after them; empty for none.
    pub restart: Vec<String>,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OriginalOption {
    /// Its name.
    pub name: String,
    /// Query of one cell: the value as it stands where it is set. No row means that it is not set there.
    pub read: String,
    /// What the query gave before.
    pub original: Option<String>,
    /// What it gave once the option was set; absent before. Any other value is somebody else's, and stays.
    pub set: Option<String>,
    /// Statement that restores the original.
    pub restore: String,
    /// Query of one cell: the value in effect.
    pub effective: String,
    /// What that gave before.
    pub in_effect: Option<String>,
    /// Whether a value may hold a secret, so that no message shows it.
    pub secret: bool,
}

/// What `sql-restore` did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlRestored {
    /// Options that have their original value again because of it.
    pub restored: Vec<String>,
    /// Options that somebody else has set since: they stay.
    pub foreign: Vec<String>,
}
