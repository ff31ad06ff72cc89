//! What a PostgreSQL server asks for at a login, with the client's nonce put in.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fairtrial_load::fuzzing::postgres_login(bytes));
