//! Doing what a step says.

use std::env;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write as _};

use fairtrial_protocol::step::Action;

use crate::serve::failure::Failure;
use crate::serve::processes::Processes;

/// The beginning of a command line by which root writes a setting for this user: `sudo -n …/fairtrial-agent`.
const HELPER: &str = "FAIRTRIAL_HELPER";

/// Does it.
pub fn act(action: &Action, processes: &Processes) -> Result<(), Failure> {
    match action {
        Action::Write { path, value } => write(path, value, processes, false),
        Action::Execute { argv } => execute(argv, processes, false),
        Action::Create { path } | Action::Group { path } => DirBuilder::new()
            .create(path)
            .map_err(|cause| Failure::system("create", path, cause)),
        // mount(8) rather than mount(2): it knows which options are flags, and sets loop devices up.
        Action::Mount {
            source,
            target,
            file_system,
            options,
        } => {
            let mut argv = ["mount", "-n", "-t", file_system.as_str()]
                .map(str::to_owned)
                .to_vec();
            if !options.is_empty() {
                argv.extend(["-o".to_owned(), options.clone()]);
            }
            argv.extend(["--".to_owned(), source.clone(), target.clone()]);
            execute(&argv, processes, false)
        }
    }
}

/// Writes a file that exists; what this user may not write, the user's helper does, if there is one.
pub fn write(
    path: &str,
    value: &str,
    processes: &Processes,
    finishing: bool,
) -> Result<(), Failure> {
    match (write_here(path, value), env::var(HELPER)) {
        (Err(Failure::System { cause, .. }), Ok(helper))
            if cause.kind() == ErrorKind::PermissionDenied =>
        {
            let words = ["write-setting", "--", path, value.trim_end()];
            let argv = helper.split_whitespace().chain(words).map(str::to_owned);
            execute(&argv.collect::<Vec<_>>(), processes, finishing)
        }
        (written, _) => written,
    }
}

/// In one write(2): kernel interfaces take a value whole or not at all.
fn write_here(path: &str, value: &str) -> Result<(), Failure> {
    let opened = File::options().write(true).truncate(true).open(path);
    let mut file = opened.map_err(|cause| Failure::system("open", path, cause))?;
    if value.is_empty() {
        return Ok(()); // truncated
    }
    match file.write(value.as_bytes()) {
        Ok(count) if count == value.len() => Ok(()),
        Ok(count) => Err(Failure::Refused(format!(
            "{path} took only {count} of {} bytes",
            value.len()
        ))),
        Err(cause) => Err(Failure::system("write", path, cause)),
    }
}

/// Runs a program that must succeed.
pub fn execute(argv: &[String], processes: &Processes, finishing: bool) -> Result<(), Failure> {
    let ran = processes.run(argv, finishing)?;
    if ran.status.success() {
        return Ok(());
    }
    Err(Failure::Program {
        program: argv.join(" "),
        outcome: format!("ended with {}", ran.status),
        said: format!("{}{}", ran.stderr, ran.stdout).trim().to_owned(),
    })
}
