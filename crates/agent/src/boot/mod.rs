//! The first process of a virtual machine: brings its file systems up, then is the agent until the stream ends.
//!
//! The root is the host's own, shared read-only, below a layer in the guest's memory: what a trial starts there is what
//! the host has installed, and nothing it writes outlives the guest.

mod file_systems;
mod loopback;
mod modules;
mod port;
mod processors;
mod swap;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use fairtrial_protocol::boot::{Boot, DOCUMENT, READY};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, wait};
use rustix::system::{RebootCommand, reboot, sethostname};

/// Files a process may have open, the kernel's own limit: nobody has raised it for servers as an init system would.
const OPEN_FILES: u64 = 1 << 20;

/// Runs the guest to its end and switches it off: the first process must not return, or the kernel panics.
///
/// Anywhere else than in a guest this does nothing, because it ends with switching the machine off.
pub fn run() -> anyhow::Result<()> {
    if !rustix::process::getpid().is_init() || !Path::new(DOCUMENT).exists() {
        bail!("only the first process of a virtual machine that fairtrial has made may do this");
    }
    if let Err(error) = guest() {
        console(&format!("the guest did not come up: {error:#}"));
    }
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).context("cannot switch the guest off")
}

fn guest() -> anyhow::Result<()> {
    file_systems::kernel("")?;
    let document =
        fs::read_to_string(DOCUMENT).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let boot: Boot = serde_json::from_str(&document).context("cannot understand boot.json")?;
    for module in &boot.modules {
        modules::load(Path::new(module))?;
        fs::remove_file(module)?; // its memory is the guest's
    }
    let port = port::open()?;
    file_systems::root(&boot)?;
    sethostname(boot.host.as_bytes()).context("cannot set the host name")?;
    if let Err(error) = loopback::up() {
        console(&format!("no loopback network: {error}"));
    }
    for device in &boot.swaps {
        swap::on(device).with_context(|| format!("cannot swap to {device}"))?;
    }
    let files = Rlimit {
        current: Some(OPEN_FILES),
        maximum: Some(OPEN_FILES),
    };
    setrlimit(Resource::Nofile, files).context("cannot raise the limit of open files")?;
    processors::start().context("a processor did not start")?; // a trial on fewer would measure something else
    console(READY);
    serve(&port, &boot)
}

/// Supervises in a child, so that this process can collect what nobody else waits for.
fn serve(port: &fs::File, boot: &Boot) -> anyhow::Result<()> {
    let child = Command::new(file_systems::BINARY)
        .arg("serve")
        .env("FAIRTRIAL_STATE_DIRECTORY", &boot.state_directory)
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", "/root")
        .stdin(Stdio::from(port.try_clone()?))
        .stdout(Stdio::from(port.try_clone()?))
        .spawn()
        .context("cannot start the agent")?;
    let agent = Pid::from_child(&child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) if pid == agent => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the agent"),
        }
    }
}

/// The console's last lines are what a control plane has of a guest that failed.
fn console(message: &str) {
    let _ = fs::write("/dev/console", format!("fairtrial: {message}\n"));
}
