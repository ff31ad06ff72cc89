//! Kernel parameters in pairs, of which writing one zeroes the other (Documentation/admin-guide/sysctl/vm.rst): the one
//! that is 0 because its partner counts is restored through its partner. Written back, the 0 is refused or, worse, taken.
//! And files that the kernel changes whenever another is written, and does not change back with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::serve::failure::Failure;

const PAIRS: [(&str, &str); 3] = [
    ("dirty_bytes", "dirty_ratio"),
    ("dirty_background_bytes", "dirty_background_ratio"),
    ("overcommit_kbytes", "overcommit_ratio"),
];
const DIRECTORY: &str = "sys/vm";

/// A file and the one that changes with it, both by how they end: a device's number of requests with its scheduler
/// (block/elevator.c), a processor's energy preference with its governor (drivers/cpufreq/amd-pstate.c), the NMI
/// watchdog with the switch of all watchdogs (kernel/watchdog.c).
const BESIDE: [(&str, &str); 3] = [
    ("/queue/scheduler", "/queue/nr_requests"),
    ("/scaling_governor", "/energy_performance_preference"),
    ("/sys/kernel/watchdog", "/sys/kernel/nmi_watchdog"),
];

/// What switches huge pages on, for all memory, one of their sizes or shared memory, changes the free memory that the
/// kernel keeps (`start_stop_khugepaged` in mm/khugepaged.c).
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/";
const SWITCHES: [&str; 2] = ["/enabled", "/shmem_enabled"];
const FREE_MEMORY: &str = "/proc/sys/vm/min_free_kbytes";

/// The partner of a file that is 0 now, and the partner's value, if it is the one that counts.
pub fn partner(path: &str, content: &str) -> Result<Option<(String, String)>, Failure> {
    let Some(other) = sibling(Path::new(path)) else {
        return Ok(None);
    };
    if content.trim() != "0" || !other.exists() {
        return Ok(None);
    }
    let other = other.to_string_lossy().into_owned();
    let value =
        fs::read_to_string(&other).map_err(|cause| Failure::system("read", &other, cause))?;
    Ok((value.trim() != "0").then_some((other, value)))
}

/// The file that the kernel changes whenever this one is written, and its content. One that cannot be read cannot be
/// restored, which is no reason to refuse this one: drivers give no preference that is none of those with a name.
pub fn overwritten(path: &str) -> Option<(String, String)> {
    let with_huge_pages = || {
        let (root, _) = path.split_once(HUGE_PAGES)?;
        let switches = SWITCHES.iter().any(|name| path.ends_with(name));
        switches.then(|| format!("{root}{FREE_MEMORY}"))
    };
    let beside = BESIDE
        .iter()
        .find_map(|(file, other)| Some(format!("{}{other}", path.strip_suffix(file)?)))
        .or_else(with_huge_pages)?;
    let value = fs::read_to_string(&beside).ok()?;
    Some((beside, value))
}

fn sibling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let other = PAIRS.iter().find_map(|&(one, other)| match name {
        _ if name == one => Some(other),
        _ if name == other => Some(one),
        _ => None,
    })?;
    path.parent()?
        .ends_with(DIRECTORY)
        .then(|| path.with_file_name(other))
}
