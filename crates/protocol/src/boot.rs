//! What the agent does as the first process of a virtual machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the virtio-serial port that carries the stream.
pub const PORT: &str = "fairtrial";

/// What the first process says on the console when the agent is about to listen.
pub const READY: &str = "ready";

/// Where the initial file system holds the document.
pub const DOCUMENT: &str = "/fairtrial/boot.json";

/// How a guest comes up, in `/fairtrial/boot.json` of its initial file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Kernel modules in the order of loading, as paths in the initial file system.
    pub modules: Vec<String>,
    /// Tag of the 9p share that holds the root file system, which is mounted read-only below a layer in memory.
    pub root: String,
    /// File systems mounted over the root before the stream begins, in order.
    pub mounts: Vec<BootMount>,
    /// Swap devices, formatted.
    #[serde(default)]
    pub swaps: Vec<String>,
    /// Where the agent keeps its state.
    pub state_directory: String,
    /// Host name of the guest.
    pub host: String,
}

/// One file system of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BootMount {
    /// Block device, such as `/dev/vda`.
    pub source: String,
    /// Where it is mounted; made if it is not there.
    pub target: String,
    /// Such as `xfs`.
    pub file_system: String,
    /// Options of the file system, such as `dax=always`.
    #[serde(default)]
    pub options: String,
}
