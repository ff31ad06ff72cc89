//! The corpora, read again by the tests of the crates whose readers they are for.

use std::fs;
use std::path::{Path, PathBuf};

/// Gives each input of a target's corpus to its reader; which one is said where it fails.
pub fn each(target: &str, read: impl Fn(&[u8])) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = fs::read_dir(corpora.join(target)).expect("a corpus");
    let inputs: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an input").path())
        .collect();
    assert!(!inputs.is_empty(), "{target} has no corpus");
    for input in inputs {
        eprintln!("{}", input.display());
        read(&fs::read(&input).expect("an input"));
    }
}
