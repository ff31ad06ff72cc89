//! What a controller sends to an agent.

#![no_main]
#![allow(dead_code, reason = "most of the agent's supervisor is not for this")]

#[path = "../../crates/agent/src/serve/mod.rs"]
mod serve;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| serve::fuzzing::frames(bytes));
