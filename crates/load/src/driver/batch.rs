//! Rows on their way into a table, packed so that a million of them cost no million allocations.

use super::Value;

/// Rows of one table, cell after cell.
#[derive(Debug, Default)]
pub struct Batch {
    cells: Vec<PackedValue>,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum PackedValue {
    Null,
    Integer(i64),
    Decimal(super::Decimal),
    Text { start: usize, end: usize },
}

impl Batch {
    /// Appends a row.
    pub fn push(&mut self, row: &[Value<'_>]) {
        for value in row {
            let packed = match *value {
                Value::Null => PackedValue::Null,
                Value::Integer(integer) => PackedValue::Integer(integer),
                Value::Decimal(decimal) => PackedValue::Decimal(decimal),
                Value::Text(text) => {
                    let start = self.text.len();
                    self.text.push_str(text);
                    PackedValue::Text {
                        start,
                        end: self.text.len(),
                    }
                }
            };
            self.cells.push(packed);
        }
    }

    /// Its rows, given the table's number of columns.
    pub fn rows(&self, columns: usize) -> impl Iterator<Item = impl Iterator<Item = Value<'_>>> {
        self.cells
            .chunks_exact(columns)
            .map(|row| row.iter().map(|cell| self.unpack(*cell)))
    }

    /// Forgets its rows and keeps its memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.text.clear();
    }

    fn unpack(&self, cell: PackedValue) -> Value<'_> {
        match cell {
            PackedValue::Null => Value::Null,
            PackedValue::Integer(integer) => Value::Integer(integer),
            PackedValue::Decimal(decimal) => Value::Decimal(decimal),
            PackedValue::Text { start, end } => Value::Text(&self.text[start..end]),
        }
    }
}

/// A row as a line of a file that both servers read: tabs between, `\N` for NULL, text by `escape`.
pub fn write_line<'a>(
    row: impl Iterator<Item = Value<'a>>,
    escape: impl Fn(&str, &mut String),
    out: &mut String,
) {
    let mut separator = "";
    for value in row {
        out.push_str(separator);
        separator = "\t";
        match value {
            Value::Null => out.push_str("\\N"),
            Value::Text(text) => escape(text, out),
            number => write_number(number, out),
        }
    }
    out.push('\n');
}

/// A number in decimal digits; nothing of any other value.
pub fn write_number(value: Value<'_>, out: &mut String) {
    use std::fmt::Write as _;
    match value {
        Value::Integer(integer) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{integer}");
        }
        Value::Decimal(decimal) => decimal.write(out),
        Value::Null | Value::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Decimal;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let mut batch = Batch::default();
        let rows = [
            [Value::Integer(1), Value::Text("first"), Value::Null],
            [
                Value::Decimal(Decimal::money(250)),
                Value::Text(""),
                Value::Text("last"),
            ],
        ];
        for row in &rows {
            batch.push(row);
        }
        let back: Vec<Vec<Value<'_>>> = batch.rows(3).map(Iterator::collect).collect();
        assert_eq!(back, rows);
        batch.clear();
        assert_eq!(batch.rows(3).count(), 0);
    }
}
