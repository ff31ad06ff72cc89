//! Restoring to a file system of its own that is too small: a tmpfs, which takes root to mount.

use std::fs;

use fairtrial_state::{StateError, restore};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::prepared::parameters;

const SMALL: &std::ffi::CStr = c"size=1m";
const FITS_BYTES: usize = 300_000;
const TOO_MUCH_BYTES: usize = 3_000_000;

/// A mounted tmpfs, unmounted when dropped.
struct Tmpfs {
    directory: TempDir,
}

impl Tmpfs {
    fn mount() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        mount(
            "none",
            directory.path(),
            "tmpfs",
            MountFlags::empty(),
            SMALL,
        )
        .expect("mounted");
        Self { directory }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        unmount(self.directory.path(), UnmountFlags::DETACH).expect("unmounted");
    }
}

#[test]
fn a_full_disk_is_told_as_such_and_the_old_data_stay() {
    if !geteuid().is_root() {
        return;
    }
    let small = Tmpfs::mount();
    let work = small.directory.path().join("data");
    let prepared = tempfile::tempdir().expect("a directory");
    let content: Vec<u8> = (1..=251_u8).cycle().take(FITS_BYTES).collect();
    fs::write(prepared.path().join("table"), &content).expect("written");

    let restored = restore(&parameters(prepared.path(), &work))
        .expect("it fits, from one file system to another");
    assert_eq!(restored.method, "sparse_copy");
    assert_eq!(fs::read(work.join("table")).expect("read"), content);

    fs::write(prepared.path().join("table"), vec![1; TOO_MUCH_BYTES]).expect("written");
    let error = restore(&parameters(prepared.path(), &work)).expect_err("refused");
    assert!(
        matches!(&error, StateError::Full { path, .. } if path.ends_with("table")),
        "{error}"
    );
    assert!(error.hint().contains("free space"));
    assert_eq!(fs::read(work.join("table")).expect("read"), content);
    let left: Vec<_> = fs::read_dir(small.directory.path())
        .expect("listed")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "nothing half done is left: {left:?}");
}
