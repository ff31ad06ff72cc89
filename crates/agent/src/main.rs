//! `fairtrial-agent`: supervises a place (`serve`) and carries the data plane's programs as subcommands.
//!
//! A subcommand takes one JSON document on standard input, prints its result as the last JSON line on standard output,
//! and says an error as one JSON line `{"error": …, "hint": …}` on standard error, with exit code 1.

mod boot;
mod native;
mod schema;
mod serve;
mod write_setting;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

#[derive(Parser)]
#[command(name = "fairtrial-agent", version, about, long_about = None)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Supervise this place for the control plane: the stream is standard input and output.
    Serve,
    /// Be the first process of a virtual machine (its initial file system says how, `Boot`).
    Boot,
    /// Print the JSON Schema of every type on the wire.
    Schema,
    /// Load TPC-C's tables (`TpccLoad` → `Loaded`).
    TpccLoad,
    /// Run TPC-C's mix (`TpccDrive` → `Driven`).
    TpccDrive,
    /// Check TPC-C's consistency conditions (`TpccCheck` → `Checked`).
    TpccCheck,
    /// Load the OLTP family's tables (`OltpLoad` → `Loaded`).
    OltpLoad,
    /// Run a profile of the OLTP family (`OltpDrive` → `Driven`).
    OltpDrive,
    /// Check the OLTP family's tables (`OltpCheck` → `Checked`).
    OltpCheck,
    /// Make a script's data (`ScriptLoad` → `Loaded`).
    ScriptLoad,
    /// Prepare a script's statements (`ScriptPreflight` → `Preflighted`).
    ScriptPreflight,
    /// Run a script's transactions (`ScriptDrive` → `Driven`).
    ScriptDrive,
    /// Make files of stamped blocks (`FileLoad` → `Loaded`).
    FileLoad,
    /// Access blocks of files (`FileDrive` → `Driven`).
    FileDrive,
    /// Read the kernel's counters once, and what a path lies on (`FileCountersOf` → `FileCounters`).
    FileCounters,
    /// Take locks with many threads (`LockDrive` → `Driven`).
    LockDrive,
    /// Run SQL statements (`Sql` → one `Rows` per statement).
    Sql,
    /// Keep a session on a server open until SIGTERM (`SqlHold` → the last statement's `Rows`, at once).
    SqlHold,
    /// Restore what options of a server were before a trial, from its file of originals (→ `SqlRestored`).
    SqlRestore {
        /// The file; one that is not there leaves nothing to do.
        originals: PathBuf,
    },
    /// Measure what the client can do at most on this host (`Ceiling` → `ClientCeiling`).
    Ceiling,
    /// Answer MySQL's protocol without doing anything, until SIGTERM or the input's end (`Noop`, one line).
    Noop,
    /// Sample the place until SIGTERM (`Sample`).
    Sample,
    /// Govern a server's purge until SIGTERM (`GovernPurge` → `Decision` lines, then `Governed`).
    GovernPurge,
    /// Restore what a governor that is no more has left, from its file of original values.
    GovernRestore {
        /// The file; one that is not there leaves nothing to do.
        originals: PathBuf,
    },
    /// Print the place's facts (→ `Facts`).
    Facts,
    /// Time a fixed amount of work and print what else foretells noise here (→ `Covariates`).
    Covariates,
    /// Copy prepared data to a work directory (`Restore` → `Restored`).
    Restore,
    /// Ask a URL once (`HttpGet` → `HttpAnswer`).
    HttpGet,
    /// Bring the page cache to rest (`Settle` → `Settled`).
    Settle,
    /// Write a setting for an ordinary user's agent, if it is on the list: what a rule of sudo(8) may allow.
    WriteSetting {
        /// The file.
        path: String,
        /// What it gets.
        value: String,
    },
}

fn main() -> ExitCode {
    let command =
        Arguments::parse_from(meant(std::env::args_os().collect(), std::process::id())).command;
    if !matches!(command, Command::Serve | Command::Boot) {
        take_descriptors(); // not of what starts servers: they keep the limit that their user has
    }
    let outcome = if is_load(&command) {
        confine().and_then(|()| carry_out(command))
    } else {
        carry_out(command)
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => native::say(&error),
    }
}

