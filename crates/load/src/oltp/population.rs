//! The rows of the tables: keys from 1 on, `k` by a distribution over the keys, random text.

use fairtrial_protocol::oltp::{Layout, OltpLoad};

use super::content::{C_GROUPS, PAD_GROUPS, groups};
use super::keys::{self, Keys};
use super::schema;
use crate::driver::Value;
use crate::driver::batch::Batch;
use crate::driver::dialect::Dialect;
use crate::driver::table::Table;
use crate::error::LoadError;
use crate::population::Population;
use crate::random::Random;

/// Rows per unit: small enough to share out one table among threads, about 2 MB.
const ROWS_PER_UNIT: u32 = 10_000;

/// Progress is told at this many rows.
const TELL_EVERY: f64 = 50_000.0;

/// More tables than this are a mistake, not a benchmark.
pub const TABLES_LIMIT: u32 = 10_000;

/// Keys are signed 32-bit integers.
pub const ROWS_LIMIT: u32 = i32::MAX as u32;

/// The tables of a scale and a seed.
pub struct OltpTables {
    tables: Vec<&'static Table>,
    layout: Layout,
    table_size: u32,
    keys: Keys,
    seed: u64,
    identity: String,
}

/// One unit's rows.
#[derive(Default)]
pub struct OltpUnit {
    batch: Batch,
    c: String,
    pad: String,
}

/// Refuses scales that no tables can have.
pub fn validate(tables: u32, table_size: u32) -> Result<(), LoadError> {
    for (field, value, limit) in [
        ("tables", tables, TABLES_LIMIT),
        ("table_size", table_size, ROWS_LIMIT),
    ] {
        if !(1..=limit).contains(&value) {
            let problem = format!("must be between 1 and {limit}, not {value}");
            return Err(LoadError::Parameter { field, problem });
        }
    }
    Ok(())
}

impl OltpTables {
    /// The population that these parameters ask for.
    pub fn new(parameters: &OltpLoad) -> Result<Self, LoadError> {
        validate(parameters.tables, parameters.table_size)?;
        keys::validate(&parameters.distribution)?;
        let table_size = match parameters.layout {
            Layout::Rows => parameters.table_size,
            Layout::Bulk => 0,
        };
        Ok(Self {
            tables: schema::tables(parameters.layout, parameters.tables),
            layout: parameters.layout,
            table_size,
            keys: Keys::new(&parameters.distribution, 1, parameters.table_size.into()),
            seed: parameters.seed,
            identity: format!(
                "oltp, {:?}, {} tables of {}, {:?}, seed {}",
                parameters.layout,
                parameters.tables,
                table_size,
                parameters.distribution,
                parameters.seed
            ),
        })
    }

    fn units_per_table(&self) -> usize {
        self.table_size.div_ceil(ROWS_PER_UNIT) as usize
    }

    /// A unit's table, counted from 0, and its first and last key.
    fn span(&self, unit: usize) -> (usize, i64, i64) {
        let units = self.units_per_table();
        let place = i64::try_from(unit % units).unwrap_or_default();
        let first = place * i64::from(ROWS_PER_UNIT) + 1;
        let last = (first + i64::from(ROWS_PER_UNIT) - 1).min(self.table_size.into());
        (unit / units, first, last)
    }
}

impl Population for OltpTables {
    type Rows = OltpUnit;

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn tables(&self) -> Vec<&'static Table> {
        self.tables.clone()
    }

    fn create(&self, dialect: Dialect) -> Vec<String> {
        let replace = |table: &&Table| {
            let drop = format!("DROP TABLE IF EXISTS {}", table.name);
            [drop, schema::create(dialect, self.layout, table.name)]
        };
        self.tables.iter().flat_map(replace).collect()
    }

    fn finish(&self, dialect: Dialect) -> Vec<String> {
        match self.layout {
            Layout::Rows => (1..)
                .zip(&self.tables)
                .flat_map(|(number, _)| {
                    let index = schema::create_index(number);
                    [index].into_iter().chain(schema::next_key(dialect, number))
                })
                .collect(),
            Layout::Bulk => Vec::new(),
        }
    }

    fn units(&self) -> usize {
        self.units_per_table() * self.tables.len()
    }

    #[allow(clippy::cast_precision_loss)] // rows of a unit
    fn weight(&self, unit: usize) -> f64 {
        let (_, first, last) = self.span(unit);
        (last - first + 1) as f64
    }

    fn tell_every(&self) -> f64 {
        TELL_EVERY
    }

    fn selections(&self, unit: usize) -> Vec<(&'static Table, String)> {
        let (table, first, last) = self.span(unit);
        vec![(self.tables[table], format!("id BETWEEN {first} AND {last}"))]
    }

    fn fill(&self, unit: usize, rows: &mut OltpUnit) {
        let (table, first, last) = self.span(unit);
        let mut random = Random::derive(self.seed, "sbtest", &[table as u64, unit as u64]);
        rows.batch.clear();
        for id in first..=last {
            let k = self.keys.draw(&mut random);
            rows.c.clear();
            groups(&mut random, C_GROUPS, &mut rows.c);
            rows.pad.clear();
            groups(&mut random, PAD_GROUPS, &mut rows.pad);
            rows.batch.push(&[
                Value::Integer(id),
                Value::Integer(k),
                Value::Text(&rows.c),
                Value::Text(&rows.pad),
            ]);
        }
    }

    fn batch<'a>(&self, rows: &'a OltpUnit, _position: usize) -> &'a Batch {
        &rows.batch
    }
}
