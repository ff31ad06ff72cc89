//! Kernel modules, without modprobe: the control plane has put them in order.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use rustix::io::Errno;
use rustix::system::finit_module;

/// Loads one; a module that is built in or there already is no error.
pub fn load(path: &Path) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("no module {}", path.display()))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot load {}", path.display())),
    }
}
