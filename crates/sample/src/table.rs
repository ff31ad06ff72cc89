//! One Arrow IPC stream: rows gathered in columns, written in batches.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use serde_json::{Map, Value, json};

use crate::error::SampleError;

/// Most rows of a batch.
const MOST_ROWS: u32 = 128;
/// Fewest rows of a batch: a column costs some 60 bytes in each batch besides its values.
const FEWEST_ROWS: u32 = 10;
const MILLISECONDS_PER_SECOND: u32 = 1000;
const SECOND_NS: i64 = 1_000_000_000;
/// Ticks are early or late by less than this: a line shall not wait for the tick after the one that is due.
const SLACK_NS: i64 = 5_000_000;

/// Arrow's smallest alignment: with its default of 64 bytes, padding would be most of a batch this small.
const ALIGNMENT_BYTES: usize = 8;

/// One batch should reach the kernel in one write.
const BUFFER_BYTES: usize = 256 * 1024;

/// How many rows make a batch: those of about a second.
#[must_use]
pub fn batch_rows(interval_ms: u32) -> usize {
    (MILLISECONDS_PER_SECOND / interval_ms.max(1)).clamp(FEWEST_ROWS, MOST_ROWS) as usize
}

/// When a reading began and ended.
#[derive(Clone, Copy, Debug)]
pub struct ReadingTime {
    /// Before anything was asked.
    pub began_ns: i64,
    /// When all of the answer was there.
    pub ended_ns: i64,
}

/// One stream. What was not yet written when the process is killed is lost, at most a batch.
pub struct TelemetryTable {
    file: ArrowFile,
    times_ns: Vec<i64>,
    ends_ns: Vec<i64>,
    columns: Vec<ColumnBuffer>,
    batch_rows: usize,
    shown: Option<ShownColumns>,
}

/// Columns whose values are said once a second, for people who look on.
struct ShownColumns {
    source: String,
    /// Position and name of each.
    columns: Vec<(usize, String)>,
    said_ns: i64,
}

struct ColumnBuffer {
    values: Vec<u64>,
    /// Whether each value was said; looked at only if one was not.
    said: Vec<bool>,
    all_said: bool,
}

impl TelemetryTable {
    /// Creates the file and writes its schema: `time_ns` and `end_ns`, then the columns named.
    pub fn create(path: &Path, columns: &[String], batch_rows: usize) -> Result<Self, SampleError> {
        let times = ["time_ns", "end_ns"].map(|name| Field::new(name, DataType::Int64, false));
        let counters = columns
            .iter()
            .map(|name| Field::new(name, DataType::UInt64, true));
        Ok(Self {
            file: ArrowFile::create(path, times.into_iter().chain(counters).collect())?,
            times_ns: Vec::with_capacity(batch_rows),
            ends_ns: Vec::with_capacity(batch_rows),
            columns: columns
                .iter()
                .map(|_| ColumnBuffer::new(batch_rows))
                .collect(),
            batch_rows,
            shown: None,
        })
    }

    /// Says the values of those columns that are `wanted`, by their name or what stands behind its last dot.
    #[must_use]
    pub fn showing(mut self, source: &str, columns: &[String], wanted: &[String]) -> Self {
        let is_wanted = |column: &String| {
            let last = column.rsplit('.').next().unwrap_or(column);
            wanted.iter().any(|each| each == column || each == last)
        };
        let columns: Vec<_> = columns
            .iter()
            .cloned()
            .enumerate()
            .filter(|(_, column)| is_wanted(column))
            .collect();
        if !columns.is_empty() {
            self.shown = Some(ShownColumns {
                source: source.to_owned(),
                columns,
                said_ns: i64::MIN,
            });
        }
        self
    }

    /// Adds a row, with when reading it began and ended; writes the batch if it is full.
    pub fn append(&mut self, at: ReadingTime, row: &[Option<u64>]) -> Result<(), SampleError> {
        if let Some(shown) = &mut self.shown {
            shown.say(at.began_ns, row)?;
        }
        self.times_ns.push(at.began_ns);
        self.ends_ns.push(at.ended_ns);
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
        if self.times_ns.len() < self.batch_rows {
            Ok(())
        } else {
            self.flush()
        }
    }

