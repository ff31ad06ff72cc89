//! Reading back what a sampler wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;

/// Columns by name, `time_ns` left out after a look at it.
pub fn columns(path: &Path) -> BTreeMap<String, Vec<Option<u64>>> {
    let batches: Vec<RecordBatch> = StreamReader::try_new(File::open(path).expect("there"), None)
        .expect("a stream")
        .map(Result::unwrap)
        .collect();
    let mut columns = BTreeMap::<String, Vec<Option<u64>>>::new();
    let mut last_ns = 0;
    for batch in &batches {
        for time_ns in batch.column(0).as_primitive::<Int64Type>().values() {
            assert!(*time_ns >= last_ns, "time goes forward");
            last_ns = *time_ns;
        }
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()).skip(1) {
            let values = array.as_primitive::<UInt64Type>().iter();
            columns
                .entry(field.name().clone())
                .or_default()
                .extend(values);
        }
    }
    columns
}
