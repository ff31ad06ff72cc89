//! Reading back what a sampler wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;

/// Columns by name, `time_ns` and `end_ns` left out after a look at them.
pub fn columns(path: &Path) -> BTreeMap<String, Vec<Option<u64>>> {
    let batches: Vec<RecordBatch> = StreamReader::try_new(File::open(path).expect("there"), None)
        .expect("a stream")
        .map(Result::unwrap)
        .collect();
    let mut columns = BTreeMap::<String, Vec<Option<u64>>>::new();
    let mut last_ns = 0;
    for batch in &batches {
        let [times, ends] = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().values());
        for (time_ns, end_ns) in times.iter().zip(ends) {
            assert!(*time_ns >= last_ns, "time goes forward");
            assert!(end_ns >= time_ns, "a reading ends after it began");
            last_ns = *time_ns;
        }
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()).skip(2) {
            let values = array.as_primitive::<UInt64Type>().iter();
            columns
                .entry(field.name().clone())
                .or_default()
                .extend(values);
        }
    }
    columns
}
