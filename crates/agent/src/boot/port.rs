//! The virtio-serial port that carries the stream.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fairtrial_protocol::boot::PORT;

const PORTS: &str = "/sys/class/virtio-ports";

/// The device says its ports' names a moment after its module is loaded; emulated machines are slow.
const APPEARS: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Opens the port, for reading and writing.
pub fn open() -> anyhow::Result<File> {
    let limit = Instant::now() + APPEARS;
    loop {
        if let Some(device) = find(Path::new(PORTS)) {
            return File::options()
                .read(true)
                .write(true)
                .open(&device)
                .with_context(|| format!("cannot open {}", device.display()));
        }
        if Instant::now() > limit {
            bail!("no virtio port is named {PORT}");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The device of the port, if it is there.
fn find(ports: &Path) -> Option<PathBuf> {
    fs::read_dir(ports).ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        (name.trim() == PORT).then(|| Path::new("/dev").join(entry.file_name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_its_name_among_others() {
        let ports = tempfile::tempdir().expect("a directory");
        for (device, name) in [("vport1p1", "other\n"), ("vport1p2", "fairtrial\n")] {
            fs::create_dir(ports.path().join(device)).expect("made");
            fs::write(ports.path().join(device).join("name"), name).expect("written");
        }
        assert_eq!(find(ports.path()), Some(PathBuf::from("/dev/vport1p2")));
    }

    #[test]
    fn a_port_whose_name_is_not_there_yet_is_not_found() {
        let ports = tempfile::tempdir().expect("a directory");
        fs::create_dir(ports.path().join("vport1p1")).expect("made");
        assert_eq!(find(ports.path()), None);
        assert_eq!(find(&ports.path().join("absent")), None);
    }
}
