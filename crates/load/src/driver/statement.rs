//! What is said of a prepared statement, and of the transaction around it.

/// A prepared statement's place in the list its connection was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub usize);

/// Whether a transaction will write; SQLite takes its write lock at the start of one that will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Reads only.
    ReadOnly,
    /// Reads and writes.
    ReadWrite,
}

/// What a prepared statement takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementShape {
    /// Values.
    pub parameters: usize,
    /// Those of them, by their places, that must be whole numbers: where the system decides so when it prepares.
    pub integers: Vec<usize>,
    /// Columns of its rows; 0 for a statement that gives none.
    pub columns: usize,
}
