//! Statements that go out before the first answer is read.
//!
//! Only prepared statements whose values depend on no answer among them. Nothing of a transaction may stay behind when
//! one of them fails: a driver says by `Connection::ERROR_ENDS_PIPELINE` how its server goes on after an error, and
//! makes sure that what runs after one can be rolled back.

use fairtrial_protocol::load::Endpoint;

use super::{AccessMode, StatementId, Value};
use crate::error::LoadError;

/// So much goes out before answers are read. The server has read everything before, so a socket's buffers take it
/// whole: neither side can wait for the other to read while it sends.
const LENGTH_LIMIT: usize = 16 * 1024;

/// No value's length, type and format take more than this, and neither does a statement's name.
const OVERHEAD: usize = 32;

/// A prepared statement and its values.
#[derive(Clone, Copy, Debug)]
pub struct BoundStatement<'a> {
    /// The statement.
    pub statement: StatementId,
    /// Its values.
    pub values: &'a [Value<'a>],
}

impl BoundStatement<'_> {
    /// Bytes it may take on its way, and not fewer.
    fn length(&self) -> usize {
        let length = |value: &Value<'_>| match value {
            Value::Text(text) => OVERHEAD + text.len(),
            _ => OVERHEAD * 2, // a number, which may travel as text
        };
        2 * OVERHEAD + self.values.iter().map(length).sum::<usize>()
    }
}

/// What is sent together.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a> {
    /// Begins a transaction before the statements.
    pub begin: Option<AccessMode>,
    /// The statements, in their order.
    pub requests: &'a [BoundStatement<'a>],
    /// Whether they are part of a transaction, begun here or before; else each is for itself.
    pub in_transaction: bool,
    /// Commits it after them.
    pub commit: bool,
}

impl Pipeline<'_> {
    /// How many statements these are with those that begin and end the transaction.
    pub fn statements(&self) -> u64 {
        self.requests.len() as u64 + u64::from(self.begin.is_some()) + u64::from(self.commit)
    }
}

/// Whether the driver of an endpoint can send statements before answers are read.
pub fn check(endpoint: &Endpoint) -> Result<(), LoadError> {
    match endpoint {
        Endpoint::Mysql { .. } | Endpoint::Postgres { .. } => Ok(()),
        Endpoint::Sqlite { .. } => Err(LoadError::parameter(
            "pipelining",
            "SQLite runs inside the client: nothing travels, so there is nothing to pipeline",
        )),
    }
}

/// How many of these go out at once: one at least, if there is one.
pub fn fitting(requests: &[BoundStatement<'_>]) -> usize {
    let mut length = 0;
    let fits = requests.iter().take_while(|request| {
        length += request.length();
        length <= LENGTH_LIMIT
    });
    fits.count().max(1).min(requests.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_out_at_once_is_bounded_and_a_long_statement_goes_alone() {
        let (small, long) = ([Value::Integer(1)], "x".repeat(LENGTH_LIMIT));
        let long = [Value::Text(&long)];
        let request = |values| BoundStatement {
            statement: StatementId(0),
            values,
        };
        assert_eq!(fitting(&[]), 0);
        assert_eq!(fitting(&[request(&long), request(&small)]), 1);
        assert_eq!(fitting(&[request(&small), request(&long)]), 1);
        let many = vec![request(&small[..]); 1_000];
        let count = fitting(&many);
        assert!(count > 100 && count < 1_000, "{count}");
        let length: usize = many[..count].iter().map(BoundStatement::length).sum();
        assert!(length <= LENGTH_LIMIT);
    }
}
