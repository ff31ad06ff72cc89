//! Table layouts, said once and written for each dialect.

use super::dialect::{Dialect, Type};

/// A column. All columns but those that TPC-C leaves empty at times are NOT NULL.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A secondary index, created after the data are in.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [&'static str],
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
    /// Primary key; empty for none.
    pub primary_key: &'static [&'static str],
    /// Secondary indexes.
    pub indexes: &'static [Index],
}

impl Table {
    /// The statement that creates the table.
    pub fn create(&self, dialect: Dialect) -> String {
        let mut lines: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let null = if column.nullable { "" } else { " NOT NULL" };
                format!("{} {}{null}", column.name, dialect.column_type(column.kind))
            })
            .collect();
        if !self.primary_key.is_empty() {
            lines.push(format!("PRIMARY KEY ({})", self.primary_key.join(", ")));
        }
        let options = dialect.table_options(!self.primary_key.is_empty());
        format!("CREATE TABLE {} ({}){options}", self.name, lines.join(", "))
    }

    /// The statements that create its secondary indexes.
    pub fn create_indexes(&self) -> impl Iterator<Item = String> + '_ {
        self.indexes.iter().map(|index| {
            format!(
                "CREATE INDEX {} ON {} ({})",
                index.name,
                self.name,
                index.columns.join(", ")
            )
        })
    }

    /// Its column names, comma-separated.
    pub fn column_names(&self) -> String {
        self.columns
            .iter()
            .map(|column| column.name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}
