//! What fills tables: units of rows that any thread can make in any order, loaded in parallel and known by one hash.

pub mod content;
mod journal;
pub mod load;
pub mod pace;

use crate::driver::batch::Batch;
use crate::driver::dialect::Dialect;
use crate::driver::table::Table;

/// The initial rows of a workload's tables.
///
/// Each unit draws from a stream of its own, so what it holds depends on the seed and on nothing else; inside a unit
/// rows come in the order of the table's primary key.
pub trait Population: Sync {
    /// Memory for the rows of one unit after another.
    type Rows: Default;

    /// Everything that determines the rows, in words: equal for equal content.
    fn identity(&self) -> String;

    /// Whether an interrupted load goes on where it was, and its last statements may be repeated.
    fn resumes(&self) -> bool {
        true
    }

    /// All tables, in the order of the content hash.
    fn tables(&self) -> Vec<&'static Table>;

    /// The statements that create them, empty, in place of what is there.
    fn create(&self, dialect: Dialect) -> Vec<String>;

    /// The statements that make them ready for use once the rows are in: secondary indexes.
    fn finish(&self, dialect: Dialect) -> Vec<String>;

    /// Number of units.
    fn units(&self) -> usize;

    /// A unit's share of the work, in the units that progress counts.
    fn weight(&self, unit: usize) -> f64;

    /// Progress is told at this much work.
    fn tell_every(&self) -> f64;

    /// The tables a unit has rows of, each with the condition that selects them.
    fn selections(&self, unit: usize) -> Vec<(&'static Table, String)>;

    /// Makes a unit's rows.
    fn fill(&self, unit: usize, rows: &mut Self::Rows);

    /// The rows of the unit's table with this position in its selections.
    fn batch<'a>(&self, rows: &'a Self::Rows, position: usize) -> &'a Batch;
}
