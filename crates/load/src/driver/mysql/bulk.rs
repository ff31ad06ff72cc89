//! Many rows at once: `LOAD DATA LOCAL` where the server takes it, else `INSERT` with as many rows as fit a packet.

use super::answer::End;
use super::connection::MysqlConnection;
use crate::driver::batch::Batch;
use crate::driver::table::Table;
use crate::driver::{DriverError, Value};

/// Codes of servers that have `local_infile` off: MariaDB's and MySQL's, old and new.
pub const REFUSED: [&str; 3] = ["1148", "3948", "4166"];

/// Packets stay below the smallest `max_allowed_packet` in use (1 MiB, MariaDB before 10.2).
const PACKET_BYTES: usize = 768 * 1024;

/// Connections that find a table empty may wait for each other's lock on all of it (MariaDB from 10.6 on fills empty
/// tables that way); each deadlock lets one of them through, and there are fewer connections than this.
const REPEATS: u32 = 100;

/// Sends rows as a file. `LOCAL` turns errors in data into warnings, so a warning is an error here.
pub async fn load_data(
    connection: &mut MysqlConnection,
    table: &Table,
    batch: &Batch,
) -> Result<(), DriverError> {
    let mut text = String::new();
    for row in batch.rows(table.columns.len()) {
        write_line(row, &mut text);
    }
    if text.is_empty() {
        return Ok(());
    }
    let (name, columns) = (table.name, table.column_names());
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET utf8mb4 ({columns})"
    );
    let end = send(connection, &sql, Some(text.as_bytes())).await?;
    match end.warnings {
        0 => Ok(()),
        warnings => Err(DriverError::unexpected(format!(
            "{warnings} rows of {name} did not arrive as sent"
        ))),
    }
}

/// Sends one statement, a transaction of its own, again where the server gave it up for another's.
async fn send(
    connection: &mut MysqlConnection,
    sql: &str,
    file: Option<&[u8]>,
) -> Result<End, DriverError> {
    let mut repeats = 0;
    loop {
        let end = match file {
            Some(file) => connection.run_with_file(sql, file, PACKET_BYTES).await,
            None => connection.run(sql).await,
        };
        match end {
            Err(error) if error.retryable && repeats < REPEATS => repeats += 1,
            end => return end,
        }
    }
}

/// Sends rows as statements.
pub async fn insert(
    connection: &mut MysqlConnection,
    table: &Table,
    batch: &Batch,
) -> Result<(), DriverError> {
    let head = format!(
        "INSERT INTO {} ({}) VALUES ",
        table.name,
        table.column_names()
    );
    let mut sql = String::with_capacity(PACKET_BYTES + head.len());
    for row in batch.rows(table.columns.len()) {
        sql.push_str(if sql.is_empty() { &head } else { "," });
        write_row(row, &mut sql);
        if sql.len() >= PACKET_BYTES {
            send(connection, &sql, None).await?;
            sql.clear();
        }
    }
    if !sql.is_empty() {
        send(connection, &sql, None).await?;
    }
    Ok(())
}

/// A row as a line of a file with MySQL's default delimiters.
fn write_line<'a>(row: impl Iterator<Item = Value<'a>>, out: &mut String) {
    let mut separator = "";
    for value in row {
        out.push_str(separator);
        separator = "\t";
        match value {
            Value::Null => out.push_str("\\N"),
            Value::Text(text) => escape(text, &['\\', '\t', '\n'], '\\', out),
            number => write_number(number, out),
        }
    }
    out.push('\n');
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
            number => write_number(number, sql),
        }
    }
    sql.push(')');
}

fn write_number(value: Value<'_>, out: &mut String) {
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
