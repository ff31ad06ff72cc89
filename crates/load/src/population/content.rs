//! One hash for the logical content of all tables, whatever system holds them.
//!
//! A digest covers one table's rows of one unit, in the order of its primary key (history: of all its columns); the
//! content hash covers all digests in the order of tables and units. So it can be computed by many threads while
//! loading, and read back from any system.

use fairtrial_protocol::load::Endpoint;
use sha2::{Digest as _, Sha256};

use super::Population;
use crate::driver::batch::Batch;
use crate::driver::endpoint::{self, Job};
use crate::driver::table::Table;
use crate::driver::{Cell, Connection, Driver, DriverError, Row, StatementId, Value};
use crate::error::LoadError;

const CELL_END: u8 = 0x1f;
const ROW_END: u8 = 0x1e;
const NULL: u8 = 0x00;

/// A table's rows of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The table.
    pub table: &'static str,
    /// Rows hashed.
    pub rows: u64,
    /// SHA-256 over their canonical text.
    pub sha256: [u8; 32],
}

/// Hashes generated rows.
pub fn of_batch(table: &'static Table, batch: &Batch) -> Digest {
    let mut hash = Hash::default();
    for row in batch.rows(table.columns.len()) {
        for value in row {
            match value {
                Value::Null => hash.null(),
                Value::Integer(integer) => hash.integer(integer),
                Value::Decimal(decimal) => hash.integer(decimal.units),
                Value::Text(text) => hash.text(text),
            }
        }
        hash.end_row();
    }
    hash.finish(table.name)
}

/// The content hash of all digests, given per unit in the units' order.
pub fn combine(tables: &[&'static Table], units: &[Vec<Digest>]) -> String {
    let mut hash = Sha256::new();
    for table in tables {
        hash.update(table.name.as_bytes());
        for digest in units
            .iter()
            .flatten()
            .filter(|digest| digest.table == table.name)
        {
            hash.update(digest.rows.to_le_bytes());
            hash.update(digest.sha256);
        }
    }
    hexadecimal(&hash.finalize())
}

/// Reads the content hash of a population's tables back from a database.
pub fn of_endpoint<P: Population>(
    endpoint: &Endpoint,
    population: &P,
) -> Result<String, LoadError> {
    endpoint::with(endpoint, ContentJob { population })
}

struct ContentJob<'a, P> {
    population: &'a P,
}

impl<P: Population> Job for ContentJob<'_, P> {
    type Output = Result<String, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let read = driver.block_on(read_back(&driver, self.population));
        let digests = read
            .map_err(LoadError::start("a reactor"))?
            .map_err(|source| LoadError::Statement {
                doing: "reading the content back".into(),
                source,
            })?;
        Ok(combine(&self.population.tables(), &digests))
    }
}

async fn read_back<D: Driver, P: Population>(
    driver: &D,
    population: &P,
) -> Result<Vec<Vec<Digest>>, DriverError> {
    let selections: Vec<Vec<_>> = (0..population.units())
        .map(|unit| population.selections(unit))
        .collect();
    let statements: Vec<String> = selections
        .iter()
        .flatten()
        .map(|(table, condition)| select(table, condition))
        .collect();
    let mut connection = driver.connect(&statements).await?;
    let mut digests = Vec::with_capacity(selections.len());
    let mut numbers = 0..;
    for unit in &selections {
        let mut tables = Vec::with_capacity(unit.len());
        for ((table, _), number) in unit.iter().zip(numbers.by_ref()) {
            tables.push(of_rows(
                table,
                &connection.query(StatementId(number), &[]).await?,
            ));
        }
        digests.push(tables);
    }
    Ok(digests)
}

fn select(table: &Table, condition: &str) -> String {
    let order = if table.primary_key.is_empty() {
        table.column_names()
    } else {
        table.primary_key.join(", ")
    };
    format!(
        "SELECT {} FROM {} WHERE {condition} ORDER BY {order}",
        table.column_names(),
        table.name
    )
}

fn of_rows(table: &'static Table, rows: &[Row]) -> Digest {
    let mut hash = Hash::default();
    for Row(cells) in rows {
        for cell in cells {
            match cell {
                Cell::Null => hash.null(),
                Cell::Integer(integer) => hash.integer(*integer),
                Cell::Decimal(decimal) => hash.integer(decimal.units),
                Cell::Text(text) => hash.text(text),
                Cell::Binary => hash.text("\u{fffd}"), // no table of ours holds any
            }
        }
        hash.end_row();
    }
    hash.finish(table.name)
}

/// Feeds canonical text to SHA-256 in large pieces.
#[derive(Default)]
struct Hash {
    sha256: Sha256,
    pending: Vec<u8>,
    rows: u64,
}

impl Hash {
    const PENDING_BYTES: usize = 64 * 1024;

    fn null(&mut self) {
        self.pending.extend([NULL, CELL_END]);
    }

    fn integer(&mut self, integer: i64) {
        use std::io::Write as _;
        // Writing to a vector cannot fail.
        let _ = write!(self.pending, "{integer}");
        self.pending.push(CELL_END);
    }

    fn text(&mut self, text: &str) {
        self.pending.extend_from_slice(text.as_bytes());
        self.pending.push(CELL_END);
    }

    fn end_row(&mut self) {
        self.rows += 1;
        self.pending.push(ROW_END);
        if self.pending.len() >= Self::PENDING_BYTES {
            self.sha256.update(&self.pending);
            self.pending.clear();
        }
    }

    fn finish(mut self, table: &'static str) -> Digest {
        self.sha256.update(&self.pending);
        Digest {
            table,
            rows: self.rows,
            sha256: self.sha256.finalize().into(),
        }
    }
}

/// Two digits a byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Decimal;
    use crate::tpcc::schema;

    #[test]
    fn generated_rows_and_rows_read_back_have_one_hash() {
        let mut batch = Batch::default();
        batch.push(&[
            Value::Integer(1),
            Value::Integer(-2),
            Value::Text("x"),
            Value::Decimal(Decimal::money(5)),
            Value::Null,
        ]);
        let row = Row(vec![
            Cell::Integer(1),
            Cell::Integer(-2),
            Cell::Text("x".into()),
            Cell::Integer(5),
            Cell::Null,
        ]);
        assert_eq!(
            of_batch(&schema::ITEM, &batch),
            of_rows(&schema::ITEM, &[row])
        );
    }

    #[test]
    fn moving_a_letter_between_cells_changes_the_hash() {
        let digest = |left: &'static str, right: &'static str| {
            let mut batch = Batch::default();
            batch.push(&[
                Value::Text(left),
                Value::Text(right),
                Value::Null,
                Value::Null,
                Value::Null,
            ]);
            of_batch(&schema::ITEM, &batch)
        };
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
        assert_ne!(digest("", "c"), digest("c", ""));
    }
}
