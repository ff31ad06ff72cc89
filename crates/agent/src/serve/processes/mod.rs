//! The session's processes: started, signalled, followed, and in the end all stopped.

mod child;
pub mod descendants;
mod output;
mod reaper;
mod trial;
pub mod user;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::event::{Event, Spawned, Swept};
use fairtrial_protocol::request::{Signal, Spawn, Sweep};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Signal as UnixSignal, kill_process, kill_process_group};

use crate::serve::failure::Failure;
use crate::serve::wires::Wires;
use child::{OWN_NAME, Setup};
use descendants::MARK;
use reaper::{ProcessEnd, Reaper};
use trial::{Patience, TrialGroups};

/// What a program of a step may say before it is cut.
const SAID_BYTES: u64 = 64 * 1024;

/// A program of a step that runs longer hangs.
const STEP_PROGRAM: Duration = Duration::from_mins(10);

/// The arguments of a process that keeps a lock on a server.
const LOCK: [&str; 2] = [OWN_NAME, "sql-hold"];

/// How soon a program of a step is stopped after the stream has ended.
const NOTICE: Duration = Duration::from_millis(50);

/// The processes of one session.
pub struct Processes {
    wires: Arc<Wires>,
    reaper: Arc<Reaper>,
    session: String,
    initial_score: Option<String>,
    next: u64,
    trial: TrialGroups,
}

/// What a program of a step said.
pub struct ProgramOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Processes {
    /// No processes yet.
    pub fn new(wires: Arc<Wires>, initial_score: Option<String>) -> io::Result<Self> {
        let session = fs::read_to_string("/proc/sys/kernel/random/uuid")?
            .trim()
            .to_owned();
        Ok(Self {
            wires,
            reaper: Reaper::start(),
            session,
            initial_score,
            next: 0,
            trial: TrialGroups::default(),
        })
    }

    /// The mark of this session's processes.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Starts a process and says `spawned`.
    pub fn spawn(&mut self, spawn: &Spawn) -> Result<(), Failure> {
        let mut command = child::command(&spawn.argv, &self.session)?;
        command.envs(&spawn.environment).env(MARK, &self.session);
        if spawn.of_trial {
            command.env(trial::MARK, &self.session);
        }
        if let Some(directory) = &spawn.directory {
            fs::metadata(directory).map_err(|cause| Failure::system("enter", directory, cause))?;
            command.current_dir(directory);
        }
        if let Some(text) = &spawn.stdin {
            command.stdin(
                filled(text).map_err(|cause| Failure::system("write", "standard input", cause))?,
            );
        }
        let processors = spawn
            .processors
            .as_deref()
            .map(child::processors)
            .transpose()?;
        let setup = Setup {
            user: child::user(spawn.user.as_deref())?,
            processors,
            score: self.initial_score.clone(),
            groups: child::groups(&spawn.groups)?,
        };
        child::set_up(&mut command, setup);
        let (stdout, stderr) = (output::open(&spawn.stdout)?, output::open(&spawn.stderr)?);
        command.stdout(stdout.child).stderr(stderr.child);
        let process = self.next;
        let follower = output::Follower::new(
            process,
            Arc::clone(&self.wires),
            stdout.follow,
            stderr.follow,
        );
        let time_ns = monotonic_ns();
        let pid = self
            .reaper
            .spawn(command, Some(process), |pid| {
                self.wires.say(&Event::Spawned(Spawned {
                    id: spawn.id,
                    process,
                    pid,
                    time_ns,
                }));
                follower.start()
            })
            .map_err(|cause| match &spawn.processors {
                // Of all that is done between fork and exec, only the affinity is refused so.
                Some(processors) if cause.kind() == io::ErrorKind::InvalidInput => {
                    Failure::Refused(format!(
                        "processors {processors:?}: not all are online and allowed here"
                    ))
                }
                _ => Failure::system("start", &spawn.argv[0], cause),
            })?;
        self.next += 1;
        self.trial.started(pid, spawn.of_trial);
        Ok(())
    }

