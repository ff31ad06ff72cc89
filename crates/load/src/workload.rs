//! The seam between the drive and what is driven: a workload makes users, a user makes transactions.
//!
//! The drive knows connections, schedules and counts; it must not know tables or statements. Everything here is
//! generic over [`Connection`], so that a statement costs no dynamic dispatch.

mod counted;

use std::collections::BTreeMap;

pub use counted::CountingConnection;

use crate::driver::dialect::Dialect;
use crate::driver::{Connection, DriverError, ErrorKind};
use crate::error::LoadError;

/// How a transaction that came to its end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// Committed.
    Committed,
    /// Rolled back by the workload's own rule.
    RolledBack,
}

/// Named counts of what was drawn.
pub type Counts = BTreeMap<&'static str, u64>;

/// Why a workload cannot be driven on a database.
#[derive(Debug)]
pub enum Unfit {
    /// The tables say so.
    Tables(LoadError),
    /// The database could not be asked.
    Refused(DriverError),
}

impl Unfit {
    /// What a statement that failed says: something about the tables, unless the connection was lost.
    pub fn of(doing: impl Into<String>, source: DriverError) -> Self {
        if source.kind == ErrorKind::Connection {
            return Self::Refused(source);
        }
        let doing = doing.into();
        Self::Tables(LoadError::Statement { doing, source })
    }
}

impl From<DriverError> for Unfit {
    fn from(error: DriverError) -> Self {
        Self::Refused(error)
    }
}

/// A kind of load with its parameters.
pub trait Workload: Send + Sync + 'static {
    /// One virtual user's own state.
    type User: User;

    /// Names of the transaction types in results; a type's number is its place here.
    fn types(&self) -> &[&'static str];

    /// The statements every connection prepares, written for a dialect; a [`crate::driver::StatementId`] is a place
    /// here.
    fn statements(&self, dialect: Dialect) -> Vec<String>;

    /// Looks, before the first user does, whether the tables have the scale that is asked for.
    async fn preflight<C: Connection>(
        &mut self,
        connection: &mut C,
        dialect: Dialect,
    ) -> Result<(), Unfit>;

    /// The state of a user, counted from 0, made from the run's seed and this number alone.
    fn user(&self, number: u32, dialect: Dialect) -> Self::User;

    /// Constants of the run that belong beside the counts of what was drawn.
    fn constants(&self) -> Counts;
}

/// One virtual user's state: the transaction it is about to run or runs, and its streams of draws.
///
/// Everything a transaction needs is drawn before it runs, so equal seeds give equal transactions, whatever the system
/// answers and however often one is repeated.
pub trait User {
    /// Draws the next transaction; returns the number of its type.
    fn next(&mut self) -> usize;

    /// Waits before and after that transaction, seconds (keying and thinking).
    fn waits_s(&mut self) -> (f64, f64);

    /// The transaction is about to be run for the first time: counts what was drawn.
    fn start(&mut self);

    /// Runs the transaction from its beginning to its end. After an error the caller rolls back, and may call again.
    async fn transaction<C: Connection>(
        &mut self,
        connection: &mut C,
    ) -> Result<TransactionEnd, DriverError>;

    /// A factor for back-off, uniform over [0.5, 1.5), so that victims of one deadlock do not meet again.
    fn spread(&mut self) -> f64;

    /// What was drawn so far.
    fn drawn(&self) -> Counts;
}
