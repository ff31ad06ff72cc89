//! Settling by a `/proc` of the test's own; syncing is real.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::thread;

use fairtrial_protocol::state::Settle;
use fairtrial_state::{StateError, settle, settle_below};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

const MEBIBYTE: u64 = 1 << 20;

fn place(dirty_kib: u64, writeback_kib: u64) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), dirty_kib, writeback_kib);
    fs::create_dir_all(root.path().join("sys/vm")).expect("made");
    fs::write(root.path().join("sys/vm/drop_caches"), "0").expect("written");
    root
}

fn text(dirty_kib: u64, writeback_kib: u64) -> String {
    format!(
        "MemTotal:       24684084 kB\nDirty:          {dirty_kib} kB\nWriteback:      {writeback_kib} kB\nWritebackTmp:   9 kB\n"
    )
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
}

fn write(root: &Path, dirty_kib: u64, writeback_kib: u64) {
    let unfinished = root.join("meminfo.new");
    fs::write(&unfinished, text(dirty_kib, writeback_kib)).expect("written");
    fs::rename(unfinished, root.join("meminfo")).expect("renamed");
}

fn request(dirty_bytes: u64, timeout_s: f64, drop_caches: bool) -> Settle {
    Settle {
        dirty_bytes,
        timeout_s,
        drop_caches,
    }
}

#[test]
fn a_place_at_rest_is_settled_at_once_and_its_caches_dropped_if_asked() {
    let root = place(100, 24);
    let settled = settle_below(root.path(), &request(MEBIBYTE, 0.0, true)).expect("settled");
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
        !settle_below(root.path(), &request(0, 0.0, false))
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
    let settled = settle_below(root.path(), &request(MEBIBYTE, 0.12, false)).expect("settled");
    assert_eq!(settled.dirty_bytes, 5 * MEBIBYTE);
    assert!(settled.waited_s >= 0.12);
}

#[test]
fn it_waits_until_pages_are_written() {
    let root = place(0, 0);
    let (meminfo, next) = (root.path().join("meminfo"), root.path().join("next"));
    fs::remove_file(&meminfo).expect("removed");
    pipe(&meminfo);
    pipe(&next);
    let settled = thread::scope(|scope| {
        scope.spawn(|| {
            // A look has opened a pipe once this returns; before it reads on, what the next will find is in place.
            let opened = || File::options().write(true).open(&meminfo).expect("read");
            let mut first = opened();
            fs::rename(&next, &meminfo).expect("renamed");
            first.write_all(text(4096, 0).as_bytes()).expect("read on");
            drop(first);
            let mut second = opened();
            write(root.path(), 8, 0);
            second.write_all(text(2048, 0).as_bytes()).expect("read on");
        });
        // Syncing is part of it, and may take long where others write.
        settle_below(root.path(), &request(MEBIBYTE, 3_600.0, false)).expect("settled")
    });
    assert_eq!(settled.dirty_bytes, 8 * 1024);
    assert!(settled.waited_s >= 0.1);
}

#[test]
fn a_place_that_does_not_let_us_drop_caches_says_so() {
    let root = place(0, 0);
    fs::remove_file(root.path().join("sys/vm/drop_caches")).expect("removed");
    assert!(
        !settle_below(root.path(), &request(0, 0.0, true))
            .expect("settled")
            .dropped
    );
}

#[test]
fn without_a_meminfo_nothing_is_known() {
    let root = tempfile::tempdir().expect("a directory");
    let error = settle_below(root.path(), &request(0, 0.0, false)).expect_err("refused");
    assert!(
        matches!(&error, StateError::Read { path, .. } if path.ends_with("meminfo")),
        "{error}"
    );
}

#[test]
fn this_machine_tells_its_dirty_pages() {
    let settled = settle(&request(u64::MAX, 0.0, false)).expect("settled");
    assert!(settled.dirty_bytes < u64::MAX && settled.waited_s >= 0.0);
}

#[test]
fn a_meminfo_without_dirty_pages_is_not_taken_for_rest() {
    for text in [
        "",
        "MemTotal: 1 kB\n",
        "Dirty: 0 kB\nWritebackTmp: 0 kB\n",
        "Dirty: many kB\nWriteback: 0 kB\n",
        "Dirty:\nWriteback: 0 kB\n",
        "DirtyX: 0 kB\nWriteback: 0 kB\n",
    ] {
        let root = place(0, 0);
        fs::write(root.path().join("meminfo"), text).expect("written");
        let error = settle_below(root.path(), &request(u64::MAX, 0.0, true)).expect_err(text);
        assert!(
            matches!(&error, StateError::Read { .. }),
            "{text:?}: {error}"
        );
        let dropped = fs::read_to_string(root.path().join("sys/vm/drop_caches")).expect("there");
        assert_eq!(dropped, "0", "nothing is dropped on the way");
    }
}

#[test]
fn dirty_and_writeback_count_together_and_writeback_of_others_does_not() {
    for (dirty_kib, writeback_kib) in [(0, 0), (3, 4), (4, 3), (u64::MAX, 1), (u64::MAX / 1024, 0)]
    {
        let root = place(dirty_kib, writeback_kib);
        let settled =
            settle_below(root.path(), &request(0, 0.0, false)).expect("out of time is no error");
        let unwritten_bytes = dirty_kib.saturating_add(writeback_kib).saturating_mul(1024);
        assert_eq!(settled.dirty_bytes, unwritten_bytes);
    }
}

#[test]
fn the_limit_itself_is_rest() {
    let root = place(3, 1);
    for (limit, is_rest) in [(4096, true), (4095, false)] {
        let settled = settle_below(root.path(), &request(limit, 0.0, false)).expect("settled");
        assert_eq!(settled.dirty_bytes <= limit, is_rest);
    }
    // With any time at all, one that is not at rest uses it up, and one that is does not.
    let settled = settle_below(root.path(), &request(4095, 0.2, false)).expect("settled");
    assert!(settled.waited_s >= 0.2);
}
