//! Collecting ended children, in one place: those that were started here, and orphans that the agent inherits.
#![allow(
    unsafe_code,
    reason = "rustix has neither wait4(2), the only call that gives a child's resource usage, nor signal(2)"
)]

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::event::Usage;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How a child ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnd {
    /// As wait(2) encodes it.
    pub status: i32,
    /// When it was seen.
    pub time_ns: i64,
    /// The kernel's accounting.
    pub usage: Usage,
}

/// Told once how a child ended.
pub type OnEnd = Box<dyn FnOnce(ProcessEnd) + Send>;

/// Knows the children that have not been collected.
pub struct Reaper {
    children: Mutex<HashMap<i32, Child>>,
    spawned: Condvar,
}

struct Child {
    process: Option<u64>,
    on_end: OnEnd,
}

impl Reaper {
    /// Begins to collect.
    pub fn start() -> Arc<Self> {
        // Whoever launched the agent may ignore SIGCHLD, which is inherited and lets no child be collected (wait(2)).
        // SAFETY: the default disposition is always a valid one, and no handler of this process is replaced.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let reaper = Arc::new(Self {
            children: Mutex::new(HashMap::new()),
            spawned: Condvar::new(),
        });
        let collector = Arc::clone(&reaper);
        thread::spawn(move || collector.collect());
        reaper
    }

    /// Starts a child. No end can be collected before `started` returns, nor while the standard library itself may
    /// wait for a child whose exec failed: both happen under the lock.
    pub fn spawn(
        &self,
        mut command: Command,
        process: Option<u64>,
        started: impl FnOnce(i32) -> OnEnd,
    ) -> io::Result<i32> {
        let mut children = self.lock();
        let pid = command.spawn()?.id().cast_signed();
        children.insert(
            pid,
            Child {
                process,
                on_end: started(pid),
            },
        );
        self.spawned.notify_all();
        Ok(pid)
    }

    /// Does something with a process's id while it cannot be collected, so that the id is its own. `None`: it ended.
    pub fn with_pid<T>(&self, process: u64, act: impl FnOnce(Pid) -> T) -> Option<T> {
        let children = self.lock();
        let (pid, _) = children
            .iter()
            .find(|(_, child)| child.process == Some(process))?;
        Some(act(Pid::from_raw(*pid)?))
    }

    /// Kills a child's process group unless the child was collected.
    pub fn kill_group(&self, pid: i32) {
        let children = self.lock();
        if let (true, Some(pid)) = (children.contains_key(&pid), Pid::from_raw(pid)) {
            let _ = kill_process_group(pid, Signal::KILL); // ESRCH: it ended this moment
        }
    }

    fn collect(&self) {
        loop {
            // Looks without collecting, since the process id is free for reuse from then on.
            let ended = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let mut children = self.lock();
            match ended {
                Err(rustix::io::Errno::CHILD) if children.is_empty() => {
                    drop(
                        self.spawned
                            .wait(children)
                            .unwrap_or_else(PoisonError::into_inner),
                    );
                }
                Err(_) => {}
                Ok(_) => {
                    while let Some((pid, end)) = take_ended() {
                        let child = children.remove(&pid); // none: an orphan
                        if let Some(child) = child {
                            drop(children);
                            (child.on_end)(end);
                            children = self.lock();
                        }
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects one ended child, if there is one.
fn take_ended() -> Option<(i32, ProcessEnd)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live, writable memory of the types wait4(2) writes; zeroes are a valid rusage.
    let (pid, usage) = unsafe {
        (
            libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()),
            usage.assume_init(),
        )
    };
    (pid > 0).then(|| {
        (
            pid,
            ProcessEnd {
                status,
                time_ns: monotonic_ns(),
                usage: Usage::from(&usage),
            },
        )
    })
}
