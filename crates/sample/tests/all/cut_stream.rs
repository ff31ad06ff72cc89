//! A stream cut by a kill: what was written whole is read back, nothing else.

use std::fs;
use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;
use fairtrial_protocol::sample::Source;
use fairtrial_sample::Sampler;

use crate::fake_proc::FakeProc;

const BATCH_ROWS: usize = 10; // of an interval of a second

fn sampler(proc: &FakeProc) -> Sampler {
    let parameters = proc.sample(&[Source::Vmstat], &[], 1000);
    Sampler::open(proc.root.path(), &parameters).expect("opened")
}

/// Counts from 0 in `pgfault`, one row per tick.
fn written(ticks: usize) -> Vec<u8> {
    let proc = FakeProc::empty();
    let count = |value: usize| proc.write("vmstat", format!("pgfault {value}\n"));
    count(0);
    let mut sampler = sampler(&proc);
    for tick in 0..ticks {
        count(tick);
        sampler.tick().expect("sampled");
    }
    let file = proc.file("vmstat");
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
            .column(2)
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
    let proc = FakeProc::empty();
    proc.write("vmstat", "pgfault 7\n");
    let mut sampler = sampler(&proc);
    for tick in 1..=3 * BATCH_ROWS {
        sampler.tick().expect("sampled");
        let bytes = fs::read(proc.file("vmstat")).expect("read");
        assert_eq!(
            readable(&bytes).len(),
            tick - tick % BATCH_ROWS,
            "after {tick}"
        );
    }
}
