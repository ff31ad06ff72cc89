//! One Arrow stream of readings: a row for each series, so that series may come and go.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Float64Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field};

use super::reader::SeriesValue;
use crate::error::SampleError;
use crate::table::{ArrowFile, ReadingTime};

/// The file.
pub struct SeriesTable(ArrowFile);

impl SeriesTable {
    /// Creates the file and writes its schema.
    pub fn create(path: &Path) -> Result<Self, SampleError> {
        let fields = [
            ("time_ns", DataType::Int64),
            ("end_ns", DataType::Int64),
            ("series", DataType::Utf8),
            ("type", DataType::Utf8),
            ("value", DataType::Float64),
        ];
        let fields = fields.map(|(name, of)| Field::new(name, of, false));
        ArrowFile::create(path, fields.to_vec()).map(Self)
    }

    /// Adds one reading: a batch.
    pub fn append(&mut self, at: ReadingTime, values: &[SeriesValue]) -> Result<(), SampleError> {
        let kind = |each: &SeriesValue| if each.counter { "counter" } else { "gauge" };
        self.0.write(vec![
            Arc::new(Int64Array::from(vec![at.began_ns; values.len()])),
            Arc::new(Int64Array::from(vec![at.ended_ns; values.len()])),
            Arc::new(StringArray::from_iter_values(
                values.iter().map(|each| &each.series),
            )),
            Arc::new(StringArray::from_iter_values(values.iter().map(kind))),
            Arc::new(Float64Array::from_iter_values(
                values.iter().map(|each| each.value),
            )),
        ])
    }

    /// Writes the end of the stream.
    pub fn finish(&mut self) -> Result<(), SampleError> {
        self.0.finish()
    }
}
