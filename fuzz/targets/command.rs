//! What a sampled command prints.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_sample::fuzzing::command(bytes));
