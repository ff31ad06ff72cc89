//! A tree of files in one input: the content of each follows a line `=== PATH`. What follows a line `=== later` is what
//! the kernel says the next time.

use std::fs;
use std::path::Path;

/// The files there may be; whatever else is named is left out, and nothing is written elsewhere.
pub const FILES: [&str; 23] = [
    "stat",
    "meminfo",
    "vmstat",
    "diskstats",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
    "1/stat",
    "1/status",
    "1/io",
    "1/task/1/children",
    "2/stat",
    "self/mountinfo",
    "proc/meminfo",
    "proc/cpuinfo",
    "proc/self/mountinfo",
    "proc/self/mounts",
    "etc/os-release",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/hypervisor/type",
];

const LATER: &[u8] = b"\n=== later\n";

/// What an input says first, and what it says the next time.
pub fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input
        .windows(LATER.len())
        .position(|window| window == LATER);
    at.map_or((input, &[]), |at| {
        (&input[..at], &input[at + LATER.len()..])
    })
}

/// Writes the files of a half below `root`.
pub fn write(root: &Path, half: &[u8]) {
    let mut file: Option<(&str, Vec<u8>)> = None;
    for line in half.split_inclusive(|byte| *byte == b'\n') {
        let name = line.strip_prefix(b"=== ").map(<[u8]>::trim_ascii);
        if let Some(name) = name {
            put(root, file.take());
            let known = FILES.iter().find(|known| known.as_bytes() == name);
            file = known.map(|known| (*known, Vec::new()));
        } else if let Some((_, content)) = &mut file {
            content.extend_from_slice(line);
        }
    }
    put(root, file);
}

fn put(root: &Path, file: Option<(&str, Vec<u8>)>) {
    let Some((name, content)) = file else { return };
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, content).expect("written");
}

/// Removes what an earlier input has left.
pub fn clear(root: &Path) {
    for name in FILES {
        let _ = fs::remove_file(root.join(name)); // most inputs have few of them
    }
}
