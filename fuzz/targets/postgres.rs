//! What a PostgreSQL server says to a session: the same as of MySQL.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_load::fuzzing::postgres(bytes));
