//! Many rows at once: `COPY … FROM STDIN` in its text format.

use super::connection::PostgresConnection;
use crate::driver::batch::Batch;
use crate::driver::table::Table;
use crate::driver::{DriverError, Value};

/// Sent at once: large enough that sends cost nothing, small enough for a processor's cache.
const PIECE_BYTES: usize = 64 * 1024;

/// Sends rows as a file.
pub async fn insert(
    connection: &mut PostgresConnection,
    table: &Table,
    batch: &Batch,
) -> Result<(), DriverError> {
    let mut text = String::new();
    let mut rows = 0_u64;
    for row in batch.rows(table.columns.len()) {
        write_line(row, &mut text);
        rows += 1;
    }
    if rows == 0 {
        return Ok(());
    }
    let (name, columns) = (table.name, table.column_names());
    let sql = format!("COPY {name} ({columns}) FROM STDIN");
    let tag = connection
        .run_with_file(&sql, text.as_bytes(), PIECE_BYTES)
        .await?;
    if super::answer::affected(&tag) == rows {
        return Ok(());
    }
    Err(DriverError::unexpected(format!(
        "{rows} rows of {name} were sent, and the server says {tag}"
    )))
}

/// A row as a line with the default delimiters.
fn write_line<'a>(row: impl Iterator<Item = Value<'a>>, out: &mut String) {
    use std::fmt::Write as _;
    let mut separator = "";
    for value in row {
        out.push_str(separator);
        separator = "\t";
        match value {
            Value::Null => out.push_str("\\N"),
            Value::Text(text) => escape(text, out),
            Value::Integer(integer) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{integer}");
            }
            Value::Decimal(decimal) => decimal.write(out),
        }
    }
    out.push('\n');
}

/// Appends text with a backslash before each letter that would end its field, or begin an escape.
fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(position) = rest.find(['\\', '\t', '\n', '\r']) {
        let (before, found) = rest.split_at(position);
        out.push_str(before);
        out.push_str(match found.as_bytes()[0] {
            b'\t' => "\\t",
            b'\n' => "\\n",
            b'\r' => "\\r",
            _ => "\\\\",
        });
        rest = &found[1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Decimal;

    #[test]
    fn lines_are_written_so_that_no_text_can_end_its_field() {
        let row = [
            Value::Text("a'b\\c\td\r\ne\\N"),
            Value::Null,
            Value::Decimal(Decimal::money(-150)),
            Value::Integer(7),
            Value::Text(""),
        ];
        let mut line = String::new();
        write_line(row.into_iter(), &mut line);
        assert_eq!(line, "a'b\\\\c\\td\\r\\ne\\\\N\t\\N\t-1.50\t7\t\n");
    }
}