fn carry_out(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve => serve::run(),
        Command::Boot => boot::run(),
        Command::Schema => native::print(&schema::wire()),
        Command::TpccLoad => native::run_with_progress(fairtrial_load::load),
        Command::TpccDrive => native::run_with_progress(fairtrial_load::drive),
        Command::TpccCheck => native::run(fairtrial_load::check),
        Command::OltpLoad => native::run_with_progress(fairtrial_load::load_oltp),
        Command::OltpDrive => native::run_with_progress(fairtrial_load::drive_oltp),
        Command::OltpCheck => native::run(fairtrial_load::check_oltp),
        Command::ScriptLoad => native::run_with_progress(fairtrial_load::load_script),
        Command::ScriptPreflight => native::run(fairtrial_load::preflight_script),
        Command::ScriptDrive => native::run_with_progress(fairtrial_load::drive_script),
        Command::FileLoad => native::run_with_progress(fairtrial_load::load_files),
        Command::FileDrive => native::run_with_progress(fairtrial_load::drive_files),
        Command::FileCounters => native::run(fairtrial_load::file_counters),
        Command::LockDrive => native::run_with_progress(fairtrial_load::drive_locks),
        Command::Sql => native::sql(),
        Command::SqlHold => native::sql_hold(),
        Command::SqlRestore { originals } => native::sql_restore(&originals),
        Command::Ceiling => native::run(fairtrial_load::ceiling),
        Command::Noop => native::noop(),
        Command::Sample => native::sample(),
        Command::GovernPurge => native::run(fairtrial_govern::purge),
        Command::GovernRestore { originals } => native::govern_restore(&originals),
        Command::Facts => native::facts(),
        Command::Covariates => native::print(&fairtrial_state::covariates()),
        Command::Restore => native::run(fairtrial_state::restore),
        Command::HttpGet => native::run(|url| anyhow::Ok(fairtrial_sample::http_get(url))),
        Command::Settle => native::run(fairtrial_state::settle),
        Command::WriteSetting { path, value } => write_setting::run(&path, &value),
    }
}

/// Whether a subcommand only talks to servers, or reads and writes a trial's files.
fn is_load(command: &Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::TpccLoad
            | C::TpccDrive
            | C::TpccCheck
            | C::OltpLoad
            | C::OltpDrive
            | C::OltpCheck
            | C::ScriptLoad
            | C::ScriptPreflight
            | C::ScriptDrive
            | C::FileLoad
            | C::FileDrive
            | C::LockDrive
            | C::Sql
            | C::SqlHold
            | C::Ceiling
            | C::Noop
            | C::HttpGet
    )
}

/// What root keeps for a load: a server's socket is in a directory of the server's user, and limits stay as they were.
const LOADS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::SYS_RESOURCE);

/// Gives up, before the first thread and for good, what a load has no use for: it reads what servers send.
fn confine() -> anyhow::Result<()> {
    let confined = || {
        set_no_new_privs(true)?;
        let kept = capabilities(None)?.permitted & LOADS;
        let sets = CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, sets)
    };
    confined().context("cannot give up privileges")
}

/// The words meant for this program: a guest's kernel hands its first process every word of the command line that it
/// does not know, before the one that stands behind `--`.
fn meant(words: Vec<OsString>, process: u32) -> Vec<OsString> {
    match &words[..] {
        [program, .., last] if process == 1 && last == "boot" => {
            vec![program.clone(), last.clone()]
        }
        _ => words,
    }
}

/// Raises the soft limit of open files to the hard one: a load of a thousand users has a thousand connections, and
/// nothing here calls `select`, for whose sake the soft limit is low.
fn take_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised); // who lacks descriptors later is told of the limit
}

#[cfg(test)]
mod tests {
    use super::meant;
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_that_a_guests_kernel_does_not_know_are_not_for_this_program() {
        assert_eq!(
            meant(words("agent nokaslr --quick boot"), 1),
            words("agent boot")
        );
        assert_eq!(
            meant(words("agent nokaslr boot"), 2),
            words("agent nokaslr boot")
        );
        assert_eq!(meant(words("agent serve"), 1), words("agent serve"));
        assert_eq!(meant(Vec::new(), 1), Vec::<OsString>::new());
    }
}
