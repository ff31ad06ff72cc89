//! Many rows at once: `LOAD DATA LOCAL` where the server takes it, else `INSERT` with as many rows as fit a packet.

use crate::driver::Value;
use crate::driver::batch::{self, Batch};
use crate::driver::table::Table;

/// Codes of servers that have `local_infile` off: MariaDB's and MySQL's, old and new.
pub const REFUSED: [&str; 3] = ["1148", "3948", "4166"];

/// Packets stay below the smallest `max_allowed_packet` in use (1 MiB, MariaDB before 10.2).
pub const PACKET_BYTES: usize = 768 * 1024;

/// The statement that asks for rows as a file, and the file; nothing for no rows.
pub fn file(table: &Table, batch: &Batch) -> Option<(String, String)> {
    let mut text = String::new();
    for row in batch.rows(table.columns.len()) {
        write_line(row, &mut text);
    }
    let (name, columns) = (table.name, table.column_names());
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET utf8mb4 ({columns})"
    );
    (!text.is_empty()).then_some((sql, text))
}

/// The statements that insert rows.
pub fn statements(table: &Table, batch: &Batch) -> impl Iterator<Item = String> {
    let head = format!(
        "INSERT INTO {} ({}) VALUES ",
        table.name,
        table.column_names()
    );
    let mut rows = batch.rows(table.columns.len());
    std::iter::from_fn(move || {
        let mut sql = String::new();
        while sql.len() < PACKET_BYTES
            && let Some(row) = rows.next()
        {
            if sql.is_empty() {
                sql.reserve(PACKET_BYTES + head.len());
            }
            sql.push_str(if sql.is_empty() { &head } else { "," });
            write_row(row, &mut sql);
        }
        (!sql.is_empty()).then_some(sql)
    })
}

/// A row as a line of a file with MySQL's default delimiters.
fn write_line<'a>(row: impl Iterator<Item = Value<'a>>, out: &mut String) {
    batch::write_line(
        row,
        |text, out| escape(text, &['\\', '\t', '\n'], '\\', out),
        out,
    );
}

fn write_row<'a>(row: impl Iterator<Item = Value<'a>>, sql: &mut String) {
    let mut separator = '(';
    for value in row {
        sql.push(separator);
        separator = ',';
        match value {
            Value::Null => sql.push_str("NULL"),
            Value::Text(text) => {
                sql.push('\'');
                escape(text, &['\'', '\\'], '\\', sql);
                sql.push('\'');
            }
            number => batch::write_number(number, sql),
        }
    }
    sql.push(')');
}

/// Appends text with an escape before each letter that has a meaning.
fn escape(text: &str, meaningful: &[char], escape: char, out: &mut String) {
    let mut rest = text;
    while let Some(position) = rest.find(meaningful) {
        out.push_str(&rest[..position]);
        out.push(escape);
        let letter = rest[position..].chars().next().unwrap_or(escape);
        out.push(letter);
        rest = &rest[position + letter.len_utf8()..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Decimal;

    fn row() -> [Value<'static>; 4] {
        [
            Value::Text("a'b\\c\td"),
            Value::Null,
            Value::Decimal(Decimal::money(-150)),
            Value::Integer(7),
        ]
    }

    #[test]
    fn rows_are_written_so_that_no_text_can_end_its_quotes() {
        let mut sql = String::new();
        write_row(row().into_iter(), &mut sql);
        assert_eq!(sql, "('a\\'b\\\\c\td',NULL,-1.50,7)");
    }

    #[test]
    fn lines_are_written_so_that_no_text_can_end_its_field() {
        let mut line = String::new();
        write_line(row().into_iter(), &mut line);
        assert_eq!(line, "a'b\\\\c\\\td\t\\N\t-1.50\t7\n");
    }
}
