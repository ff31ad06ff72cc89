//! The rows a script asks for, in units that any thread can make in any order.

use fairtrial_protocol::script::{ScriptFill, ScriptLoad, ScriptParameter};

use super::draw::{ValueBuffer, ValueSource};
use super::{lasting, refused};
use crate::driver::Value;
use crate::driver::batch::Batch;
use crate::driver::dialect::{Dialect, Type};
use crate::driver::table::{Column, Table};
use crate::error::LoadError;
use crate::population::Population;
use crate::random::Random;

/// Rows per unit: small enough to share out one table among threads, a few MB of usual rows.
const ROWS_PER_UNIT: u64 = 5_000;

/// Progress is told at this many rows.
const TELL_EVERY: f64 = 50_000.0;

/// More rows than this are a mistake, not a benchmark.
const ROWS_LIMIT: u64 = 100_000_000_000;

/// The tables of a script and a seed.
pub struct ScriptTables {
    create: Vec<String>,
    finish: Vec<String>,
    fills: Vec<Fill>,
    seed: u64,
}

struct Fill {
    table: &'static Table,
    rows: u64,
    sources: Vec<ValueSource>,
    /// The first of its units, among all tables'.
    first_unit: usize,
}

impl ScriptTables {
    /// The rows that these parameters ask for.
    pub fn new(parameters: &ScriptLoad) -> Result<Self, LoadError> {
        let mut fills = Vec::with_capacity(parameters.fill.len());
        let mut first_unit = 0;
        for parameters in &parameters.fill {
            fills.push(fill(parameters, first_unit)?);
            first_unit += units(parameters.rows);
        }
        Ok(Self {
            create: parameters.create.clone(),
            finish: parameters.finish.clone(),
            fills,
            seed: parameters.seed,
        })
    }

    /// The table of a unit, and its first row and the one after its last, counted from 0.
    fn span(&self, unit: usize) -> (&Fill, u64, u64) {
        let after = self.fills.partition_point(|fill| fill.first_unit <= unit);
        let fill = &self.fills[after - 1];
        let first = (unit - fill.first_unit) as u64 * ROWS_PER_UNIT;
        (fill, first, (first + ROWS_PER_UNIT).min(fill.rows))
    }
}

fn units(rows: u64) -> usize {
    usize::try_from(rows.div_ceil(ROWS_PER_UNIT)).unwrap_or(usize::MAX)
}

fn fill(parameters: &ScriptFill, first_unit: usize) -> Result<Fill, LoadError> {
    if !(1..=ROWS_LIMIT).contains(&parameters.rows) || parameters.columns.is_empty() {
        let ScriptFill { table, rows, .. } = parameters;
        return Err(refused(format!(
            "{rows} rows of {table}, or without columns"
        )));
    }
    // Text on all systems, since rows travel as text to those that have decimals.
    let source = |column: &ScriptParameter| Ok(ValueSource::new(&column.draw)?.without_decimals());
    let sources = parameters.columns.iter().map(source);
    // Types serve statements that create tables, and scripts bring their own.
    let column = |name: &str| Column {
        name: lasting(name),
        kind: Type::Variable(0),
        nullable: true,
    };
    let columns: Vec<Column> = parameters
        .columns
        .iter()
        .map(|each| column(&each.name))
        .collect();
    Ok(Fill {
        rows: parameters.rows,
        sources: sources.collect::<Result<_, LoadError>>()?,
        first_unit,
        table: Box::leak(Box::new(Table {
            name: lasting(&parameters.table),
            columns: columns.leak(),
            primary_key: &[],
            indexes: &[],
        })),
    })
}

/// One unit's rows.
#[derive(Default)]
pub struct ScriptUnit {
    batch: Batch,
    slots: Vec<ValueBuffer>,
}

impl Population for ScriptTables {
    type Rows = ScriptUnit;

    fn identity(&self) -> String {
        format!("script, seed {}", self.seed)
    }

    /// What a user's statements do is not known: repeated, they may do it twice.
    fn resumes(&self) -> bool {
        false
    }

    fn tables(&self) -> Vec<&'static Table> {
        self.fills.iter().map(|fill| fill.table).collect()
    }

    fn create(&self, _dialect: Dialect) -> Vec<String> {
        self.create.clone()
    }

    fn finish(&self, _dialect: Dialect) -> Vec<String> {
        self.finish.clone()
    }

    fn units(&self) -> usize {
        self.fills.iter().map(|fill| units(fill.rows)).sum()
    }

    #[allow(clippy::cast_precision_loss)] // rows of a unit
    fn weight(&self, unit: usize) -> f64 {
        let (_, first, end) = self.span(unit);
        (end - first) as f64
    }

    fn tell_every(&self) -> f64 {
        TELL_EVERY
    }

    /// A script's tables need not have a key: only the whole table can be asked for.
    fn selections(&self, unit: usize) -> Vec<(&'static Table, String)> {
        vec![(self.span(unit).0.table, "1 = 1".into())]
    }

    fn fill(&self, unit: usize, rows: &mut ScriptUnit) {
        let (fill, first, end) = self.span(unit);
        let mut random = Random::derive(self.seed, fill.table.name, &[first]);
        rows.batch.clear();
        rows.slots
            .resize_with(fill.sources.len(), ValueBuffer::default);
        for row in first..end {
            let number = i64::try_from(row).unwrap_or(i64::MAX);
            for (source, slot) in fill.sources.iter().zip(&mut rows.slots) {
                source.draw(&mut random, number, slot);
            }
            let values: Vec<Value<'_>> = rows.slots.iter().map(ValueBuffer::value).collect();
            rows.batch.push(&values);
        }
    }

    fn batch<'a>(&self, rows: &'a ScriptUnit, _position: usize) -> &'a Batch {
        &rows.batch
    }
}

#[cfg(test)]
mod tests;
