//! A drive on a real SQLite database, and what its files say.

use std::collections::BTreeMap;
use std::fs::File;

use crate::support::{assert_consistent, completed, drive, effects, parameters, sqlite_copy};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;
use fairtrial_load::LoadError;
use fairtrial_protocol::load::Driven;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

#[test]
fn all_conditions_hold_and_all_columns_change_when_several_users_drive() {
    let copy = sqlite_copy();
    assert_consistent(&copy.endpoint);
    let before = effects::look(&copy.endpoint);
    let driven = drive(&parameters(copy.endpoint.clone(), copy.directory.path()));
    let failed: u64 = driven
        .transactions
        .values()
        .map(|outcomes| outcomes.failed)
        .sum();
    assert_eq!(
        completed(&driven) + failed,
        400,
        "exactly the transactions asked for are measured"
    );
    assert!(
        driven.errors.iter().all(|error| error.kind == "busy"),
        "{:?}",
        driven.errors
    );
    assert_eq!(driven.effective["journal_mode"], "wal");
    assert!(driven.client.user_s + driven.client.system_s > 0.0);
    assert_consistent(&copy.endpoint);
    effects::assert_changed(&copy.endpoint, &before);
}

#[test]
fn the_database_grows_by_what_the_result_says_was_committed() {
    let copy = sqlite_copy();
    let before = effects::look(&copy.endpoint);
    let mut parameters = parameters(copy.endpoint.clone(), copy.directory.path());
    (
        parameters.drive.virtual_users,
        parameters.drive.transactions,
    ) = (1, Some(300));
    effects::assert_counts(&copy.endpoint, &before, &drive(&parameters));
}

#[test]
fn the_files_of_a_drive_agree_with_its_result() {
    let copy = sqlite_copy();
    let mut parameters = parameters(copy.endpoint.clone(), copy.directory.path());
    (parameters.drive.transactions, parameters.drive.duration_s) = (None, Some(1.25));
    (parameters.drive.ramp_up_s, parameters.drive.interval_ms) = (0.35, 200);
    let driven = drive(&parameters);
    assert_eq!(
        driven.window.end_ns - driven.window.start_ns,
        1_250_000_000,
        "exact to the nanosecond"
    );
    let result =
        std::fs::read(copy.directory.path().join("result.json")).expect("result.json is there");
    assert_eq!(
        serde_json::from_slice::<Driven>(&result).expect("it is a Driven"),
        driven
    );

    let latencies = read_latencies(&copy.directory.path().join("latency.hlog"), &driven);
    for (kind, outcomes) in &driven.transactions {
        assert_eq!(
            latencies[kind],
            outcomes.committed + outcomes.rolled_back,
            "{kind}"
        );
    }
    let (times, counts) = read_timeline(&copy.directory.path().join("timeline.arrows"), true);
    let start = driven.window.start_ns;
    let expected: Vec<i64> = [-350, -150]
        .into_iter()
        .chain((0..7).map(|index| index * 200))
        .collect();
    let relative: Vec<i64> = times
        .iter()
        .map(|time| (time - start) / 1_000_000)
        .collect();
    assert_eq!(
        relative, expected,
        "two intervals of ramp-up, the last cut; seven of the window, the last cut"
    );
    for (kind, outcomes) in &driven.transactions {
        let column = |outcome: &str| counts[&format!("{kind}_{outcome}")];
        let totals = [
            column("committed"),
            column("rolled_back"),
            column("failed"),
            column("retried"),
        ];
        assert_eq!(
            totals,
            [
                outcomes.committed,
                outcomes.rolled_back,
                outcomes.failed,
                outcomes.retried
            ],
            "{kind}"
        );
    }
}

