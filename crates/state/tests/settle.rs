//! Settling by a `/proc` of the test's own; syncing is real.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairtrial_protocol::state::Settle;
use fairtrial_state::{StateError, settle, settle_below};
use tempfile::TempDir;

const MEBIBYTE: u64 = 1 << 20;

fn place(dirty_kib: u64, writeback_kib: u64) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), dirty_kib, writeback_kib);
    fs::create_dir_all(root.path().join("sys/vm")).expect("made");
    fs::write(root.path().join("sys/vm/drop_caches"), "0").expect("written");
    root
}

fn write(root: &Path, dirty_kib: u64, writeback_kib: u64) {
    let text = format!(
        "MemTotal:       24684084 kB\nDirty:          {dirty_kib} kB\nWriteback:      {writeback_kib} kB\nWritebackTmp:   9 kB\n"
    );
    let unfinished = root.join("meminfo.new");
    fs::write(&unfinished, text).expect("written");
    fs::rename(unfinished, root.join("meminfo")).expect("renamed");
}

fn asked(dirty_bytes: u64, timeout_s: f64, drop_caches: bool) -> Settle {
    Settle {
        dirty_bytes,
        timeout_s,
        drop_caches,
    }
}

#[test]
fn a_place_at_rest_is_settled_at_once_and_its_caches_dropped_if_asked() {
    let root = place(100, 24);
    let settled = settle_below(root.path(), &asked(MEBIBYTE, 0.0, true)).expect("settled");
    assert_eq!(settled.dirty_bytes, 124 * 1024);
    assert!(settled.dropped);
    assert_eq!(
        fs::read_to_string(root.path().join("sys/vm/drop_caches")).expect("read"),
        "3"
    );
}

#[test]
fn caches_stay_unless_asked_for() {
    let root = place(0, 0);
    assert!(
        !settle_below(root.path(), &asked(0, 0.0, false))
            .expect("settled")
            .dropped
    );
    assert_eq!(
        fs::read_to_string(root.path().join("sys/vm/drop_caches")).expect("read"),
        "0"
    );
}

#[test]
fn running_out_of_time_is_told_and_no_error() {
    let root = place(4096, 1024);
    let settled = settle_below(root.path(), &asked(MEBIBYTE, 0.12, false)).expect("settled");
    assert_eq!(settled.dirty_bytes, 5 * MEBIBYTE);
    assert!(settled.waited_s >= 0.12);
}

#[test]
fn it_waits_until_pages_are_written() {
    let root = place(4096, 0);
    let settled = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(120));
            write(root.path(), 8, 0);
        });
        settle_below(root.path(), &asked(MEBIBYTE, 60.0, false)).expect("settled")
    });
    assert_eq!(settled.dirty_bytes, 8 * 1024);
    assert!(settled.waited_s >= 0.1);
}

#[test]
fn a_place_that_does_not_let_us_drop_caches_says_so() {
    let root = place(0, 0);
    fs::remove_file(root.path().join("sys/vm/drop_caches")).expect("removed");
    assert!(
        !settle_below(root.path(), &asked(0, 0.0, true))
            .expect("settled")
            .dropped
    );
}

#[test]
fn without_a_meminfo_nothing_is_known() {
    let root = tempfile::tempdir().expect("a directory");
    let error = settle_below(root.path(), &asked(0, 0.0, false)).expect_err("refused");
    assert!(
        matches!(&error, StateError::Read { path, .. } if path.ends_with("meminfo")),
        "{error}"
    );
}

#[test]
fn this_machine_tells_its_dirty_pages() {
    let settled = settle(&asked(u64::MAX, 0.0, false)).expect("settled");
    assert!(settled.dirty_bytes < u64::MAX && settled.waited_s >= 0.0);
}
