//! Where the agent keeps its state.

use std::env;
use std::path::{Path, PathBuf, absolute};

use rustix::process::geteuid;

/// Names the directory outright.
const VARIABLE: &str = "FAIRTRIAL_STATE_DIRECTORY";
/// The same for the machine's lock, for tests that stand for several machines.
const MACHINE_VARIABLE: &str = "FAIRTRIAL_MACHINE_DIRECTORY";
/// Emptied at every boot, as are the settings that the lock is about.
const MACHINE: &str = "/run/fairtrial";

/// Where the agent keeps its state, an absolute path: `$FAIRTRIAL_STATE_DIRECTORY`; else `/var/lib/fairtrial` for root; else `fairtrial`
/// below `$XDG_STATE_HOME` or `~/.local/state` (XDG base directory specification). None for a user without a home: a
/// directory that others may write to is no place for what the next agent does as this user.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    chosen(variable, geteuid().is_root())
}

/// Where the lock is that all of a user's sessions on this machine share, whatever their state directory: only root
/// changes what others see. Root's is `/run/fairtrial`; a user's is the state directory that no variable chose, or
/// `state_directory` for one without a home.
#[must_use]
pub fn machine_directory(state_directory: &Path) -> PathBuf {
    machine(variable, geteuid().is_root(), state_directory)
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn machine(
    variable: impl Fn(&str) -> Option<PathBuf>,
    is_root: bool,
    state_directory: &Path,
) -> PathBuf {
    if let Some(directory) = variable(MACHINE_VARIABLE) {
        return absolute(&directory).unwrap_or(directory);
    }
    if is_root {
        return PathBuf::from(MACHINE);
    }
    let unchosen = |name: &str| variable(name).filter(|_| name != VARIABLE);
    chosen(unchosen, false).unwrap_or_else(|| state_directory.to_owned())
}

fn chosen(variable: impl Fn(&str) -> Option<PathBuf>, is_root: bool) -> Option<PathBuf> {
    if let Some(directory) = variable(VARIABLE) {
        return Some(absolute(&directory).unwrap_or(directory));
    }
    if is_root {
        return Some(PathBuf::from("/var/lib/fairtrial"));
    }
    // The specification wants a relative path there ignored.
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || {
        variable("HOME")
            .filter(|path| path.is_absolute())
            .map(|home| home.join(".local/state"))
    };
    state.or_else(home).map(|state| state.join("fairtrial"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{chosen, machine, variable};

    fn with(variables: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<PathBuf> {
        move |name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| PathBuf::from(value))
        }
    }

    fn directory(variable: impl Fn(&str) -> Option<PathBuf>, is_root: bool) -> PathBuf {
        chosen(variable, is_root).expect("a directory")
    }

    #[test]
    fn an_empty_variable_is_none() {
        assert_eq!(
            variable("PATH"),
            std::env::var_os("PATH").map(PathBuf::from)
        );
        assert_eq!(variable("CARGO_PKG_VERSION_PRE"), None, "empty in a test");
    }

    #[test]
    fn the_variable_comes_first_even_for_root() {
        let variables = with(&[
            ("FAIRTRIAL_STATE_DIRECTORY", "/srv/state"),
            ("HOME", "/home/a"),
        ]);
        assert_eq!(directory(&variables, true), Path::new("/srv/state"));
        assert_eq!(directory(&variables, false), Path::new("/srv/state"));
    }

    #[test]
    fn a_relative_variable_counts_from_the_working_directory() {
        let there = directory(with(&[("FAIRTRIAL_STATE_DIRECTORY", "state")]), false);
        assert_eq!(
            there,
            std::env::current_dir().expect("directory").join("state")
        );
    }

    #[test]
    fn root_has_a_system_directory_and_users_their_own() {
        assert_eq!(
            directory(with(&[("HOME", "/root")]), true),
            Path::new("/var/lib/fairtrial")
        );
        assert_eq!(
            directory(with(&[("HOME", "/home/a")]), false),
            Path::new("/home/a/.local/state/fairtrial")
        );
        let variables = with(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/data/a")]);
        assert_eq!(directory(variables, false), Path::new("/data/a/fairtrial"));
    }

    #[test]
    fn a_relative_state_home_is_ignored() {
        let variables = with(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "state")]);
        assert_eq!(
            directory(variables, false),
            Path::new("/home/a/.local/state/fairtrial")
        );
    }

    #[test]
    fn all_state_directories_of_a_user_share_a_machine() {
        let state = Path::new("/srv/state");
        let variables = with(&[
            ("FAIRTRIAL_STATE_DIRECTORY", "/srv/state"),
            ("HOME", "/home/a"),
        ]);
        assert_eq!(
            machine(&variables, true, state),
            Path::new("/run/fairtrial")
        );
        assert_eq!(
            machine(&variables, false, state),
            Path::new("/home/a/.local/state/fairtrial")
        );
        assert_eq!(machine(with(&[]), false, state), state);
        let variables = with(&[("FAIRTRIAL_MACHINE_DIRECTORY", "/tmp/one")]);
        assert_eq!(machine(variables, true, state), Path::new("/tmp/one"));
    }

    #[test]
    fn a_user_without_a_home_has_none() {
        assert_eq!(chosen(with(&[]), false), None);
        assert_eq!(chosen(with(&[("HOME", "here")]), false), None);
    }
}