#[test]
fn ramp_up_and_window_of_counted_transactions_make_the_same_work_of_every_drive() {
    let copy = sqlite_copy();
    let mut parameters = parameters(copy.endpoint.clone(), copy.directory.path());
    parameters.drive.ramp_up_transactions = Some(120);
    parameters.drive.transactions = Some(80);
    (parameters.drive.virtual_users, parameters.drive.interval_ms) = (1, 10);
    let driven = drive(&parameters);
    assert_eq!(completed(&driven), 80, "one user loses none");
    let path = copy.directory.path().join("timeline.arrows");
    let ended = |measured| -> u64 {
        let (_, counts) = read_timeline(&path, measured);
        let outcome = |name: &str| {
            ["_committed", "_rolled_back", "_failed"]
                .iter()
                .any(|end| name.ends_with(end))
        };
        let counts = counts.iter().filter(|(name, _)| outcome(name));
        counts.map(|(_, n)| n).sum()
    };
    assert_eq!((ended(false), ended(true)), (120, 80));
}

/// Number of latencies by type; intervals must cover the window in order.
fn read_latencies(path: &std::path::Path, driven: &Driven) -> BTreeMap<String, u64> {
    use base64::Engine as _;
    let text = std::fs::read(path).expect("latency.hlog is there");
    let mut counts = BTreeMap::new();
    let mut deserializer = Deserializer::new();
    // The reader of the Rust crate knows no legend, which those of Java and Python do.
    let lines: Vec<&[u8]> = text
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"\""))
        .collect();
    for entry in IntervalLogIterator::new(&lines.concat()) {
        let LogEntry::Interval(interval) = entry.expect("every line is readable") else {
            continue;
        };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .expect("base64");
        let latencies: Histogram<u64> = deserializer
            .deserialize(&mut bytes.as_slice())
            .expect("a histogram");
        assert_eq!(latencies.sigfig(), 3);
        let start_ns =
            i64::try_from(interval.start_timestamp().as_nanos()).expect("a monotonic time");
        assert!(
            start_ns >= driven.window.start_ns - 1_000_000,
            "measured intervals only"
        );
        *counts
            .entry(interval.tag().expect("a type").as_str().to_owned())
            .or_default() += latencies.len();
    }
    counts
}

/// Start of every interval, and the sum of every column of counts over intervals of the window, or of ramp-up.
fn read_timeline(path: &std::path::Path, measured: bool) -> (Vec<i64>, BTreeMap<String, u64>) {
    let reader = StreamReader::try_new(File::open(path).expect("timeline.arrows is there"), None)
        .expect("a stream");
    let mut times = Vec::new();
    let mut sums = BTreeMap::new();
    for batch in reader {
        let batch = batch.expect("a whole batch");
        times.extend(batch.column(0).as_primitive::<Int64Type>().values());
        let inside = batch.column(1).as_boolean();
        for (column, field) in batch.columns().iter().zip(batch.schema().fields()).skip(2) {
            let values = column.as_primitive::<UInt64Type>().values();
            let sum: u64 = values
                .iter()
                .zip(inside)
                .filter(|(_, inside)| *inside == Some(measured))
                .map(|(v, _)| v)
                .sum();
            *sums.entry(field.name().clone()).or_default() += sum;
        }
    }
    (times, sums)
}

#[test]
fn tables_of_another_scale_and_contradictory_parameters_are_refused() {
    let copy = sqlite_copy();
    let request = || parameters(copy.endpoint.clone(), copy.directory.path());
    let refused =
        |parameters| fairtrial_load::drive(&parameters, &mut Vec::new()).expect_err("refused");
    let mut scale = request();
    scale.warehouses = 3;
    assert!(matches!(
        refused(scale),
        LoadError::Scale {
            expected: 3,
            count: 2,
            ..
        }
    ));
    let mut both = request();
    both.drive.duration_s = Some(1.0);
    assert!(matches!(
        refused(both),
        LoadError::Parameter {
            field: "duration_s",
            ..
        }
    ));
    let mut neither = request();
    neither.drive.transactions = None;
    assert!(matches!(refused(neither), LoadError::Parameter { .. }));
    let mut two_ends = request();
    (
        two_ends.drive.ramp_up_transactions,
        two_ends.drive.ramp_up_s,
    ) = (Some(1), 0.5);
    assert!(matches!(
        refused(two_ends),
        LoadError::Parameter {
            field: "ramp_up_s",
            ..
        }
    ));
    let mut nowhere = request();
    nowhere.drive.output_directory = "/nowhere".into();
    assert!(matches!(refused(nowhere), LoadError::Output { .. }));
}
