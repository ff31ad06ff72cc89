//! What an endpoint of counters answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_sample::fuzzing::exposition(bytes));