    /// Sends a signal to a process that has not ended.
    pub fn signal(&mut self, request: &Signal) -> Result<(), Failure> {
        if request.process >= self.next {
            return Err(Failure::NotFound {
                what: format!("process {}", request.process),
            });
        }
        let signal = UnixSignal::from_named_raw(request.signal)
            .ok_or_else(|| Failure::Invalid(format!("{} is not a signal", request.signal)))?;
        let sent = self.reaper.with_pid(request.process, |pid| {
            if request.group {
                if signal == UnixSignal::TERM {
                    self.trial.told(pid.as_raw_nonzero().get());
                }
                kill_process_group(pid, signal)
            } else {
                kill_process(pid, signal)
            }
        });
        sent.unwrap_or(Ok(()))
            .map_err(|cause| Failure::system("signal process", request.process.to_string(), cause))
    }

    /// Ends what a trial's processes have left running.
    pub fn sweep(&mut self, sweep: Sweep) -> Swept {
        let patience = Patience {
            grace: Duration::from_millis(sweep.grace_ms),
            hang: self.wires.limits.hang,
        };
        let ends = || self.wires.shutdown.reason().is_some();
        let swept = self.trial.sweep(&self.session, patience, ends);
        Swept {
            id: sweep.id,
            ..swept
        }
    }

    /// Runs a program to its end, for a step; one that is not `finishing` is stopped when the stream ends.
    pub fn run(&self, argv: &[String], finishing: bool) -> Result<ProgramOutput, Failure> {
        let mut command = child::command(argv, &self.session)?;
        child::set_up(
            &mut command,
            Setup {
                score: self.initial_score.clone(),
                ..Setup::default()
            },
        );
        let failed = |cause| Failure::system("start", &argv[0], cause);
        let (stdout, stderr) = (filled("").map_err(failed)?, filled("").map_err(failed)?);
        command
            .stdout(stdout.try_clone().map_err(failed)?)
            .stderr(stderr.try_clone().map_err(failed)?);
        let (sender, receiver) = mpsc::channel();
        let pid = self
            .reaper
            .spawn(command, None, |_| {
                Box::new(move |end| sender.send(end).unwrap_or_default())
            })
            .map_err(failed)?;
        let end = if let Some(end) = self.wait(&receiver, finishing) {
            end
        } else {
            self.reaper.kill_group(pid);
            let outlives =
                |_| Failure::Refused(format!("`{}` (process {pid}) outlives SIGKILL", argv[0]));
            receiver
                .recv_timeout(self.wires.limits.hang)
                .map_err(outlives)?
        };
        Ok(ProgramOutput {
            status: ExitStatus::from_raw(end.status),
            stdout: said(stdout),
            stderr: said(stderr),
        })
    }

    fn wait(&self, receiver: &mpsc::Receiver<ProcessEnd>, finishing: bool) -> Option<ProcessEnd> {
        let mut waited = Duration::ZERO;
        while waited < STEP_PROGRAM && (finishing || self.wires.shutdown.reason().is_none()) {
            if let Ok(end) = receiver.recv_timeout(NOTICE) {
                return Some(end);
            }
            waited += NOTICE;
        }
        None
    }

    /// Stops every process of the session, and whatever they started, but for those that keep a lock on a server:
    /// SIGTERM, then SIGKILL; returns how many are left. While such a lock is kept, no other study takes what is not
    /// restored yet for what was there.
    pub fn stop_all_but_locks(&mut self) -> usize {
        descendants::stop(&self.session, self.wires.limits, |process| {
            descendants::runs(process, &LOCK)
        })
    }

    /// Stops those, too.
    pub fn stop_locks(&mut self) -> usize {
        descendants::stop(&self.session, self.wires.limits, |process| {
            !descendants::runs(process, &LOCK)
        })
    }
}

/// A file in memory that holds `text`, to be read from its beginning.
fn filled(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("fairtrial", MemfdFlags::CLOEXEC)?);
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn said(mut file: File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(SAID_BYTES).read_to_end(&mut bytes));
    drop(read); // what can be read is enough for a message
    String::from_utf8_lossy(&bytes).into_owned()
}