    /// Writes the rows gathered. Nothing is synced: a sampler must not wait for the disk it watches.
    pub fn flush(&mut self) -> Result<(), SampleError> {
        if self.times_ns.is_empty() {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(2 + self.columns.len());
        for times_ns in [&mut self.times_ns, &mut self.ends_ns] {
            let times_ns = mem::replace(times_ns, Vec::with_capacity(self.batch_rows));
            arrays.push(Arc::new(Int64Array::from(times_ns)));
        }
        arrays.extend(
            self.columns
                .iter_mut()
                .map(|column| Arc::new(column.take(self.batch_rows)) as ArrayRef),
        );
        self.file.write(arrays)
    }

    /// Writes the rows gathered and the end of the stream.
    pub fn finish(&mut self) -> Result<(), SampleError> {
        self.flush()?;
        self.file.finish()
    }
}

impl ShownColumns {
    /// One line, unless the last one is less than a second old.
    fn say(&mut self, time_ns: i64, row: &[Option<u64>]) -> Result<(), SampleError> {
        if time_ns.saturating_sub(self.said_ns) < SECOND_NS - SLACK_NS {
            return Ok(());
        }
        self.said_ns = time_ns;
        let values: Map<String, Value> = self
            .columns
            .iter()
            .filter_map(|(index, name)| Some((name.clone(), json!(row.get(*index)?.as_ref()?))))
            .collect();
        let line = json!({"progress": "telemetry", "source": self.source, "time_ns": time_ns, "values": values});
        writeln!(io::stdout(), "{line}").map_err(SampleError::StandardOutput)
    }
}

impl ColumnBuffer {
    fn new(rows: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows),
            said: Vec::with_capacity(rows),
            all_said: true,
        }
    }

    fn push(&mut self, value: Option<u64>) {
        self.values.push(value.unwrap_or_default());
        self.said.push(value.is_some());
        self.all_said &= value.is_some();
    }

    fn take(&mut self, rows: usize) -> UInt64Array {
        let Self {
            values,
            said,
            all_said,
        } = mem::replace(self, Self::new(rows));
        UInt64Array::new(values.into(), (!all_said).then(|| said.into()))
    }
}

/// A stream in a file: every batch has reached the kernel once it is written.
pub struct ArrowFile {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: StreamWriter<BufWriter<File>>,
}

impl ArrowFile {
    /// Creates the file and writes its schema.
    pub fn create(path: &Path, fields: Vec<Field>) -> Result<Self, SampleError> {
        let schema = Arc::new(Schema::new(fields));
        let writer = stream(path, &schema).map_err(|cause| failed(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer,
        })
    }

    /// Adds one batch, a column for each field.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), SampleError> {
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .and_then(|batch| self.writer.write(&batch))
            .and_then(|()| Ok(self.writer.get_mut().flush()?))
            .map_err(|cause| failed(&self.path, cause))
    }

    /// Writes the end of the stream.
    pub fn finish(&mut self) -> Result<(), SampleError> {
        let finished = self.writer.finish();
        finished.map_err(|cause| failed(&self.path, cause))
    }
}

fn failed(path: &Path, cause: ArrowError) -> SampleError {
    SampleError::Write {
        path: path.to_owned(),
        cause,
    }
}

fn stream(path: &Path, schema: &Schema) -> Result<StreamWriter<BufWriter<File>>, ArrowError> {
    let options = IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, MetadataVersion::V5)?;
    let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
    let mut writer = StreamWriter::try_new_with_options(file, schema, options)?;
    writer.get_mut().flush()?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::batch_rows;

    #[test]
    fn a_batch_is_about_a_second_and_never_tiny() {
        assert_eq!(batch_rows(10), 100);
        assert_eq!(batch_rows(1), 128);
        assert_eq!(batch_rows(50), 20);
        assert_eq!(batch_rows(1000), 10);
        assert_eq!(batch_rows(60_000), 10);
    }
}
