//! What the unit tests of this crate share.

pub mod chance;
pub mod database;

/// The server of the tests in `tests/`; it asks this crate by its outer name.
#[allow(dead_code)] // a part of it serves here
#[path = "../../tests/all/support/mariadb.rs"]
pub mod mariadb;

/// The same of PostgreSQL.
#[allow(dead_code)] // a part of it serves here
#[path = "../../tests/all/support/postgres.rs"]
pub mod postgres;
