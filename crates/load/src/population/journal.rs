//! Which units of a load are in, kept in the database itself, so that a load that was killed can go on.
//!
//! A unit's entry is written by the transaction that writes its rows: the system makes both durable or neither, which
//! no file beside a database could promise. The table is there only while a load is under way or was interrupted.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::Population;
use super::content::{Digest, hexadecimal};
use crate::driver::dialect::Dialect;
use crate::driver::{Connection, Driver, DriverError};

const TABLE: &str = "fairtrial_load";

/// The entry that names what is being loaded; units count from 0.
const IDENTITY: i64 = -1;

/// What a system says of a key, or a table or index, that is there already: `ER_DUP_ENTRY`, `ER_DUP_KEYNAME`;
/// PostgreSQL's `unique_violation`, `duplicate_table`.
const ALREADY_THERE: [&str; 5] = ["1062", "1061", "23505", "42P07", "SQLITE_CONSTRAINT"];

/// How many tables have a storage engine without transactions: an entry there says nothing of its unit's rows.
const UNTRANSACTIONAL: &str = "SELECT COUNT(*) FROM information_schema.tables AS made \
    JOIN information_schema.engines AS known ON known.engine = made.engine \
    WHERE made.table_schema = DATABASE() AND known.transactions = 'NO'";

/// Units that are in, with their digests.
pub type Done = BTreeMap<usize, Vec<Digest>>;

/// Whether an error says that something is there already: done by the load that was interrupted.
pub fn is_already_there(error: &DriverError) -> bool {
    // SQLite has no code of its own for an index that exists.
    let index_exists = error.code == "SQLITE_ERROR" && error.message.ends_with("already exists");
    index_exists || ALREADY_THERE.contains(&error.code.as_str())
}

/// What an interrupted load of the same population by the same program has left; `None` to begin anew.
///
/// A database that cannot be asked has nothing to go on from: what is wrong with it, beginning anew will say.
pub async fn find<D: Driver, P: Population>(driver: &D, population: &P) -> Option<Done> {
    let mut connection = driver.load_connection().await.ok()?;
    if driver.dialect() == Dialect::Mysql {
        let counted = connection.text(UNTRANSACTIONAL).await.ok()?.rows;
        (counted == [[Some("0".to_owned())]]).then_some(())?;
    }
    let sql = format!("SELECT unit, content FROM {TABLE} ORDER BY unit");
    let rows = connection.text(&sql).await.ok()?.rows;
    let mut entries = rows.into_iter().map(|row| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?.parse::<i64>().ok()?, cells.next()?))
    });
    if entries.next()?? != (IDENTITY, identity(population)) {
        return None;
    }
    entries
        .map(|entry| {
            let (unit, content) = entry?;
            let unit = usize::try_from(unit).ok()?;
            (unit < population.units()).then_some(())?;
            Some((unit, read(population, &content)?))
        })
        .collect()
}

/// The statement that forgets an earlier load.
pub fn forget() -> String {
    format!("DROP TABLE IF EXISTS {TABLE}")
}

/// The statements that begin a journal, once the tables are there.
pub fn begin<P: Population>(population: &P, dialect: Dialect) -> [String; 2] {
    let options = dialect.table_options(true);
    let create = format!(
        "CREATE TABLE {TABLE} (unit INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (unit)){options}"
    );
    [create, entry(IDENTITY, &identity(population))]
}

/// The statement that says that a unit is in: the first of its transaction, so that a session of an interrupted load,
/// should one still be there, is waited for.
pub fn enter(unit: usize, digests: &[Digest]) -> String {
    let parts: Vec<String> = digests
        .iter()
        .map(|digest| {
            format!(
                "{} {} {}",
                digest.table,
                digest.rows,
                hexadecimal(&digest.sha256)
            )
        })
        .collect();
    entry(i64::try_from(unit).unwrap_or(i64::MAX), &parts.join(","))
}

/// Names, numbers and hexadecimal digits need no quoting.
fn entry(unit: i64, content: &str) -> String {
    format!("INSERT INTO {TABLE} (unit, content) VALUES ({unit}, '{content}')")
}

/// The population and the version of the program that makes it, hashed.
fn identity<P: Population>(population: &P) -> String {
    let text = format!("{} {}", env!("CARGO_PKG_VERSION"), population.identity());
    hexadecimal(&Sha256::digest(text))
}

fn read<P: Population>(population: &P, content: &str) -> Option<Vec<Digest>> {
    let tables = population.tables();
    content
        .split(',')
        .map(|part| {
            let mut words = part.split(' ');
            let name = words.next()?;
            let table = tables.iter().find(|table| table.name == name)?.name;
            let rows = words.next()?.parse().ok()?;
            let sha256 = bytes(words.next()?)?;
            Some(Digest {
                table,
                rows,
                sha256,
            })
        })
        .collect()
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    (text.len() == 2 * bytes.len()).then_some(())?;
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::population::Warehouses;

    fn digest(table: &'static str, rows: u64) -> Digest {
        Digest {
            table,
            rows,
            sha256: std::array::from_fn(|index| u8::try_from(index * 7).unwrap_or(0xff)),
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let population = Warehouses::new(1, 7).expect("a scale");
        let digests = vec![digest("orders", 3_000), digest("order_line", 30_017)];
        let statement = enter(12, &digests);
        let content = statement.split('\'').nth(1).expect("quoted content");
        assert_eq!(read(&population, content), Some(digests));
    }

    #[test]
    fn entries_of_other_tables_and_cut_ones_are_no_entries() {
        let population = Warehouses::new(1, 7).expect("a scale");
        for content in ["", "sbtest1 1 00", "orders", "orders x 00", "orders 1 00"] {
            assert_eq!(read(&population, content), None, "{content}");
        }
    }

    #[test]
    fn another_scale_and_another_seed_are_other_populations() {
        let of = |warehouses, seed| identity(&Warehouses::new(warehouses, seed).expect("a scale"));
        assert_eq!(of(2, 7), of(2, 7));
        assert_ne!(of(2, 7), of(3, 7));
        assert_ne!(of(2, 7), of(2, 8));
    }
}
