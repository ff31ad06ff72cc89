//! The words the two processes of fairtrial speak.
//!
//! Owns every type that crosses from the control plane (Python) to the data plane (this workspace) or back:
//! requests and events of the agent's stream, steps that change a place, and the parameters and results of the
//! native subcommands. The Python side is generated from these types (`fairtrial-agent schema`); nothing here knows
//! how a message is carried or acted upon.

pub mod arrivals;
pub mod boot;
pub mod clock;
pub mod event;
pub mod file;
pub mod fleet;
pub mod govern;
pub mod limits;
pub mod load;
pub mod locks;
pub mod oltp;
pub mod request;
pub mod sample;
pub mod script;
pub mod standing;
pub mod state;
pub mod step;

/// Version of the stream's language. Any change to a message raises it; a mismatch is refused at `hello`.
pub const VERSION: &str = "9";

/// Largest raw chunk behind a `chunk` header, so that pings and events are never stuck behind a long file.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Both sides send something at least this often.
pub const PING_EVERY_S: u64 = 5;

/// Silence this long means that the other side is gone: a half-open stream ends here.
pub const SILENCE_S: u64 = 15;
