//! What the kernel says below `/proc` and `/sys`, as a tree of files.

#![no_main]

#[path = "../tree.rs"]
mod tree;

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// In memory where there is such a place: an input is some dozens of files.
static ROOT: LazyLock<TempDir> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory).expect("a directory")
    } else {
        TempDir::new().expect("a directory")
    }
});

fuzz_target!(|bytes: &[u8]| {
    let root = ROOT.path();
    let (first, second) = tree::halves(bytes);
    tree::clear(root);
    tree::write(root, first);
    fairtrial_sample::fuzzing::sources(root, || tree::write(root, second));
    fairtrial_load::fuzzing::file_counters(root);
    fairtrial_state::facts_below(root, root).expect("facts describe, and refuse nothing");
});
