//! How a child is set up between fork and exec.
#![allow(
    unsafe_code,
    reason = "pre_exec runs between fork and exec, where only async-signal-safe calls are allowed"
)]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{
    CpuSet, sched_getaffinity, sched_setaffinity, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::serve::failure::Failure;
use crate::serve::processes::descendants::MARK;
use crate::serve::processes::user::{self, Credentials};

/// The program name that means this very binary.
pub const OWN_NAME: &str = "fairtrial-agent";

/// What a child keeps of the agent's environment. The rest may hold secrets of whoever started the agent, and decides
/// what a program loads (`LD_PRELOAD`, `PYTHONPATH`).
const KEPT: [&str; 11] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSH_CONNECTION",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];
/// How the names of further variables begin that it keeps.
const KEPT_FAMILIES: [&str; 3] = ["FAIRTRIAL_", "LC_", "XDG_"];
/// Names more of them, separated by commas, or all: `*`. Set by the user, never by a study.
const KEEP: &str = "FAIRTRIAL_ENVIRONMENT";

/// What a child is before it runs its program.
#[derive(Default)]
pub struct Setup {
    /// Run as this user.
    pub user: Option<Credentials>,
    /// Processors it may use.
    pub processors: Option<CpuSet>,
    /// Out-of-memory score to give back.
    pub score: Option<String>,
    /// `cgroup.procs` of the groups it joins, open for writing.
    pub groups: Vec<File>,
}

/// A command for a program and its arguments, in a process group of its own, marked, with `/dev/null` as input.
pub fn command(argv: &[String], session: &str) -> Result<Command, Failure> {
    let [program, arguments @ ..] = argv else {
        return Err(Failure::Invalid("argv is empty".to_owned()));
    };
    let mut command = if program == OWN_NAME {
        let mut own = Command::new("/proc/self/exe");
        own.arg0(OWN_NAME);
        own
    } else {
        Command::new(program)
    };
    let more = env::var(KEEP).unwrap_or_default();
    command
        .args(arguments)
        .env_clear()
        .envs(env::vars_os().filter(|(name, _)| is_kept(name, &more)))
        .env(MARK, session)
        .env("PATH", search_path(env::var_os("PATH")))
        .stdin(Stdio::null())
        .process_group(0);
    Ok(command)
}

fn is_kept(name: &OsStr, more: &str) -> bool {
    name.to_str().is_some_and(|name| {
        KEPT.contains(&name)
            || KEPT_FAMILIES.iter().any(|each| name.starts_with(each))
            || more
                .split(',')
                .any(|each| each == name && !name.is_empty() || each == "*")
    })
}

/// Where programs are looked for: as here, and where administrators have theirs, which a plain login leaves out.
fn search_path(own: Option<OsString>) -> OsString {
    let mut path = own.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    for directory in ["/usr/sbin", "/sbin"] {
        if !env::split_paths(&path).any(|known| known == Path::new(directory)) {
            path.push(":");
            path.push(directory);
        }
    }
    path
}

/// Lets a child set itself up before it runs its program.
pub fn set_up(command: &mut Command, setup: Setup) {
    let agent = getpid();
    let hook = move || set_up_self(&setup, agent);
    // SAFETY: the hook makes system calls only; it neither allocates nor locks, as all it needs was made before.
    unsafe { command.pre_exec(hook) };
}

fn set_up_self(setup: &Setup, agent: Pid) -> io::Result<()> {
    if let Some(score) = &setup.score {
        let file = open(c"/proc/self/oom_score_adj", OFlags::WRONLY, Mode::empty())?;
        rustix::io::write(file, score.as_bytes())?;
    }
    // Before the affinity, which a move to another cpuset would undo, and before the user, who may not.
    for group in &setup.groups {
        rustix::io::write(group, b"0")?; // the writer itself (cgroups(7))
    }
    if let Some(processors) = &setup.processors {
        sched_setaffinity(None, processors)?;
        if sched_getaffinity(None)? != *processors {
            return Err(io::Error::from(Errno::INVAL)); // the kernel leaves out what is not there (sched_setaffinity(2))
        }
    }
    if let Some(user) = &setup.user {
        set_thread_groups(&user.groups)?;
        set_thread_res_gid(user.group, user.group, user.group)?;
        set_thread_res_uid(user.id, user.id, user.id)?;
        set_no_new_privs(true)?; // a set-uid program must not be its way back
    }
    // After the change of user, which clears it (prctl(2)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(agent) {
        Ok(())
    } else {
        Err(io::ErrorKind::Interrupted.into()) // the agent died before the line above
    }
}

/// What a child writes to to join its groups.
pub fn groups(directories: &[String]) -> Result<Vec<File>, Failure> {
    let open = |directory: &String| {
        let path = Path::new(directory).join("cgroup.procs");
        File::options()
            .write(true)
            .open(&path)
            .map_err(|cause| Failure::system("open", path, cause))
    };
    directories.iter().map(open).collect()
}

/// A set of processors from their numbers.
pub fn processors(numbers: &[u32]) -> Result<CpuSet, Failure> {
    let mut set = CpuSet::new();
    for &number in numbers {
        let number = number as usize;
        if number >= CpuSet::MAX_CPU {
            return Err(Failure::Invalid(format!(
                "processor {number}: there are at most {}",
                CpuSet::MAX_CPU
            )));
        }
        set.set(number);
    }
    Ok(set)
}

/// The user a child runs as; `None`: the agent's own.
pub fn user(name: Option<&str>) -> Result<Option<Credentials>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let user = user::find(name)?;
    let own = rustix::process::geteuid();
    if user.id == own {
        return Ok(None);
    }
    if own.is_root() {
        Ok(Some(user))
    } else {
        Err(Failure::Refused(format!(
            "only an agent that runs as root can start processes as {name}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{is_kept, search_path};

    #[test]
    fn what_holds_secrets_or_loads_code_is_kept_only_by_name() {
        let kept = |name: &str, more: &str| is_kept(name.as_ref(), more);
        for name in ["PATH", "LC_ALL", "XDG_RUNTIME_DIR", "FAIRTRIAL_LIMITS"] {
            assert!(kept(name, ""), "{name}");
        }
        for name in ["LD_PRELOAD", "AWS_SECRET_ACCESS_KEY", "", "PATHS", "HO"] {
            assert!(!kept(name, "") && !kept(name, "JAVA_HOME,X"), "{name}");
            assert!(kept(name, "*"), "{name}");
        }
        assert!(kept("JAVA_HOME", "X,JAVA_HOME"));
    }

    #[test]
    fn programs_of_administrators_are_found_from_any_login() {
        let of = |path: &str| search_path(Some(path.into())).into_string();
        assert_eq!(
            of("/opt/bin:/usr/bin"),
            Ok("/opt/bin:/usr/bin:/usr/sbin:/sbin".to_owned())
        );
        assert_eq!(
            of("/usr/sbin:/usr/bin:/sbin"),
            Ok("/usr/sbin:/usr/bin:/sbin".to_owned())
        );
        assert!(
            search_path(None)
                .into_string()
                .is_ok_and(|path| path.ends_with("/bin:/usr/sbin:/sbin"))
        );
    }
}
