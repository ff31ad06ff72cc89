//! Known state of a place: its facts, prepared data restored for a trial, and a page cache at rest.

mod covariates;
mod directory;
mod error;
mod facts;
mod groups;
mod owner;
mod restore;
mod settle;

pub use covariates::{covariates, covariates_below};
pub use directory::{machine_directory, state_directory};
pub use error::StateError;
pub use facts::{facts, facts_below};
pub use owner::{Account, account, accounts};
pub use restore::restore;
pub use settle::{settle, settle_below};
