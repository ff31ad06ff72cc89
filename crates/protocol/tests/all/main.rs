//! The messages: examples, schemas, steps.

mod messages;
mod native;
mod schema;
mod step;
