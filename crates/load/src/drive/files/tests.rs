//! The three files, written from slots made by hand.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::*;
use crate::drive::schedule::Moment;
use crate::tpcc::inputs::Kind;

const SECOND_NS: i64 = 1_000_000_000;
const KINDS: usize = Kind::NAMES.len();

fn batches(directory: &Path) -> Vec<RecordBatch> {
    let file = File::open(directory.join("timeline.arrows")).expect("it is there");
    let reader = StreamReader::try_new(file, None).expect("a stream");
    reader.collect::<Result<_, _>>().expect("whole batches")
}

#[test]
fn an_interval_without_transactions_is_a_row_of_zeros() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut timeline = Timeline::create(directory.path(), &Kind::NAMES, &[]).expect("created");
    let empty = Slot::new(Moment::Measured(0), KINDS);
    for index in 0..3 {
        timeline
            .append(&empty, None, index > 0, index * 10)
            .expect("appended");
    }
    timeline.finish().expect("finished");
    let [batch] = &batches(directory.path())[..] else {
        panic!("one batch")
    };
    assert_eq!((batch.num_rows(), batch.num_columns()), (3, 22));
    assert_eq!(
        batch
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec(),
        [0, 10, 20]
    );
    let measured: Vec<bool> = batch.column(1).as_boolean().values().iter().collect();
    assert_eq!(measured, [false, true, true]);
    for column in &batch.columns()[2..] {
        assert!(
            column
                .as_primitive::<UInt64Type>()
                .values()
                .iter()
                .all(|count| *count == 0)
        );
    }
}

#[test]
fn every_count_has_its_own_column_in_the_documented_order() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut timeline = Timeline::create(directory.path(), &Kind::NAMES, &[]).expect("created");
    let mut slot = Slot::new(Moment::Measured(0), KINDS);
    for (number, counts) in (0_u64..).zip(&mut slot.counts) {
        let first = 4 * number;
        *counts = Outcomes {
            committed: first,
            rolled_back: first + 1,
            failed: first + 2,
            retried: first + 3,
            statements: 99,
            saturated: 0,
        };
    }
    timeline.append(&slot, None, true, 0).expect("appended");
    timeline.finish().expect("finished");
    let [batch] = &batches(directory.path())[..] else {
        panic!("one batch")
    };
    let values: Vec<u64> = batch.columns()[2..]
        .iter()
        .map(|column| column.as_primitive::<UInt64Type>().value(0))
        .collect();
    assert_eq!(values, (0..20).collect::<Vec<u64>>());
    let schema = batch.schema();
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(names[..3], ["time_ns", "measured", "new_order_committed"]);
    assert_eq!(
        names[18..],
        [
            "stock_level_committed",
            "stock_level_rolled_back",
            "stock_level_failed",
            "stock_level_retried"
        ]
    );
}

#[test]
fn rows_reach_the_file_once_they_span_a_second() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut timeline = Timeline::create(directory.path(), &Kind::NAMES, &[]).expect("created");
    let slot = Slot::new(Moment::Measured(0), KINDS);
    for tenth in 0..=20 {
        timeline
            .append(&slot, None, true, tenth * SECOND_NS / 10)
            .expect("appended");
    }
    let file = File::open(directory.path().join("timeline.arrows")).expect("it is there");
    let written: usize = StreamReader::try_new(file, None)
        .expect("readable while it is written")
        .map_while(Result::ok)
        .map(|batch| batch.num_rows())
        .sum();
    assert_eq!(written, 11, "tenths 0 to 10 are out, the rest is pending");
    timeline.finish().expect("finished");
    assert_eq!(
        batches(directory.path())
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>(),
        21
    );
}

#[test]
fn a_type_without_latencies_has_its_line_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut log = LatencyLog::create(directory.path(), "latency", &Kind::NAMES).expect("created");
    let mut slot = Slot::new(Moment::Measured(0), KINDS);
    slot.latencies[1].record(5_000_000).expect("in range");
    log.append(&slot.latencies, (3 * SECOND_NS, 4 * SECOND_NS))
        .expect("appended");
    log.append(
        &slot.latencies,
        (4 * SECOND_NS, 4 * SECOND_NS + 500_000_000),
    )
    .expect("appended");
    let text = std::fs::read_to_string(directory.path().join("latency.hlog")).expect("text");
    assert!(
        text.contains("#[Histogram log format version 1.3]\n"),
        "{text}"
    );
    let lines: String = text
        .lines()
        .filter(|line| !line.starts_with('"'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let entries: Vec<(String, Duration, Duration)> = IntervalLogIterator::new(lines.as_bytes())
        .filter_map(|entry| match entry.expect("readable") {
            LogEntry::Interval(interval) => {
                let tag = interval.tag().expect("a type").as_str().to_owned();
                Some((tag, interval.start_timestamp(), interval.duration()))
            }
            _ => None,
        })
        .collect();
    let tags: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
    assert_eq!(tags, [Kind::NAMES, Kind::NAMES].concat());
    assert_eq!(
        (entries[0].1, entries[0].2),
        (Duration::from_secs(3), Duration::from_secs(1))
    );
    assert_eq!(
        (entries[9].1, entries[9].2),
        (Duration::from_secs(4), Duration::from_millis(500))
    );
}

#[test]
fn result_json_has_the_shape_of_the_protocols_example() {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/native/driven.json");
    let example = std::fs::read(example).expect("the protocol has an example");
    let driven: Driven = serde_json::from_slice(&example).expect("it is a Driven");
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_result(directory.path(), &driven).expect("written");
    let written = std::fs::read(directory.path().join("result.json")).expect("it is there");
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    assert_eq!(json(&written), json(&example));
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let nowhere = Path::new("/nowhere/at/all");
    for end in [
        LatencyLog::create(nowhere, "latency", &Kind::NAMES).map(drop),
        Timeline::create(nowhere, &Kind::NAMES, &[]).map(drop),
    ] {
        let error = end.expect_err("refused");
        assert!(error.to_string().contains("/nowhere/at/all/"), "{error}");
        assert!(error.hint().contains("exists"), "{}", error.hint());
    }
}
