//! Who waited for whose lock, and since when: a row per waiting pair and sample, `telemetry-lock_waits.arrows`.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use fairtrial_protocol::load::Rows;

use crate::error::SampleError;
use crate::table::{ArrowFile, ReadingTime};

/// Numbers of a pair: connections as the server counts them, and how long the wait has lasted.
const NUMBERS: [&str; 3] = ["waiting_connection", "blocking_connection", "waited_ms"];
/// What is locked (table and index), how, and what both sides are doing, 200 letters of it.
const TEXTS: [&str; 4] = ["locked", "mode", "waiting_statement", "blocking_statement"];

/// The file.
pub struct LockWaits(ArrowFile);

impl LockWaits {
    /// Creates the file and writes its schema.
    pub fn create(path: &Path) -> Result<Self, SampleError> {
        let times = ["time_ns", "end_ns"].map(|name| Field::new(name, DataType::Int64, false));
        let numbers = NUMBERS.map(|name| Field::new(name, DataType::UInt64, true));
        let texts = TEXTS.map(|name| Field::new(name, DataType::Utf8, true));
        let fields = times.into_iter().chain(numbers).chain(texts);
        ArrowFile::create(path, fields.collect()).map(Self)
    }

    /// Adds the pairs of one answer, if there are any.
    pub fn append(&mut self, at: ReadingTime, answer: &Rows) -> Result<(), SampleError> {
        if answer.rows.is_empty() {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for time_ns in [at.began_ns, at.ended_ns] {
            arrays.push(Arc::new(Int64Array::from(vec![time_ns; answer.rows.len()])));
        }
        for name in NUMBERS {
            let parsed = cells(answer, name).map(|cell| cell.and_then(|text| text.parse().ok()));
            arrays.push(Arc::new(parsed.collect::<UInt64Array>()));
        }
        for name in TEXTS {
            arrays.push(Arc::new(cells(answer, name).collect::<StringArray>()));
        }
        self.0.write(arrays)
    }

    /// Writes the end of the stream.
    pub fn finish(&mut self) -> Result<(), SampleError> {
        self.0.finish()
    }
}

/// One column of an answer; nothing where it has no such column.
fn cells<'a>(answer: &'a Rows, name: &str) -> impl Iterator<Item = Option<&'a str>> {
    let position = answer.columns.iter().position(|column| column == name);
    answer
        .rows
        .iter()
        .map(move |row| row.get(position?).and_then(Option::as_deref))
}
