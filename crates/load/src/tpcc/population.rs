//! The nine tables as a population: units of [`super::populate`], counted in warehouses.

use super::populate::Unit;
use super::populate::rows::WarehouseRows;
use super::schema::TABLES;
use crate::driver::batch::Batch;
use crate::driver::dialect::Dialect;
use crate::driver::table::Table;
use crate::error::LoadError;
use crate::population::Population;

/// More warehouses than this do not fit the 32-bit keys of other tools' tables, nor any disk.
const WAREHOUSES_LIMIT: u32 = 1_000_000;

/// Progress is told at this fraction of a warehouse.
const TELL_EVERY: f64 = 0.1;

/// The rows of a scale and a seed.
pub struct Warehouses {
    units: Vec<Unit>,
    seed: u64,
}

impl Warehouses {
    /// The population of a scale.
    pub fn new(warehouses: u32, seed: u64) -> Result<Self, LoadError> {
        if (1..=WAREHOUSES_LIMIT).contains(&warehouses) {
            let units = Unit::all(warehouses);
            return Ok(Self { units, seed });
        }
        let problem = format!("must be between 1 and {WAREHOUSES_LIMIT}, not {warehouses}");
        Err(LoadError::parameter("warehouses", problem))
    }
}

impl Population for Warehouses {
    type Rows = WarehouseRows;

    fn identity(&self) -> String {
        format!("tpcc, {} units, seed {}", self.units.len(), self.seed)
    }

    fn tables(&self) -> Vec<&'static Table> {
        TABLES.to_vec()
    }

    fn create(&self, dialect: Dialect) -> Vec<String> {
        let replace = |table: &&Table| {
            let drop = format!("DROP TABLE IF EXISTS {}", table.name);
            [drop, table.create(dialect)]
        };
        TABLES.iter().flat_map(replace).collect()
    }

    fn finish(&self, _dialect: Dialect) -> Vec<String> {
        TABLES
            .iter()
            .flat_map(|table| table.create_indexes())
            .collect()
    }

    fn units(&self) -> usize {
        self.units.len()
    }

    fn weight(&self, unit: usize) -> f64 {
        self.units[unit].weight()
    }

    fn tell_every(&self) -> f64 {
        TELL_EVERY
    }

    fn selections(&self, unit: usize) -> Vec<(&'static Table, String)> {
        self.units[unit].selections()
    }

    fn fill(&self, unit: usize, rows: &mut WarehouseRows) {
        self.units[unit].fill(self.seed, rows);
    }

    fn batch<'a>(&self, rows: &'a WarehouseRows, position: usize) -> &'a Batch {
        rows.batch(position)
    }
}
