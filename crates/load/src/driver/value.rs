//! Values that travel to a system and cells that come back.

use super::DriverError;

/// An exact decimal: `units` divided by ten to the `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The number without its point: 12.34 has 1234.
    pub units: i64,
    /// Digits behind the point.
    pub scale: u8,
}

impl Decimal {
    /// An amount of money, in cents.
    pub const fn money(cents: i64) -> Self {
        Self {
            units: cents,
            scale: 2,
        }
    }

    /// Appends its text: `-0.05`.
    pub fn write(self, out: &mut String) {
        use std::fmt::Write as _;
        let divisor = 10_u64.pow(u32::from(self.scale));
        let magnitude = self.units.unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let (whole, fraction) = (magnitude / divisor, magnitude % divisor);
        // Writing to a String cannot fail.
        let _ = if self.scale == 0 {
            write!(out, "{sign}{whole}")
        } else {
            write!(
                out,
                "{sign}{whole}.{fraction:0width$}",
                width = usize::from(self.scale)
            )
        };
    }
}

/// A value bound to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// An exact decimal. SQLite, which has no decimals, stores its units.
    Decimal(Decimal),
    /// Text; dates are text of the form `2026-01-31 23:59:59`.
    Text(&'a str),
}

/// One cell of an answer. Exact decimals arrive as their units, whatever the system stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer, or a decimal's units.
    Integer(i64),
    /// Text.
    Text(String),
}

/// One row of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Cell>);

impl Row {
    /// The integer or the decimal's units in a column; NULL is an error.
    pub fn integer(&self, column: usize) -> Result<i64, DriverError> {
        match self.0.get(column) {
            Some(Cell::Integer(value)) => Ok(*value),
            other => Err(unexpected("an integer", column, other)),
        }
    }

    /// The text in a column; NULL is an error.
    pub fn text(&self, column: usize) -> Result<&str, DriverError> {
        match self.0.get(column) {
            Some(Cell::Text(value)) => Ok(value),
            other => Err(unexpected("text", column, other)),
        }
    }
}

fn unexpected(expected: &str, column: usize, found: Option<&Cell>) -> DriverError {
    DriverError::unexpected(format!(
        "column {column} should hold {expected}, but holds {found:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(units: i64, scale: u8) -> String {
        let mut out = String::new();
        Decimal { units, scale }.write(&mut out);
        out
    }

    #[test]
    fn decimals_are_written_with_all_their_digits_and_their_sign() {
        assert_eq!(written(1234, 2), "12.34");
        assert_eq!(written(-5, 2), "-0.05");
        assert_eq!(written(17, 4), "0.0017");
        assert_eq!(written(-3, 0), "-3");
        assert_eq!(written(i64::MIN, 2), "-92233720368547758.08");
    }

    #[test]
    fn a_cell_of_another_type_is_an_error_that_names_it() {
        let row = Row(vec![Cell::Text("x".into()), Cell::Null]);
        assert!(
            row.integer(0)
                .is_err_and(|error| error.message.contains("column 0"))
        );
        assert!(row.text(1).is_err());
        assert!(row.integer(2).is_err(), "a missing column is no NULL");
    }
}
