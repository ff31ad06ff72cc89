//! What a MariaDB or MySQL server says to a session: login, prepared statements, rows, a pipeline, loading.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_load::fuzzing::mysql(bytes));
