//! The file systems of a guest.

use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fairtrial_protocol::boot::{Boot, BootMount};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};

/// This binary in the initial file system, and below the new root.
pub const BINARY: &str = "/fairtrial/agent";

/// Below the initial file system: the shared root, the layer in memory, and both together.
const SHARED: &str = "/shared";
const LAYER: &str = "/layer";
const ROOT: &str = "/root";

/// One request of 9p; larger ones are fewer, and the file system's default of 8 KiB makes every program slow to start.
const SHARE_OPTIONS: &str = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";

/// Disks appear after their driver has looked at them.
const APPEARS: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What every program expects of a kernel, by type, place below the root, and options.
const KERNEL: [(&str, &str, &str); 3] = [
    ("devtmpfs", "/dev", ""),
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
];

/// What programs of the host expect besides. A kernel without one of them can still measure.
const BESIDES: [(&str, &str, &str); 8] = [
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("configfs", "/sys/kernel/config", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
];

/// Mounts the kernel's own below `root`.
pub fn kernel(root: &str) -> anyhow::Result<()> {
    for (kind, at, options) in KERNEL {
        attach(
            kind,
            kind,
            &format!("{root}{at}"),
            MountFlags::empty(),
            options,
        )?;
    }
    Ok(())
}

/// Makes the shared root the root of this process, with everything on it that programs expect.
pub fn root(boot: &Boot) -> anyhow::Result<()> {
    attach("9p", &boot.root, SHARED, MountFlags::RDONLY, SHARE_OPTIONS)?;
    attach("tmpfs", "layer", LAYER, MountFlags::empty(), "mode=755")?;
    for part in ["upper", "work"] {
        fs::create_dir(format!("{LAYER}/{part}")).context("cannot make the layer's directories")?;
    }
    let layers = format!("lowerdir={SHARED},upperdir={LAYER}/upper,workdir={LAYER}/work");
    attach("overlay", "root", ROOT, MountFlags::empty(), &layers)?;
    for (_, at, _) in KERNEL {
        let target = format!("{ROOT}{at}");
        fs::create_dir_all(&target).with_context(|| format!("cannot make {target}"))?;
        mount_move(at, target.as_str()).with_context(|| format!("cannot move {at}"))?;
    }
    for (kind, at, options) in BESIDES {
        let _ = attach(
            kind,
            kind,
            &format!("{ROOT}{at}"),
            MountFlags::empty(),
            options,
        );
    }
    bind_agent().context("cannot bring the agent along")?;
    rustix::process::chdir(ROOT).context("cannot enter the new root")?;
    mount_move(".", "/").context("cannot move the new root")?;
    rustix::process::chroot(".").context("cannot take the new root")?;
    rustix::process::chdir("/").context("cannot enter the new root")?;
    boot.mounts.iter().try_for_each(disk)
}

/// The agent's binary stays where it is, in the initial file system: a copy would take as much memory again.
fn bind_agent() -> std::io::Result<()> {
    let target = format!("{ROOT}{BINARY}");
    fs::create_dir_all(Path::new(&target).parent().unwrap_or(Path::new(ROOT)))?;
    fs::File::create(&target)?;
    Ok(mount_bind(BINARY, target.as_str())?)
}

fn disk(each: &BootMount) -> anyhow::Result<()> {
    let limit = Instant::now() + APPEARS;
    while !Path::new(&each.source).exists() {
        if Instant::now() > limit {
            bail!("no device {}", each.source);
        }
        thread::sleep(LOOK_EVERY);
    }
    attach(
        &each.file_system,
        &each.source,
        &each.target,
        MountFlags::empty(),
        &each.options,
    )
}

fn attach(
    kind: &str,
    source: &str,
    target: &str,
    flags: MountFlags,
    options: &str,
) -> anyhow::Result<()> {
    let failure = || format!("cannot mount {kind} at {target} ({options})");
    fs::create_dir_all(target).with_context(failure)?;
    let options = CString::new(options).with_context(failure)?;
    mount(source, target, kind, flags, options.as_c_str()).with_context(failure)
}
