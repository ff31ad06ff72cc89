//! The files of a drive: `latency.hlog`, `lateness.hlog`, `timeline.arrows` and `result.json`.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use fairtrial_protocol::load::{Driven, Outcomes};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::recorder::Slot;
use crate::error::LoadError;

/// Rows of the timeline are written together once they span this long: each batch costs more than its rows.
const FLUSH_EVERY_NS: i64 = 1_000_000_000;

type Count = fn(&Outcomes) -> u64;

/// The counts that are columns of the timeline.
const OUTCOMES: [(&str, Count); 4] = [
    ("committed", |outcomes| outcomes.committed),
    ("rolled_back", |outcomes| outcomes.rolled_back),
    ("failed", |outcomes| outcomes.failed),
    ("retried", |outcomes| outcomes.retried),
];

/// `latency.hlog`, or its like.
pub struct LatencyLog {
    path: PathBuf,
    types: Vec<&'static str>,
    file: BufWriter<File>,
    serializer: V2DeflateSerializer,
}

impl LatencyLog {
    /// Creates the file of this name, `latency` or `lateness`, for histograms of these types.
    pub fn create(directory: &Path, name: &str, types: &[&'static str]) -> Result<Self, LoadError> {
        let path = directory.join(format!("{name}.hlog"));
        let mut file = File::create(&path)
            .map(BufWriter::new)
            .map_err(|source| output(&path, source))?;
        let what = if name == "latency" {
            "Latencies of completed transactions"
        } else {
            "How much later than they should transactions began"
        };
        let header = format!(
            "#{what}, nanoseconds, by interval and type\n\
            #Time stamps are seconds on CLOCK_MONOTONIC of the place\n\
            #[Histogram log format version 1.3]\n\
            \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        file.write_all(header.as_bytes())
            .map_err(|source| output(&path, source))?;
        Ok(Self {
            path,
            types: types.to_vec(),
            file,
            serializer: V2DeflateSerializer::new(),
        })
    }

    /// Appends one interval: a line per type.
    pub fn append(
        &mut self,
        histograms: &[Histogram<u32>],
        (start_ns, end_ns): (i64, i64),
    ) -> Result<(), LoadError> {
        let duration = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or_default());
        let result = (|| {
            // The builder without comments and times writes no header, so one writer per interval is only a borrow.
            let mut log = IntervalLogWriterBuilder::new()
                .begin_log_with(&mut self.file, &mut self.serializer)?;
            for (name, latencies) in self.types.iter().zip(histograms) {
                log.write_histogram(
                    latencies,
                    duration(start_ns),
                    duration(end_ns - start_ns),
                    Tag::new(name),
                )
                .map_err(io::Error::other)?;
            }
            self.file.flush()
        })();
        result.map_err(|source| output(&self.path, source))
    }
}

/// Arrivals of one interval, and how many waited at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Should have begun inside it.
    pub arrived: u64,
    /// Should have begun before its end and had not, when the interval was closed: at most a few hundredths of a
    /// second later.
    pub waiting: u64,
    /// Given up inside it, or since the interval before was closed.
    pub timed_out: u64,
}

/// A column's name, and what is in it.
pub type TimelineColumn = (&'static str, fn(Interval) -> u64);

/// One row of the timeline.
struct TimelineRow {
    time_ns: i64,
    measured: bool,
    counts: Vec<Outcomes>,
    arrivals: Option<Interval>,
}

/// `timeline.arrows`.
pub struct Timeline {
    path: PathBuf,
    writer: StreamWriter<BufWriter<File>>,
    schema: Arc<Schema>,
    columns: &'static [TimelineColumn],
    pending: Vec<TimelineRow>,
}

impl Timeline {
    /// Creates the file, for transactions of these types; an open loop has columns of its own.
    pub fn create(
        directory: &Path,
        types: &[&'static str],
        columns: &'static [TimelineColumn],
    ) -> Result<Self, LoadError> {
        let path = directory.join("timeline.arrows");
        let mut fields = vec![
            Field::new("time_ns", DataType::Int64, false),
            Field::new("measured", DataType::Boolean, false),
        ];
        for kind in types {
            let name = |outcome| format!("{kind}_{outcome}");
            fields.extend(
                OUTCOMES.map(|(outcome, _)| Field::new(name(outcome), DataType::UInt64, false)),
            );
        }
        let of_arrivals = columns
            .iter()
            .map(|(name, _)| Field::new(*name, DataType::UInt64, false));
        fields.extend(of_arrivals);
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(&path)
            .map(BufWriter::new)
            .map_err(|source| output(&path, source))?;
        let writer = StreamWriter::try_new(file, &schema).map_err(|error| arrow(&path, error))?;
        Ok(Self {
            path,
            writer,
            schema,
            columns,
            pending: Vec::new(),
        })
    }

    /// Appends one interval.
    pub fn append(
        &mut self,
        slot: &Slot,
        arrivals: Option<Interval>,
        measured: bool,
        time_ns: i64,
    ) -> Result<(), LoadError> {
        self.pending.push(TimelineRow {
            time_ns,
            measured,
            counts: slot.counts.clone(),
            arrivals,
        });
        let first_ns = self.pending.first().map_or(time_ns, |row| row.time_ns);
        if time_ns - first_ns >= FLUSH_EVERY_NS {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes what is pending and ends the stream.
    pub fn finish(mut self) -> Result<(), LoadError> {
        self.flush()?;
        self.writer
            .finish()
            .map_err(|error| arrow(&self.path, error))
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let rows = &self.pending;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.time_ns).collect::<Int64Array>()),
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.measured))
                    .collect::<BooleanArray>(),
            ),
        ];
        for kind in 0..rows[0].counts.len() {
            for (_, count) in OUTCOMES {
                let values = rows.iter().map(|row| count(&row.counts[kind]));
                columns.push(Arc::new(values.collect::<UInt64Array>()));
            }
        }
        for (_, value) in self.columns {
            let values = rows.iter().map(|row| row.arrivals.map_or(0, value));
            columns.push(Arc::new(values.collect::<UInt64Array>()));
        }
        let written = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .and_then(|batch| self.writer.write(&batch))
            .and_then(|()| self.writer.flush());
        self.pending.clear();
        written.map_err(|error| arrow(&self.path, error))
    }
}

/// Writes `result.json`.
pub fn write_result(directory: &Path, driven: &Driven) -> Result<(), LoadError> {
    write_json(&directory.join("result.json"), driven)
}

/// Writes a document for people to read, too.
pub fn write_json(path: &Path, document: &impl serde::Serialize) -> Result<(), LoadError> {
    let text = serde_json::to_vec_pretty(document).map_err(io::Error::other);
    text.and_then(|text| std::fs::write(path, text))
        .map_err(|source| output(path, source))
}

fn arrow(path: &Path, error: ArrowError) -> LoadError {
    output(path, io::Error::other(error))
}

fn output(path: &Path, source: io::Error) -> LoadError {
    LoadError::Output {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
