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

    /// Reads its text; `None` if that is not a decimal, or one of more than 64 bits.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let (mut units, mut scale, mut count) = (0_i64, None, 0);
        for byte in digits {
            if *byte == b'.' && scale.is_none() {
                scale = Some(0_u8);
                continue;
            }
            let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
            units = units.checked_mul(10)?.checked_add(digit)?;
            scale = match scale {
                Some(scale) => Some(scale.checked_add(1)?),
                None => None,
            };
            count += 1;
        }
        (count > 0).then_some(Self {
            units: if negative { -units } else { units },
            scale: scale.unwrap_or_default(),
        })
    }

    /// Appends its text: `-0.05`.
    pub fn write(self, out: &mut String) {
        use std::fmt::Write as _;
        let magnitude = self.units.unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let (whole, fraction) = match 10_u64.checked_pow(u32::from(self.scale)) {
            Some(divisor) => (magnitude / divisor, magnitude % divisor),
            None => (0, magnitude), // more digits behind the point than 64 bits have
        };
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

/// One cell of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer; also a decimal's units, where the system has no decimals.
    Integer(i64),
    /// An exact decimal.
    Decimal(Decimal),
    /// Text.
    Text(String),
    /// Bytes that are no text.
    Binary,
}

impl Cell {
    /// An exact decimal, of which the server always sends the column's full number of digits; one that 64 bits do not
    /// hold, and what is no number, as its text.
    pub fn decimal(text: &[u8]) -> Self {
        Decimal::read(text).map_or_else(
            || Self::Text(String::from_utf8_lossy(text).into_owned()),
            Self::Decimal,
        )
    }

    /// The cell as a value to bind; bytes that are no text are none, which whoever binds must refuse before.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null | Self::Binary => Value::Null,
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Decimal(decimal) => Value::Decimal(*decimal),
            Self::Text(text) => Value::Text(text),
        }
    }
}

/// One row of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Cell>);

impl Row {
    /// The integer or the decimal's units in a column; NULL is an error.
    pub fn integer(&self, column: usize) -> Result<i64, DriverError> {
        match self.0.get(column) {
            Some(Cell::Integer(value)) => Ok(*value),
            Some(Cell::Decimal(decimal)) => Ok(decimal.units),
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

fn unexpected(expected: &str, column: usize, cell: Option<&Cell>) -> DriverError {
    DriverError::unexpected(format!(
        "column {column} should hold {expected}, but holds {cell:?}"
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
    fn a_decimal_s_digits_are_read_with_the_place_of_its_point() {
        let read = |text: &str| {
            Decimal::read(text.as_bytes()).map(|decimal| (decimal.units, decimal.scale))
        };
        assert_eq!(read("12.50"), Some((1250, 2)));
        assert_eq!(read("-0.05"), Some((-5, 2)));
        assert_eq!(read("0.1230"), Some((1230, 4)));
        assert_eq!(read("-300000"), Some((-300_000, 0)));
        for wrong in ["NaN", "1e3", "1.2.3", "", "-", "99999999999999999999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let zero = |digits| format!("0.{}", "0".repeat(digits));
        assert_eq!(read(&zero(255)), Some((0, 255)));
        assert_eq!(read(&zero(256)), None, "one digit more than a scale holds");
    }

    #[test]
    fn decimals_are_written_with_all_their_digits_and_their_sign() {
        assert_eq!(written(1234, 2), "12.34");
        assert_eq!(written(-5, 2), "-0.05");
        assert_eq!(written(17, 4), "0.0017");
        assert_eq!(written(-3, 0), "-3");
        assert_eq!(written(i64::MIN, 2), "-92233720368547758.08");
        assert_eq!(written(-7, 20), "-0.00000000000000000007");
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
