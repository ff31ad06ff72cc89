//! What every source of series can do, and what it gives.

use std::time::Duration;

/// One series in one reading.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesValue {
    /// The metric's name with its labels.
    pub series: String,
    /// Whether it only grows.
    pub counter: bool,
    /// Its value.
    pub value: f64,
}

/// A source of series. What goes wrong is a sentence without the source's name.
pub trait SeriesReader: Send + 'static {
    /// What an answer is before it is understood.
    type Answer;

    /// What messages call it.
    fn what(&self) -> &str;

    /// Called once by the thread that reads.
    fn begin(&self) {}

    /// Asks once, within a limit. This is the time that a reading takes.
    fn ask(&mut self, limit: Duration) -> Result<Self::Answer, String>;

    /// What an answer says.
    fn values(&self, answer: Self::Answer) -> Result<Vec<SeriesValue>, String>;
}
