//! Facts, of a machine on paper and of this one.

use std::fs;
use std::path::Path;

use fairtrial_protocol::state::Facts;
use fairtrial_state::{facts, facts_below};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }
    root
}

fn facts_of(root: &Path) -> Facts {
    facts_below(root, &root.join("not/yet/made")).expect("told")
}

#[test]
fn a_virtual_machine_is_described_from_its_files() {
    let root = machine(&[
        (
            "proc/meminfo",
            "MemTotal:        1004040 kB\nSwapTotal:        524284 kB\n",
        ),
        ("proc/cmdline", "root=/dev/vda1 lru_gen=y\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 7R32\nflags\t\t: fpu sse hypervisor lm\n",
        ),
        (
            "etc/os-release",
            "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
        ),
        ("sys/devices/system/cpu/online", "0-2,5\n"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "kvm-clock\n",
        ),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        (
            "sys/class/dmi/id/product_name",
            "Standard PC (Q35 + ICH9, 2009)\n",
        ),
        (
            "proc/self/mountinfo",
            "1 0 8:1 / / rw - ext4 /dev/vda1 rw\n2 1 0:9 / /proc rw shared:2 - proc proc rw\n",
        ),
    ]);
    let facts = facts_of(root.path());
    assert_eq!(facts.memory_bytes, 1_004_040 * 1024);
    assert_eq!(facts.swap_bytes, 524_284 * 1024);
    assert_eq!(facts.kernel_command_line, "root=/dev/vda1 lru_gen=y");
    assert_eq!(facts.processor_model, "AMD EPYC 7R32");
    assert_eq!(facts.distribution, "Debian GNU/Linux 12 (bookworm)");
    assert_eq!(facts.processors, [0, 1, 2, 5]);
    assert_eq!(facts.clock_source, "kvm-clock");
    assert_eq!(facts.virtualisation, "qemu");
    assert_eq!(facts.file_system, "ext4");
}

#[test]
fn nodes_have_their_processors_and_a_machine_without_nodes_is_one() {
    let processors = ("sys/devices/system/cpu/online", "0-3\n");
    let without = machine(&[processors]);
    let one: Vec<_> = facts_of(without.path()).nodes.into_iter().collect();
    assert_eq!(one, [(0, vec![0, 1, 2, 3])]);
    let with = machine(&[
        processors,
        ("sys/devices/system/node/online", "0,2\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1,3\n"),
        ("sys/devices/system/node/node2/cpulist", "\n"),
    ]);
    let two: Vec<_> = facts_of(with.path()).nodes.into_iter().collect();
    assert_eq!(two, [(0, vec![0, 1, 3]), (2, vec![])]);
}

#[test]
fn a_whole_machine_rented_from_a_cloud_is_not_virtual() {
    let root = machine(&[
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu sse lm\n",
        ),
        ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
    ]);
    assert_eq!(facts_of(root.path()).virtualisation, "none");
}

#[test]
fn an_arm_processor_is_named_by_its_numbers() {
    let root = machine(&[(
        "proc/cpuinfo",
        "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
    )]);
    let facts = facts_of(root.path());
    assert_eq!(facts.processor_model, "implementer 0x41 part 0xd0c");
    assert_eq!(facts.virtualisation, "none");
}

#[test]
fn the_deepest_mount_wins_and_blanks_in_its_name_do_no_harm() {
    let root = machine(&[]);
    let directory = root
        .path()
        .canonicalize()
        .expect("there")
        .join("with blank");
    fs::create_dir(&directory).expect("made");
    let point = directory.to_str().expect("plain").replace(' ', "\\040");
    let mounts =
        format!("1 0 8:1 / / rw - ext4 /dev/vda rw\n2 1 8:2 / {point} rw - xfs /dev/vdb rw\n");
    fs::create_dir_all(root.path().join("proc/self")).expect("made");
    fs::write(root.path().join("proc/self/mountinfo"), mounts).expect("written");
    assert_eq!(
        facts_below(root.path(), &directory.join("state"))
            .expect("told")
            .file_system,
        "xfs"
    );
    assert_eq!(facts_of(root.path()).file_system, "ext4");
}

#[test]
fn what_is_not_told_is_unknown_and_no_failure() {
    let root = machine(&[]);
    let facts = facts_of(root.path());
    assert_eq!(facts.processor_model, "unknown");
    assert_eq!(facts.distribution, "unknown");
    assert_eq!(facts.file_system, "unknown");
    assert_eq!(facts.memory_bytes, 0);
    assert!(!facts.processors.is_empty());
}

#[test]
fn this_machine_tells_the_truth() {
    let facts = facts().expect("told");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("read");
    let version = fs::read_to_string("/proc/sys/kernel/version").expect("read");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("read");
    assert_eq!(
        (facts.kernel.as_str(), facts.kernel_version.as_str()),
        (release.trim(), version.trim())
    );
    assert_eq!(facts.host, host.trim());
    assert!(facts.memory_bytes > 0 && facts.free_bytes > 0 && !facts.processors.is_empty());
    assert_eq!(facts.user_id, rustix::process::geteuid().as_raw());
    assert!(facts.page_bytes.is_power_of_two());
    assert_eq!(facts.ticks_per_s, 100); // USER_HZ, fixed by the kernel's interface on x86 and ARM
    assert_ne!(facts.file_system, "unknown");
}

#[test]
fn processors_that_a_process_is_not_bound_to_are_there_for_others() {
    let before = facts().expect("told").processors;
    let first = before[0] as usize;
    let bound = std::thread::spawn(move || {
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).expect("bound");
        let told = facts().expect("told").processors;
        (told, sched_getaffinity(None).expect("told") == one)
    });
    assert_eq!(bound.join().expect("ended"), (before, true));
}

#[test]
fn what_no_kernel_says_is_no_work_without_end() {
    let root = machine(&[
        ("proc/meminfo", "MemTotal: 18446744073709551615 kB\n"),
        ("sys/devices/system/cpu/online", "0-4294967295\n"),
    ]);
    let facts = facts_of(root.path());
    assert_eq!(facts.memory_bytes, u64::MAX);
    assert_eq!(facts.processors.len(), 1 << 16);
}
