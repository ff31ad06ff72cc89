//! Facts of a place. What a kernel or a container does not tell is `unknown`, never a failure: facts describe, and
//! nothing is refused for them here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use fairtrial_protocol::state::Facts;
use rustix::fs::statvfs;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::geteuid;
use rustix::system::uname;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::directory::state_directory;
use crate::error::StateError;
use crate::groups;
use crate::settle::kibibytes;

const UNKNOWN: &str = "unknown";
const KIBIBYTE: u64 = 1024;
/// Of processors and of nodes, more than any kernel has (`NR_CPUS` is 8192 at most).
const MOST_NUMBERS: usize = 1 << 16;

/// What the firmware's tables of virtual machines say, and what people call those (systemd-detect-virt(1)).
const VENDORS: [(&str, &str); 9] = [
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("innotek", "oracle"),
    ("VirtualBox", "oracle"),
    ("Microsoft Corporation", "microsoft"),
    ("Amazon EC2", "amazon"),
    ("Google", "google"),
    ("Xen", "xen"),
];

/// Facts of this machine.
pub fn facts() -> Result<Facts, StateError> {
    let root = Path::new("/");
    let facts = facts_below(root, state_directory().as_deref().unwrap_or(root))?;
    Ok(Facts {
        processors: allowed(facts.processors),
        ..facts
    })
}

/// Those that a control group lets this process choose (cpuset(7)); where the kernel does not say, all of them. What
/// the process itself is bound to (taskset(1), `isolcpus`) does not count: a thread asks for all, and ends.
fn allowed(processors: Vec<u32>) -> Vec<u32> {
    let numbers = processors.clone();
    let asked = move || {
        let mut all = CpuSet::new();
        numbers
            .iter()
            .map(|&number| number as usize)
            .filter(|&number| number < CpuSet::MAX_CPU)
            .for_each(|number| all.set(number));
        sched_setaffinity(None, &all).ok()?;
        sched_getaffinity(None).ok()
    };
    let thread = thread::Builder::new().spawn(asked).ok();
    match thread.and_then(|thread| thread.join().ok()?) {
        Some(set) => within(processors, &set),
        None => processors,
    }
}

/// The processors that a set holds, and those that it cannot hold.
fn within(processors: Vec<u32>, set: &CpuSet) -> Vec<u32> {
    let holds = |&number: &u32| number as usize >= CpuSet::MAX_CPU || set.is_set(number as usize);
    processors.into_iter().filter(holds).collect()
}

/// [`facts`] by a root directory that may be a tree of one's own. System calls still tell about this machine.
pub fn facts_below(root: &Path, state_directory: &Path) -> Result<Facts, StateError> {
    let system = uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let meminfo = content(root, "proc/meminfo");
    let processor = content(root, "proc/cpuinfo");
    let directory = existing(state_directory);
    let space = statvfs(&directory).map_err(|error| StateError::read(&directory)(error.into()))?;
    Ok(Facts {
        host: text(system.nodename()),
        kernel: text(system.release()),
        kernel_version: text(system.version()),
        kernel_command_line: content(root, "proc/cmdline"),
        machine: text(system.machine()),
        distribution: distribution(&content(root, "etc/os-release")),
        processors: processors(&content(root, "sys/devices/system/cpu/online")),
        processor_model: known(processor_model(&processor)),
        memory_bytes: bytes(&meminfo, "MemTotal"),
        swap_bytes: bytes(&meminfo, "SwapTotal"),
        virtualisation: virtualisation(root, &processor),
        clock_source: known(content(
            root,
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
        )),
        file_system: known(file_system(
            &content(root, "proc/self/mountinfo"),
            &directory,
        )),
        free_bytes: space.f_bavail * space.f_frsize,
        user_id: geteuid().as_raw(),
        ticks_per_s: clock_ticks_per_second(),
        page_bytes: page_size() as u64,
        nodes: nodes(root),
        controllers: groups::controllers(root),
    })
}

