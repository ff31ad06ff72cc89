//! Processors that a guest boots without: while it boots they would only wait for each other.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Set by the control plane where it has told the kernel to begin with one.
const ASKED: &str = "FAIRTRIAL_PROCESSORS";
const PROCESSORS: &str = "/sys/devices/system/cpu";

/// Starts all that are not running, if that was asked for.
pub fn start() -> anyhow::Result<()> {
    if env::var_os(ASKED).is_none() {
        return Ok(());
    }
    start_below(Path::new(PROCESSORS))
}

fn start_below(processors: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(processors).context("no processors in sysfs")? {
        let switch = entry?.path().join("online"); // the first has none, and neither has what is no processor
        if fs::read_to_string(&switch).is_ok_and(|state| state.trim() == "0") {
            fs::write(&switch, "1")
                .with_context(|| format!("cannot write {}", switch.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_started_and_is_not_is_started() {
        let processors = tempfile::tempdir().expect("a directory");
        for (name, state) in [("cpu0", None), ("cpu1", Some("0\n")), ("cpu2", Some("1\n"))] {
            fs::create_dir(processors.path().join(name)).expect("made");
            if let Some(state) = state {
                fs::write(processors.path().join(name).join("online"), state).expect("written");
            }
        }
        fs::write(processors.path().join("possible"), "0-2\n").expect("written");
        start_below(processors.path()).expect("started");
        let read = |name: &str| fs::read_to_string(processors.path().join(name).join("online"));
        assert!(read("cpu0").is_err());
        assert_eq!(read("cpu1").expect("there"), "1");
        assert_eq!(read("cpu2").expect("there"), "1\n");
    }
}
