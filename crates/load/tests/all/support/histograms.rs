//! Latencies as a drive has written them.

use std::path::Path;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

/// All histograms of a file together.
pub fn merged(directory: &Path, name: &str) -> Histogram<u64> {
    let text = std::fs::read_to_string(directory.join(name)).expect("the file is there");
    let lines: String = text
        .lines()
        .filter(|line| !line.starts_with('"'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut all = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds");
    for entry in IntervalLogIterator::new(lines.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.expect("readable") {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(interval.encoded_histogram())
                .expect("base64");
            let one: Histogram<u64> = Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .expect("a histogram");
            all.add(&one).expect("equal bounds");
        }
    }
    all
}
