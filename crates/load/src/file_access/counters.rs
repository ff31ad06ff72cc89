//! The kernel's counters at one moment, and what a path lies on.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::file::{FileCounters, Medium, Sectors};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::error::LoadError;

/// `STATX_ATTR_DAX` of `linux/stat.h`.
const ATTRIBUTE_DAX: u64 = 0x0020_0000;

/// Columns of `/proc/diskstats`: name, sectors read and written (Documentation/admin-guide/iostats.rst).
const DISK_COLUMNS: (usize, usize, usize) = (2, 5, 9);

/// Reads the counters of this machine.
pub fn read(path: &Path) -> Result<FileCounters, LoadError> {
    read_below(Path::new("/proc"), Path::new("/sys"), path)
}

/// Reads the counters below other roots than `/proc` and `/sys`.
pub fn read_below(proc: &Path, sys: &Path, path: &Path) -> Result<FileCounters, LoadError> {
    let medium = medium(proc, sys, path)?;
    let vmstat = vmstat(&text(&proc.join("vmstat"))?);
    let devices = devices(&text(&proc.join("diskstats"))?);
    Ok(FileCounters {
        time_ns: monotonic_ns(),
        vmstat,
        devices,
        accounts_processes: proc.join("self/io").exists(),
        medium,
    })
}

fn vmstat(text: &str) -> BTreeMap<String, u64> {
    let counter = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(counter).collect()
}

fn devices(text: &str) -> BTreeMap<String, Sectors> {
    let (name, read, written) = DISK_COLUMNS;
    let device = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let sectors = Sectors {
            read: columns.get(read)?.parse().ok()?,
            written: columns.get(written)?.parse().ok()?,
        };
        Some(((*columns.get(name)?).to_owned(), sectors))
    };
    text.lines().filter_map(device).collect()
}

fn medium(proc: &Path, sys: &Path, path: &Path) -> Result<Medium, LoadError> {
    let failed = |source| file_error(path, source);
    let whole = fs::canonicalize(path).map_err(failed)?;
    let status = statx(CWD, &whole, AtFlags::empty(), StatxFlags::BASIC_STATS)
        .map_err(|error| failed(error.into()))?;
    let mounts = text(&proc.join("self/mountinfo"))?;
    let mut medium = mounts
        .lines()
        .filter_map(Mount::parse)
        .filter(|mount| whole.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count()) // of equals the last, which lies above
        .map(|mount| mount.medium(sys))
        .unwrap_or_default();
    medium.is_dax = status.stx_attributes.bits() & ATTRIBUTE_DAX != 0;
    Ok(medium)
}

/// One line of `/proc/self/mountinfo` (proc(5)).
struct Mount<'a> {
    number: &'a str,
    point: PathBuf,
    options: String,
    file_system: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let place: Vec<_> = place.split(' ').collect();
        let kind: Vec<_> = kind.split(' ').collect();
        Some(Self {
            number: place.get(2)?,
            point: PathBuf::from(place.get(4)?.replace("\\040", " ")),
            options: format!("{},{}", place.get(5)?, kind.get(2)?),
            file_system: kind.first()?,
        })
    }

    fn medium(&self, sys: &Path) -> Medium {
        let device = fs::canonicalize(sys.join("dev/block").join(self.number)).ok();
        let name = device.as_deref().and_then(Path::file_name);
        let is_counted = device.as_deref().and_then(counted);
        Medium {
            file_system: self.file_system.to_owned(),
            options: self.options.clone(),
            device: name
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            is_dax: false,
            is_counted,
        }
    }
}

/// Whether a device's traffic is counted; a partition's queue is its disk's.
fn counted(device: &Path) -> Option<bool> {
    let of = |directory: &Path| fs::read_to_string(directory.join("queue/iostats")).ok();
    let flag = of(device).or_else(|| of(device.parent()?))?;
    Some(flag.trim() != "0")
}

fn text(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> LoadError {
    LoadError::File {
        doing: "read",
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc` and `/sys` of a machine with persistent memory whose traffic is not counted.
    fn machine(root: &Path, mounted: &Path, iostats: &str) {
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(
            "proc/vmstat",
            "pgpgin 4000\npgpgout 7\nworkingset_refault_file 12\n",
        );
        write(
            "proc/diskstats",
            " 259 0 pmem0 1 0 80 0 3 0 48 0 0 0 0\n 253 0 vda 9 0 100 0 5 0 200 0 0 0 0\n",
        );
        let mounts = format!(
            "20 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
             31 20 259:0 / {} rw,noatime - xfs /dev/pmem0 rw,dax=always\n",
            mounted.display()
        );
        write("proc/self/mountinfo", &mounts);
        if iostats == "1\n" {
            write("proc/self/io", "read_bytes: 0\n");
        }
        write("sys/devices/pmem0/queue/iostats", iostats);
        fs::create_dir_all(root.join("sys/dev/block")).expect("made");
        std::os::unix::fs::symlink(
            root.join("sys/devices/pmem0"),
            root.join("sys/dev/block/259:0"),
        )
        .expect("linked");
    }

    fn look(iostats: &str) -> FileCounters {
        let directory = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(directory.path()).expect("there");
        let mounted = root.join("mounted");
        fs::create_dir(&mounted).expect("made");
        fs::write(mounted.join("file"), "x").expect("written");
        machine(&root, &mounted, iostats);
        read_below(&root.join("proc"), &root.join("sys"), &mounted.join("file")).expect("read")
    }

    #[test]
    fn a_path_is_on_the_deepest_mount_above_it() {
        let counters = look("0\n");
        assert_eq!(counters.medium.file_system, "xfs");
        assert_eq!(counters.medium.device, "pmem0");
        assert_eq!(counters.medium.options, "rw,noatime,rw,dax=always");
        assert_eq!(counters.medium.is_counted, Some(false));
        assert_eq!(look("1\n").medium.is_counted, Some(true));
    }

    #[test]
    fn counters_are_read_under_their_kernel_names() {
        let counters = look("0\n");
        assert_eq!(counters.vmstat["pgpgin"], 4000);
        assert_eq!(counters.vmstat["workingset_refault_file"], 12);
        assert_eq!(
            counters.devices["vda"],
            Sectors {
                read: 100,
                written: 200
            }
        );
        assert_eq!(
            counters.devices["pmem0"],
            Sectors {
                read: 80,
                written: 48
            }
        );
    }

    #[test]
    fn a_kernel_without_accounting_is_told_from_one_that_counted_nothing() {
        assert!(look("1\n").accounts_processes);
        assert!(!look("0\n").accounts_processes);
    }

    #[test]
    fn this_machine_can_be_read_and_a_missing_path_is_named() {
        let counters = read(Path::new("/")).expect("any Linux");
        assert!(counters.vmstat.contains_key("pgpgin"));
        assert!(!counters.medium.file_system.is_empty());
        let error = read(Path::new("/does/not/exist")).expect_err("missing");
        assert!(error.to_string().contains("/does/not/exist"), "{error}");
    }
}
