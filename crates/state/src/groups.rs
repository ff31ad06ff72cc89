//! Controllers of control groups: which there are, and where (cgroups(7)).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairtrial_protocol::state::Controller;

/// What settings ask for; the others are not looked at.
const WANTED: [&str; 4] = ["memory", "io", "blkio", "cpuset"];

/// Controllers by name, from the mounts below a root directory. One that is in a hierarchy of version 1 is not in that
/// of version 2.
pub fn controllers(root: &Path) -> BTreeMap<String, Controller> {
    let mounts = fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
    let mut controllers = BTreeMap::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, directory, kind, options, ..] = fields[..] else {
            continue;
        };
        match kind {
            "cgroup" => {
                for name in options.split(',').filter(|name| WANTED.contains(name)) {
                    controllers.insert(name.to_owned(), controller(1, directory, true));
                }
            }
            "cgroup2" => {
                let names = |file: &str| words(root, &format!("{directory}/{file}"));
                let enabled = names("cgroup.subtree_control");
                for name in names("cgroup.controllers") {
                    if WANTED.contains(&name.as_str()) {
                        let is_enabled = enabled.contains(&name);
                        controllers.insert(name, controller(2, directory, is_enabled));
                    }
                }
            }
            _ => {}
        }
    }
    controllers
}

fn controller(version: u8, directory: &str, enabled: bool) -> Controller {
    Controller {
        version,
        directory: directory.to_owned(),
        enabled,
    }
}

fn words(root: &Path, path: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(path.trim_start_matches('/'))).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::controllers;

    #[test]
    fn hierarchies_of_both_versions_are_told_apart() {
        let root = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        put(
            "proc/self/mounts",
            "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
             cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
             broken\n",
        );
        put(
            "sys/fs/cgroup/unified/cgroup.controllers",
            "cpuset io pids\n",
        );
        put("sys/fs/cgroup/unified/cgroup.subtree_control", "io\n");
        let controllers = controllers(root.path());
        let listed: Vec<_> = controllers
            .iter()
            .map(|(name, each)| (name.as_str(), each.version, each.enabled))
            .collect();
        assert_eq!(
            listed,
            [("cpuset", 2, false), ("io", 2, true), ("memory", 1, true)]
        );
        assert_eq!(controllers["memory"].directory, "/sys/fs/cgroup/memory");
    }

    #[test]
    fn a_place_without_groups_has_none() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(controllers(root.path()).is_empty());
    }
}
