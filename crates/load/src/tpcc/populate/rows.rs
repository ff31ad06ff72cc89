//! The rows of one part of the population, on their way into the tables.

use crate::driver::Value;
use crate::driver::batch::Batch;

/// Rows of `item` and `stock` per unit: small enough to share out one warehouse among threads.
pub const ROWS_PER_UNIT: i64 = 10_000;

/// The rows of one unit, table by table, in the order of `Unit::selections`. Its memory serves one unit after another.
#[derive(Debug, Default)]
pub struct WarehouseRows {
    batches: [Batch; 3],
}

impl WarehouseRows {
    /// Forgets the rows, and keeps their memory.
    pub fn clear(&mut self) {
        self.batches.iter_mut().for_each(Batch::clear);
    }

    /// The batch of the unit's table with this position.
    pub fn batch(&self, position: usize) -> &Batch {
        &self.batches[position]
    }

    /// Appends a row to that batch.
    pub fn push(&mut self, position: usize, row: &[Value<'_>]) {
        self.batches[position].push(row);
    }
}

/// The name of a unit's stream of random numbers.
#[allow(clippy::cast_sign_loss)] // numbers of warehouses, districts and items are positive
pub fn path(parts: &[i64]) -> Vec<u64> {
    parts.iter().map(|part| *part as u64).collect()
}
