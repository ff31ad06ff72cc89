//! What a client says to the server that does nothing.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_load::fuzzing::noop(bytes));
