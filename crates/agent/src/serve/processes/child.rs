//! How a child is set up between fork and exec.
#![allow(
    unsafe_code,
    reason = "pre_exec runs between fork and exec, where only async-signal-safe calls are allowed"
)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{
    CpuSet, sched_getaffinity, sched_setaffinity, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use crate::serve::failure::Failure;
use crate::serve::processes::MARK;
use crate::serve::processes::user::{self, User};

/// The program name that means this very binary.
const OWN_NAME: &str = "fairtrial-agent";

/// What a child is before it runs its program.
#[derive(Default)]
pub struct Setup {
    /// Run as this user.
    pub user: Option<User>,
    /// Processors it may use.
    pub processors: Option<CpuSet>,
    /// Out-of-memory score to give back.
    pub score: Option<String>,
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
    command
        .args(arguments)
        .env(MARK, session)
        .stdin(Stdio::null())
        .process_group(0);
    Ok(command)
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
    }
    // After the change of user, which clears it (prctl(2)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(agent) {
        Ok(())
    } else {
        Err(io::ErrorKind::Interrupted.into()) // the agent died before the line above
    }
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
pub fn user(name: Option<&str>) -> Result<Option<User>, Failure> {
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
