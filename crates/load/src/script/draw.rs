//! Values as a script asks for them, drawn one after another.

use fairtrial_protocol::script::{Constant, Draw, Letters};

use super::refused;
use crate::driver::{Cell, Decimal, Value};
use crate::error::LoadError;
use crate::oltp::keys::{self, Keys};
use crate::random::Random;

/// Longer text is a file, not a value; a server's packets end at a few MiB.
const TEXT_LIMIT: u32 = 1 << 20;

/// Ranges are drawn through doubles, which hold integers up to here.
const SPAN_LIMIT: u64 = 1 << 53;

/// A source of values.
#[derive(Clone, Debug)]
pub enum ValueSource {
    /// Whole numbers.
    Integers(Keys),
    /// Decimals with this many digits behind the point.
    Decimals(Keys, u8),
    /// The same as text.
    Amounts(Keys, u8),
    /// Text.
    Text {
        lengths: (i64, i64),
        letters: Letters,
    },
    /// Constants, each with the sum of the weights up to its own.
    Choice(Vec<(Cell, f64)>),
    /// Numbers from this on, without repetition.
    Sequence(i64),
}

/// A value of the present transaction or row. It keeps its text's memory from one to the next.
#[derive(Clone, Debug)]
pub struct ValueBuffer {
    cell: Cell,
    spare: String,
}

impl Default for ValueBuffer {
    fn default() -> Self {
        Self {
            cell: Cell::Null,
            spare: String::new(),
        }
    }
}

impl ValueBuffer {
    /// The value, to be bound.
    pub fn value(&self) -> Value<'_> {
        self.cell.value()
    }

    /// Takes another value.
    pub fn set(&mut self, cell: Cell) {
        if let Cell::Text(old) = std::mem::replace(&mut self.cell, cell) {
            self.spare = old;
        }
    }

    fn text(&mut self, write: impl FnOnce(&mut String)) {
        let mut text = match std::mem::replace(&mut self.cell, Cell::Null) {
            Cell::Text(text) => text,
            _ => std::mem::take(&mut self.spare),
        };
        text.clear();
        write(&mut text);
        self.cell = Cell::Text(text);
    }
}

impl ValueSource {
    /// The source that a script asks for.
    pub fn new(draw: &Draw) -> Result<Self, LoadError> {
        Ok(match draw {
            Draw::Integer {
                low,
                high,
                distribution,
            } => {
                check_range(*low, *high)?;
                keys::validate(distribution)?;
                Self::Integers(Keys::new(distribution, *low, *high))
            }
            Draw::Decimal {
                low_units,
                high_units,
                scale,
                distribution,
            } => {
                check_range(*low_units, *high_units)?;
                keys::validate(distribution)?;
                Self::Decimals(Keys::new(distribution, *low_units, *high_units), *scale)
            }
            Draw::Text {
                shortest,
                longest,
                letters,
            } => {
                if shortest > longest || *longest > TEXT_LIMIT {
                    return Err(refused(format!(
                        "text of {shortest} to {longest} letters; the most is {TEXT_LIMIT}"
                    )));
                }
                Self::Text {
                    lengths: ((*shortest).into(), (*longest).into()),
                    letters: *letters,
                }
            }
            Draw::Choice { values, weights } => Self::Choice(choices(values, weights)?),
            Draw::Sequence { first } => Self::Sequence(*first),
        })
    }

    /// The same source, its decimals as text: SQLite has none, and its driver would bind their units.
    pub fn without_decimals(self) -> Self {
        match self {
            Self::Decimals(keys, scale) => Self::Amounts(keys, scale),
            other => other,
        }
    }

    /// Whether it gives whole numbers only, or nothing.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Integers(_) | Self::Sequence(_) => true,
            Self::Decimals(_, scale) => *scale == 0,
            Self::Amounts(..) | Self::Text { .. } => false,
            Self::Choice(values) => values
                .iter()
                .all(|(cell, _)| matches!(cell, Cell::Integer(_) | Cell::Null)),
        }
    }

    /// Draws the next value. `number` is what a sequence adds to its first.
    pub fn draw(&self, random: &mut Random, number: i64, slot: &mut ValueBuffer) {
        match self {
            Self::Integers(keys) => slot.set(Cell::Integer(keys.draw(random))),
            Self::Decimals(keys, scale) => slot.set(Cell::Decimal(Decimal {
                units: keys.draw(random),
                scale: *scale,
            })),
            Self::Amounts(keys, scale) => {
                let (units, scale) = (keys.draw(random), *scale);
                slot.text(|text| Decimal { units, scale }.write(text));
            }
            Self::Text {
                lengths: (shortest, longest),
                letters,
            } => slot.text(|text| match letters {
                Letters::Alphanumeric => random.alphanumeric(*shortest, *longest, text),
                Letters::Digits => random.digits(*shortest, *longest, text),
            }),
            Self::Choice(values) => {
                let position = weighted(random, values.iter().map(|(_, sum)| *sum));
                slot.set(values[position].0.clone());
            }
            Self::Sequence(first) => slot.set(Cell::Integer(first.saturating_add(number))),
        }
    }
}

/// The position of one of some weights, given as their sums up to each; there must be one at least.
pub fn weighted(random: &mut Random, sums: impl DoubleEndedIterator<Item = f64> + Clone) -> usize {
    let total = sums.clone().next_back().unwrap_or_default();
    let drawn = random.fraction() * total;
    let count = sums.clone().count();
    // Rounding may carry the product up to the total itself.
    sums.take_while(|sum| *sum <= drawn).count().min(count - 1)
}

/// The sums of weights up to each, which must be numbers above 0.
pub fn sums(weights: impl Iterator<Item = f64>) -> Result<Vec<f64>, LoadError> {
    let mut sum = 0.0;
    weights
        .map(|weight| {
            sum += weight;
            if weight > 0.0 && f64::is_finite(sum) {
                Ok(sum)
            } else {
                Err(refused(format!("weight {weight} is not above 0")))
            }
        })
        .collect()
}

fn choices(values: &[Constant], weights: &[f64]) -> Result<Vec<(Cell, f64)>, LoadError> {
    if values.is_empty() || values.len() != weights.len() {
        let (values, weights) = (values.len(), weights.len());
        return Err(refused(format!("{values} values with {weights} weights")));
    }
    let cells = values.iter().map(|value| match value {
        Constant::Null {} => Cell::Null,
        Constant::Integer { value } => Cell::Integer(*value),
        Constant::Text { value } => Cell::Text(value.clone()),
    });
    Ok(cells.zip(sums(weights.iter().copied())?).collect())
}

fn check_range(low: i64, high: i64) -> Result<(), LoadError> {
    if low > high || high.abs_diff(low) >= SPAN_LIMIT {
        return Err(refused(format!(
            "a range from {low} to {high}: it must be in order and below 2^53 wide"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
