//! `write-setting`: what root writes for an ordinary user's agent, by a rule of sudo(8) for this subcommand alone.
//!
//! Owns the list of files. None of them gives its writer more than another way for this machine to be slow: not the
//! programs that the kernel starts (`kernel.core_pattern`, `uevent_helper`), not memory that others would lack
//! (`ksm/run`, which takes merged pages apart), and not their end for want of memory (`lru_gen/min_ttl_ms`).

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::{Context as _, bail, ensure};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// `*` stands for one name.
const FILES: [&str; 21] = [
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_expire_centisecs",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/page-cluster",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/watermark_scale_factor",
    "/proc/sys/vm/zone_reclaim_mode",
    "/sys/block/*/queue/nr_requests",
    "/sys/block/*/queue/read_ahead_kb",
    "/sys/block/*/queue/scheduler",
    "/sys/devices/system/cpu/*/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];
const VALUE_BYTES: usize = 64;
/// Held by a session of root's while it has settings changed; not where a variable says, which its caller may set.
const ROOTS_LOCK: &str = "/run/fairtrial/machine.lock";

/// Writes a setting's value.
pub fn run(path: &str, value: &str) -> anyhow::Result<()> {
    ensure!(
        is_allowed(path),
        "{path} is not among the files that it writes: {}",
        FILES.join(", ")
    );
    ensure!(
        is_plain(value),
        "{value:?} is not a setting's value: expected up to {VALUE_BYTES} letters, digits and `_-.:+ `"
    );
    let _held = not_roots()?;
    let mut file = File::options()
        .write(true)
        .truncate(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .with_context(|| format!("cannot open {path}"))?;
    file.write_all(value.as_bytes())
        .with_context(|| format!("cannot write {value:?} to {path}"))
}

/// Keeps a session of root's from beginning while this writes.
fn not_roots() -> anyhow::Result<Option<File>> {
    let lock = match File::open(ROOTS_LOCK) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None), // root changed nothing since the boot
        opened => opened.context("cannot open root's lock")?,
    };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {
            bail!("a session of root's has settings of this machine changed: wait for its end")
        }
        locked => locked.context("cannot lock root's lock")?,
    }
    Ok(Some(lock))
}

fn is_allowed(path: &str) -> bool {
    let given: Vec<&str> = path.split('/').collect();
    FILES.iter().any(|file| {
        let names: Vec<&str> = file.split('/').collect();
        names.len() == given.len()
            && names.iter().zip(&given).all(|(name, given)| match *name {
                "*" => is_name(given),
                name => name == *given,
            })
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-!".contains(&byte))
}

fn is_plain(value: &str) -> bool {
    (1..=VALUE_BYTES).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:+ ".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{is_allowed, is_plain};

    #[test]
    fn only_the_files_of_the_list_are_written() {
        for path in [
            "/proc/sys/vm/swappiness",
            "/sys/block/nvme0n1/queue/scheduler",
            "/sys/devices/system/cpu/cpu12/cpufreq/scaling_governor",
        ] {
            assert!(is_allowed(path), "{path}");
        }
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/sys/kernel/uevent_helper",
            "/etc/shadow",
            "/sys/kernel/mm/ksm/run",
            "/sys/kernel/mm/lru_gen/min_ttl_ms",
            "/proc/sys/vm/../kernel/core_pattern",
            "/proc/sys/vm/swappiness/",
            "/proc/sys/vm//swappiness",
            "proc/sys/vm/swappiness",
            "/sys/block/../queue/scheduler",
            "/sys/block/./queue/scheduler",
            "/sys/block//queue/scheduler",
            "/sys/block/a/b/queue/scheduler",
            "/sys/block/*/queue/scheduler",
            "",
        ] {
            assert!(!is_allowed(path), "{path}");
        }
    }

    #[test]
    fn a_value_is_one_short_line() {
        assert!(
            [
                "10",
                "madvise",
                "defer+madvise",
                "5:y",
                "x".repeat(64).as_str()
            ]
            .iter()
            .all(|value| is_plain(value))
        );
        assert!(
            !["", "1\n2", "a|b", "a/b", "x".repeat(65).as_str()]
                .iter()
                .any(|value| is_plain(value))
        );
    }
}
