//! What stands in an undo journal.

#![no_main]
#![allow(dead_code, reason = "most of the agent's supervisor is not for this")]

#[path = "../../crates/agent/src/serve/mod.rs"]
mod serve;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| serve::fuzzing::journal(bytes));
