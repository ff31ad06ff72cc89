//! One Arrow stream of readings: a row for each series, so that series may come and go.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::reader::SeriesValue;
use crate::error::SampleError;
use crate::table::{ReadingTime, create_stream};

/// The file.
pub struct SeriesTable {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: StreamWriter<BufWriter<File>>,
}

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
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let writer = create_stream(path, &schema).map_err(|cause| SampleError::Write {
            path: path.to_owned(),
            cause,
        })?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer,
        })
    }

    /// Adds one reading: a batch.
    pub fn append(&mut self, at: ReadingTime, values: &[SeriesValue]) -> Result<(), SampleError> {
        self.write(at, values).map_err(|cause| self.failed(cause))
    }

    /// Writes the end of the stream.
    pub fn finish(&mut self) -> Result<(), SampleError> {
        self.writer.finish().map_err(|cause| self.failed(cause))
    }

    fn write(&mut self, at: ReadingTime, values: &[SeriesValue]) -> Result<(), ArrowError> {
        let kind = |each: &SeriesValue| if each.counter { "counter" } else { "gauge" };
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![at.began_ns; values.len()])),
            Arc::new(Int64Array::from(vec![at.ended_ns; values.len()])),
            Arc::new(StringArray::from_iter_values(
                values.iter().map(|each| &each.series),
            )),
            Arc::new(StringArray::from_iter_values(values.iter().map(kind))),
            Arc::new(Float64Array::from_iter_values(
                values.iter().map(|each| each.value),
            )),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.writer.write(&batch)?;
        Ok(self.writer.get_mut().flush()?)
    }

    fn failed(&self, cause: ArrowError) -> SampleError {
        SampleError::Write {
            path: self.path.clone(),
            cause,
        }
    }
}
