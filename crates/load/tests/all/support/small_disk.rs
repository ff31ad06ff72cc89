//! A file system so small that a server's data fill it; needs a user that may mount.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairtrial_protocol::load::{Driven, Endpoint};

use super::apart::DriveProcess;
use super::mariadb::skips::lacks;
use super::mariadb::{Server, is_installed};
use super::{number, wait_until};

/// A server's own files take about half of it.
const SIZE: &str = "160m";

/// A file system in memory, mounted for one test.
pub struct SmallDisk {
    directory: PathBuf,
}

impl SmallDisk {
    /// Mounts one; `None`, said on standard error, where nothing may be mounted.
    pub fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory").keep();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={SIZE}"), "none"])
            .arg(&directory)
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!(
                "skipped: a full disk needs a small file system, and this user may mount none"
            );
            fs::remove_dir(&directory).expect("it is empty");
            return None;
        }
        Some(Self { directory })
    }

    /// A directory on it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A server whose data lie on it, its own files kept small; `None`, said on standard error, where none is installed.
    pub fn server(&self) -> Option<Server> {
        if !is_installed() {
            lacks("mariadb-server");
            return None;
        }
        let on_it = tempfile::tempdir_in(&self.directory).expect("there is room");
        Server::start_in(on_it, |directory| {
            fill_holes(&directory.join("data"));
            vec![
                "--skip-networking".into(),
                "--innodb-log-file-size=8M".into(),
            ]
        })
    }

    /// Takes all room while users insert, and gives it back once they have met that: the code of their system counts all
    /// that the disk refused, and they go on. Returns what their drive has written.
    pub fn fill_and_free(
        &self,
        mut driving: DriveProcess,
        endpoint: &Endpoint,
        code: &str,
    ) -> Driven {
        self.fill();
        driving.wait_for_errors(10);
        let rows = || number(endpoint, "SELECT MAX(id) FROM sbtest1");
        let full_rows = rows();
        fs::remove_file(self.filler()).expect("it was filled");
        wait_until("inserts go on", || rows() > full_rows + 100);
        let driven = driving.result();
        let refused: BTreeMap<_, _> = driven
            .errors
            .iter()
            .filter(|error| error.kind == "disk_full" || error.code == code)
            .map(|error| ((error.kind.as_str(), error.code.as_str()), error.count))
            .collect();
        assert!(refused.keys().eq(&[("disk_full", code)]), "{refused:?}");
        let failed: u64 = driven.transactions.values().map(|one| one.failed).sum();
        assert!(failed >= refused.values().sum::<u64>(), "none was repeated");
        driven
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let zeros = Command::new("dd")
            .args(["if=/dev/zero", "bs=64k"])
            .arg(format!("of={}", self.filler().display()))
            .output()
            .expect("dd runs");
        assert!(
            !zeros.status.success(),
            "it ends when nothing fits any more"
        );
    }

    fn filler(&self) -> PathBuf {
        self.directory.join("filler")
    }
}

/// Takes room for all pages of InnoDB's files, copied with holes: a server on a full disk tries to write a page into a
/// hole for ever, and users wait for it without an error.
fn fill_holes(data: &Path) {
    let filled = Command::new("find")
        .arg(data)
        .args(["(", "-name", "ibdata*", "-o", "-name", "*.ibd", ")"])
        .args(["-size", "+0", "-exec", "sh", "-euc"])
        .arg(r#"for file; do fallocate --length "$(stat --format=%s "$file")" "$file"; done"#)
        .args(["sh", "{}", "+"])
        .output()
        .expect("find runs");
    let words = String::from_utf8_lossy(&filled.stderr);
    assert!(filled.status.success(), "{words}");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server is gone by now; what it wrote goes with the file system.
        let _ = Command::new("umount").arg(&self.directory).output();
        let _ = fs::remove_dir(&self.directory);
    }
}
