//! Telemetry of fake trees, of recorded kernels and of real servers.

mod cut_stream;
#[path = "../../../load/tests/all/support/eventually.rs"]
mod eventually;
mod fake_proc;
mod fake_tree;
mod kernels;
mod series;
mod server;
mod stream;
mod tree;
