//! The seam between workloads and systems: connections, values and classified errors.
//!
//! A driver is one file. It owns its client library, its reactor and its blocking calls; nothing of them is visible
//! here. Workloads are generic over [`Connection`], so that a statement costs no dynamic dispatch.

pub mod batch;
pub mod connection;
pub mod dialect;
pub mod endpoint;
mod error;
pub mod mysql;
pub mod pipeline;
pub mod postgres;
pub mod remote;
pub mod sqlite;
mod statement;
pub mod table;
mod value;

pub use connection::{Connection, Driver};
pub use error::{DriverError, ErrorKind, OPEN_FILES, SETTING_REFUSED};
pub use statement::{AccessMode, StatementId, StatementShape};
pub use value::{Cell, Decimal, Row, Value};
