//! Statements as text.

use std::fmt::Write as _;

use crate::driver::Value;
use crate::oltp::schema;

/// Statements of a bulk insert stay below this, as sysbench's do (its buffer holds a closing zero too).
const BULK_BYTES: usize = 512 * 1024 - 1;

/// A statement with values in the place of its question marks. Text holds digits and dashes and needs no escapes.
pub fn write_values<'a>(template: &str, mut values: impl Iterator<Item = Value<'a>>) -> String {
    let mut sql = String::with_capacity(template.len() + 64);
    for (position, piece) in template.split('?').enumerate() {
        if position > 0 {
            // Writing to a String cannot fail.
            let _ = match values.next() {
                Some(Value::Integer(number)) => write!(sql, "{number}"),
                Some(Value::Text(text)) => write!(sql, "'{text}'"),
                _ => write!(sql, "NULL"),
            };
        }
        sql.push_str(piece);
    }
    sql
}

/// Writes an insertion of as many rows as fit, with keys after `last`; returns the last key.
pub fn bulk(table: u32, mut last: i64, sql: &mut String) -> i64 {
    sql.clear();
    let _ = write!(sql, "INSERT INTO {} VALUES", schema::name(table));
    let mut row = String::new();
    let mut comma = "";
    loop {
        row.clear();
        let _ = write!(row, "{comma}({0},{0})", last + 1);
        if sql.len() + row.len() > BULK_BYTES {
            return last;
        }
        sql.push_str(&row);
        comma = ",";
        last += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_place_of_question_marks_in_their_order() {
        let values = [Value::Text("12-34"), Value::Integer(-7)];
        assert_eq!(
            write_values("UPDATE t SET c = ? WHERE id = ?", values.into_iter()),
            "UPDATE t SET c = '12-34' WHERE id = -7"
        );
    }

    #[test]
    fn a_bulk_insert_is_as_long_as_fits_and_the_next_goes_on_after_it() {
        let mut sql = String::new();
        let first = bulk(3, 0, &mut sql);
        assert!(sql.starts_with("INSERT INTO sbtest3 VALUES(1,1),(2,2),"));
        assert!(sql.ends_with(&format!(",({first},{first})")));
        let next = format!(",({0},{0})", first + 1);
        assert!(sql.len() <= BULK_BYTES && sql.len() + next.len() > BULK_BYTES);
        bulk(3, first, &mut sql);
        assert!(sql.starts_with(&format!("INSERT INTO sbtest3 VALUES({0},{0}),", first + 1)));
    }
}
