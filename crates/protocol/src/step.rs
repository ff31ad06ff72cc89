//! Steps: the smallest changes to a place, each with its check and its way back.
//!
//! A setting is a list of steps made by a pure function on the control plane. The agent syncs the way back to disk
//! before it acts, so that even a killed agent leaves a place that the next one can restore.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One change to a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What a person calls it, for messages: `vm.swappiness`, `/sys/kernel/mm/lru_gen/enabled`.
    pub name: String,
    /// What is done.
    pub action: Action,
    /// How it is read back. Absent only where nothing can be read back (`drop_caches`).
    #[serde(default)]
    pub check: Option<Check>,
    /// How it is undone.
    pub inverse: Inverse,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Writes text to an existing file (a kernel interface, mostly) in one `write(2)`.
    Write {
        /// Absolute path; must exist.
        path: String,
        /// The text; no newline is added.
        value: String,
    },
    /// Mounts a file system.
    Mount {
        /// Device, file or `none`.
        source: String,
        /// Mount point; must exist.
        target: String,
        /// File-system type.
        file_system: String,
        /// Comma-separated options.
        #[serde(default)]
        options: String,
    },
    /// Creates a directory (must not exist), parents excluded.
    Create {
        /// Absolute path of the directory.
        path: String,
    },
    /// Creates a control group (must not exist), parents excluded.
    Group {
        /// Absolute path of its directory in a cgroup file system.
        path: String,
    },
    /// Runs a program to its end; exit code 0 is success.
    Execute {
        /// Program and arguments; no shell.
        argv: Vec<String>,
    },
}

/// How what was asked is compared with what the place says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Where to read.
    pub read: Read,
    /// What must be read after normalising both sides.
    pub expect: String,
    /// How both sides are normalised before comparison.
    #[serde(default)]
    pub normalise: Normalise,
}

/// Where a check reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Read {
    /// A file's content.
    File {
        /// Absolute path.
        path: String,
    },
    /// A program's standard output.
    Output {
        /// Program and arguments; no shell.
        argv: Vec<String>,
    },
}

/// Normalisation before comparison; the kernel rarely answers in the words it was asked in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    /// Surrounding white space removed.
    #[default]
    Trim,
    /// Runs of white space are one blank (`net.ipv4.tcp_rmem`).
    Words,
    /// The word in brackets: `always [madvise] never` is `madvise`.
    Brackets,
    /// Integers compared as numbers: decimal, `0x` hexadecimal, leading zeros.
    Integer,
    /// `y`/`n`, `Y`/`N`, `on`/`off`, `1`/`0`.
    Boolean,
}

/// The way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Inverse {
    /// For `write`: the previous content is read (and its bracketed word taken, where there is one) and written back.
    /// For `mount`: unmounted. For `create`: removed, with everything below it. For `group`: what still runs in it is
    /// killed, and it is removed.
    Restore {},
    /// Runs a program.
    Execute {
        /// Program and arguments; no shell.
        argv: Vec<String>,
        /// Whether what it takes back is not the machine's own, such as a server's options: other sessions may change
        /// this machine meanwhile, and its next boot leaves it to be taken back.
        #[serde(default)]
        lasting: bool,
    },
    /// Nothing to undo (`drop_caches`).
    None {},
}