/// A file's content without surrounding white space; empty if it cannot be read.
fn content(root: &Path, path: &str) -> String {
    fs::read(root.join(path))
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .unwrap_or_default()
}

fn bytes(meminfo: &str, name: &str) -> u64 {
    kibibytes(meminfo, name)
        .unwrap_or(0)
        .saturating_mul(KIBIBYTE)
}

fn known(value: String) -> String {
    if value.is_empty() {
        UNKNOWN.to_owned()
    } else {
        value
    }
}

/// The nearest directory above that exists: state is made when it is first needed.
fn existing(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|ancestor| ancestor.canonicalize().ok())
        .unwrap_or_else(|| PathBuf::from("/"))
}

fn distribution(os_release: &str) -> String {
    let value = |key: &str| {
        os_release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    known(
        value("PRETTY_NAME")
            .unwrap_or_default()
            .trim_matches(['"', '\''])
            .to_owned(),
    )
}

/// NUMA nodes that are online with their processors; kernels without them have one of all.
fn nodes(root: &Path) -> BTreeMap<u32, Vec<u32>> {
    let directory = "sys/devices/system/node";
    let online = listed(&content(root, &format!("{directory}/online")));
    if online.is_empty() {
        let all = processors(&content(root, "sys/devices/system/cpu/online"));
        return BTreeMap::from([(0, all)]);
    }
    let of_node = |node: &u32| listed(&content(root, &format!("{directory}/node{node}/cpulist")));
    online.iter().map(|node| (*node, of_node(node))).collect()
}

/// `0-3,8` as numbers.
fn listed(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    let numbers = text.split(',').filter_map(range).flatten();
    numbers.take(MOST_NUMBERS).collect()
}

/// Processors that are online, by the kernel's list or as many as may be used.
fn processors(online: &str) -> Vec<u32> {
    let listed = listed(online);
    if listed.is_empty() {
        let count = thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        return (0..count).collect();
    }
    listed
}

/// x86 has names; ARM has numbers of implementer and part.
fn processor_model(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim())
            .next()
    };
    let numbers = || {
        Some(format!(
            "implementer {} part {}",
            value("CPU implementer")?,
            value("CPU part")?
        ))
    };
    value("model name")
        .or_else(|| value("Model"))
        .map(str::to_owned)
        .or_else(numbers)
        .unwrap_or_default()
}

fn virtualisation(root: &Path, cpuinfo: &str) -> String {
    let hypervisor = content(root, "sys/hypervisor/type");
    if !hypervisor.is_empty() {
        return hypervisor;
    }
    // Clouds rent whole machines too, with the same vendor in their tables; x86 says which it is.
    let is_x86 = cpuinfo.contains("\nflags");
    let has_flag = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    if is_x86 && !has_flag {
        return "none".to_owned();
    }
    let tables = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"]
        .map(|table| content(root, &format!("sys/class/dmi/id/{table}")))
        .join("\n");
    let vendor = VENDORS
        .iter()
        .find(|(marker, _)| tables.contains(marker))
        .map(|(_, name)| (*name).to_owned());
    vendor.unwrap_or_else(|| if has_flag { UNKNOWN } else { "none" }.to_owned())
}

/// The type of the deepest mount that holds the directory; of several on one point, the last hides the others.
fn file_system(mountinfo: &str, directory: &Path) -> String {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(left.split(' ').nth(4)?));
        Some((point, right.split(' ').next()?.to_owned()))
    };
    let holding = mountinfo
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| directory.starts_with(point));
    holding
        .max_by_key(|(point, _)| point.components().count())
        .map(|(_, kind)| kind)
        .unwrap_or_default()
}

/// proc(5) writes blanks and backslashes in octal.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::{CpuSet, within};

    #[test]
    fn processors_outside_of_a_set_are_left_out_unless_no_set_can_hold_them() {
        let mut set = CpuSet::new();
        set.set(1);
        set.set(3);
        assert_eq!(within(vec![0, 1, 2, 3, 4096], &set), [1, 3, 4096]);
    }
}
