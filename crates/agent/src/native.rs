//! The subcommands' common form: parameters in, result out, errors as JSON.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use fairtrial_govern::{GovernError, Outcome};
use fairtrial_load::LoadError;
use fairtrial_sample::SampleError;
use fairtrial_state::StateError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Loads TPC-C's tables.
pub fn tpcc_load() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::load(&parameters, &mut io::stdout())?)
}

/// Runs TPC-C's mix.
pub fn tpcc_drive() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::drive(&parameters, &mut io::stdout())?)
}

/// Checks TPC-C's consistency conditions.
pub fn tpcc_check() -> anyhow::Result<()> {
    print(&fairtrial_load::check(&parameters()?)?)
}

/// Loads the OLTP family's tables.
pub fn oltp_load() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::load_oltp(&parameters, &mut io::stdout())?)
}

/// Runs a profile of the OLTP family.
pub fn oltp_drive() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::drive_oltp(&parameters, &mut io::stdout())?)
}

/// Checks the OLTP family's tables.
pub fn oltp_check() -> anyhow::Result<()> {
    print(&fairtrial_load::check_oltp(&parameters()?)?)
}

/// Makes a script's data.
pub fn script_load() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::load_script(
        &parameters,
        &mut io::stdout(),
    )?)
}

/// Prepares a script's statements.
pub fn script_preflight() -> anyhow::Result<()> {
    print(&fairtrial_load::preflight_script(&parameters()?)?)
}

/// Runs a script's transactions.
pub fn script_drive() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::drive_script(
        &parameters,
        &mut io::stdout(),
    )?)
}

/// Makes files of stamped blocks.
pub fn file_load() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::load_files(&parameters, &mut io::stdout())?)
}

/// Accesses blocks of files.
pub fn file_drive() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::drive_files(
        &parameters,
        &mut io::stdout(),
    )?)
}

/// Reads the kernel's counters once.
pub fn file_counters() -> anyhow::Result<()> {
    print(&fairtrial_load::file_counters(&parameters()?)?)
}

/// Takes locks with many threads.
pub fn lock_drive() -> anyhow::Result<()> {
    let parameters = parameters()?;
    print(&fairtrial_load::drive_locks(
        &parameters,
        &mut io::stdout(),
    )?)
}

/// Runs SQL statements: one line of rows for each.
pub fn sql() -> anyhow::Result<()> {
    fairtrial_load::sql(&parameters()?)?
        .iter()
        .try_for_each(print)
}

/// Measures what the client can do at most.
pub fn ceiling() -> anyhow::Result<()> {
    print(&fairtrial_load::ceiling(&parameters()?)?)
}

/// Serves without doing anything: its document is one line, since the input's end ends it.
pub fn noop() -> anyhow::Result<()> {
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .context("cannot read standard input")?;
    let parameters = serde_json::from_str(&line)
        .context("the first line on standard input is not what this subcommand takes")?;
    Ok(fairtrial_load::NoopServer::bind(&parameters)?.serve(io::stdin())?)
}

/// Samples the place until SIGTERM.
pub fn sample() -> anyhow::Result<()> {
    Ok(fairtrial_sample::sample(&parameters()?)?)
}

/// Governs purge until SIGTERM.
pub fn govern_purge() -> anyhow::Result<()> {
    print(&fairtrial_govern::purge(&parameters()?)?)
}

/// Restores what a governor has left. Its file is named on the command line, as an undo journal can.
pub fn govern_restore(originals: &Path) -> anyhow::Result<()> {
    let said = match fairtrial_govern::restore(originals)? {
        None => "nothing is left to restore".to_owned(),
        Some(Outcome::Gone) => "the server that was governed is gone".to_owned(),
        Some(Outcome::Foreign(values)) => format!("other values were set since: {values:?}"),
        Some(Outcome::Set(variables)) => format!("restored: {}", variables.join(", ")),
    };
    print(&json!({"govern_restore": said}))
}

/// Prints the place's facts.
pub fn facts() -> anyhow::Result<()> {
    print(&fairtrial_state::facts()?)
}

/// Copies prepared data.
pub fn restore() -> anyhow::Result<()> {
    print(&fairtrial_state::restore(&parameters()?)?)
}

/// Brings the page cache to rest.
pub fn settle() -> anyhow::Result<()> {
    print(&fairtrial_state::settle(&parameters()?)?)
}

/// Prints a result: one line of JSON.
pub fn print<T: Serialize>(result: &T) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(result).context("the result has no JSON form")?;
    line.push(b'\n');
    io::stdout()
        .write_all(&line)
        .context("cannot write to standard output")
}

/// Says an error on standard error, its causes innermost last.
pub fn say(error: &anyhow::Error) -> ExitCode {
    eprintln!(
        "{}",
        json!({"error": format!("{error:#}"), "hint": hint(error)})
    );
    ExitCode::FAILURE
}

fn hint(error: &anyhow::Error) -> &'static str {
    let load = error.downcast_ref().map(LoadError::hint);
    let sample = || error.downcast_ref().map(SampleError::hint);
    let state = || error.downcast_ref().map(StateError::hint);
    let govern = || error.downcast_ref().map(GovernError::hint);
    load.or_else(sample)
        .or_else(govern)
        .or_else(state)
        .unwrap_or("run the same subcommand by hand to see more")
}

fn parameters<T: DeserializeOwned>() -> anyhow::Result<T> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .context("cannot read standard input")?;
    serde_json::from_str(&text)
        .context("the parameters on standard input are not what this subcommand takes")
}
