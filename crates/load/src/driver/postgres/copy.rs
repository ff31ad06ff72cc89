//! Many rows at once: `COPY … FROM STDIN` in its text format.

use crate::driver::batch::{Batch, write_line};
use crate::driver::table::Table;

/// Sent at once: large enough that sends cost nothing, small enough for a processor's cache.
pub const PIECE_BYTES: usize = 64 * 1024;

/// The statement that asks for rows as a file, the file, and how many rows it holds.
pub fn file(table: &Table, batch: &Batch) -> (String, String, u64) {
    let (mut text, mut rows) = (String::new(), 0);
    for row in batch.rows(table.columns.len()) {
        write_line(row, escape, &mut text);
        rows += 1;
    }
    let (name, columns) = (table.name, table.column_names());
    (format!("COPY {name} ({columns}) FROM STDIN"), text, rows)
}

/// Appends text with a backslash before each letter that would end its field, or begin an escape.
fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(position) = rest.find(['\\', '\t', '\n', '\r']) {
        let (before, special) = rest.split_at(position);
        out.push_str(before);
        out.push_str(match special.as_bytes()[0] {
            b'\t' => "\\t",
            b'\n' => "\\n",
            b'\r' => "\\r",
            _ => "\\\\",
        });
        rest = &special[1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::dialect::Type;
    use crate::driver::table::Column;
    use crate::driver::{Decimal, Value};

    const TABLE: Table = Table {
        name: "t",
        columns: &[Column {
            name: "a",
            kind: Type::Integer,
            nullable: false,
        }],
        primary_key: &[],
        indexes: &[],
    };

    #[test]
    fn a_file_comes_with_its_number_of_rows() {
        let mut batch = Batch::default();
        batch.push(&[Value::Integer(7), Value::Integer(8)]);
        let (sql, text, rows) = file(&TABLE, &batch);
        assert_eq!(sql, "COPY t (a) FROM STDIN");
        assert_eq!((text.as_str(), rows), ("7\n8\n", 2));
    }

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
        write_line(row.into_iter(), escape, &mut line);
        assert_eq!(line, "a'b\\\\c\\td\\r\\ne\\\\N\t\\N\t-1.50\t7\t\n");
    }
}
