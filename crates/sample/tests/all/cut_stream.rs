//! A stream cut by a kill: what was written whole is read back, nothing else.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;
use fairtrial_protocol::sample::{Sample, Source};
use fairtrial_sample::Sampler;

const BATCH_ROWS: usize = 10; // of an interval of a second

/// Counts from 0 in `pgfault`, one row per tick.
fn written(ticks: usize) -> Vec<u8> {
    let (root, output) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let parameters = Sample {
        interval_ms: 1000,
        sources: vec![Source::Vmstat],
        processes: [].into(),
        process_trees: [].into(),
        server: None,
        output_directory: output.path().to_str().expect("plain").to_owned(),
    };
    let count = |value: usize| fs::write(root.path().join("vmstat"), format!("pgfault {value}\n"));
    count(0).expect("written");
    let mut sampler = Sampler::open(Path::new(root.path()), &parameters).expect("opened");
    for tick in 0..ticks {
        count(tick).expect("written");
        sampler.tick().expect("sampled");
    }
    let file = output.path().join("telemetry-vmstat.arrows");
    let unfinished = fs::read(&file).expect("read");
    sampler.finish().expect("finished");
    let whole = fs::read(&file).expect("read");
    assert!(
        whole.starts_with(&unfinished),
        "what is written is never written again"
    );
    whole
}

/// Whole batches up to the cut, as their values.
fn readable(bytes: &[u8]) -> Vec<u64> {
    let Ok(reader) = StreamReader::try_new(Cursor::new(bytes), None) else {
        return Vec::new();
    };
    let values = |batch: RecordBatch| {
        batch
            .column(1)
            .as_primitive::<UInt64Type>()
            .values()
            .to_vec()
    };
    reader.map_while(Result::ok).flat_map(values).collect()
}

#[test]
fn a_stream_cut_at_any_byte_gives_its_whole_batches_in_order() {
    let bytes = written(3 * BATCH_ROWS + 4);
    let all: Vec<u64> = (0..3 * BATCH_ROWS as u64 + 4).collect();
    assert_eq!(readable(&bytes), all);
    let mut counts = Vec::new();
    for cut in 0..bytes.len() {
        let read = readable(&bytes[..cut]);
        assert_eq!(read, all[..read.len()], "cut at {cut}");
        counts.push(read.len());
    }
    assert!(counts.is_sorted(), "a longer stream never says less");
    counts.dedup();
    assert_eq!(counts, [0, 10, 20, 30, 34]);
}

#[test]
fn a_full_batch_is_in_the_file_before_the_next_tick() {
    let (root, output) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    fs::write(root.path().join("vmstat"), "pgfault 7\n").expect("written");
    let parameters = Sample {
        interval_ms: 1000,
        sources: vec![Source::Vmstat],
        processes: [].into(),
        process_trees: [].into(),
        server: None,
        output_directory: output.path().to_str().expect("plain").to_owned(),
    };
    let mut sampler = Sampler::open(root.path(), &parameters).expect("opened");
    for tick in 1..=3 * BATCH_ROWS {
        sampler.tick().expect("sampled");
        let bytes = fs::read(output.path().join("telemetry-vmstat.arrows")).expect("read");
        assert_eq!(
            readable(&bytes).len(),
            tick - tick % BATCH_ROWS,
            "after {tick}"
        );
    }
}
