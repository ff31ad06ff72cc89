//! The subcommands' common form: parameters in, result out, errors as JSON.

use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use fairtrial_govern::{GovernError, RestoreOutcome};
use fairtrial_load::{LoadError, StandingError};
use fairtrial_sample::SampleError;
use fairtrial_state::StateError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Runs a program of the data plane.
pub fn run<P: DeserializeOwned, R: Serialize, E: Into<anyhow::Error>>(
    program: impl Fn(&P) -> Result<R, E>,
) -> anyhow::Result<()> {
    print(&program(&parameters()?).map_err(Into::into)?)
}

/// Runs one whose progress comes before its result.
pub fn run_with_progress<P: DeserializeOwned, R: Serialize, E: Into<anyhow::Error>>(
    program: impl Fn(&P, &mut dyn Write) -> Result<R, E>,
) -> anyhow::Result<()> {
    run(|parameters| program(parameters, &mut io::stdout()))
}

/// Runs SQL statements: one line of rows for each.
pub fn sql() -> anyhow::Result<()> {
    fairtrial_load::sql(&parameters()?)?
        .iter()
        .try_for_each(print)
}

/// Holds a session on a server.
pub fn sql_hold() -> anyhow::Result<()> {
    Ok(fairtrial_load::sql_hold(&parameters()?, &mut io::stdout())?)
}

/// Restores a server's options. Its file is named on the command line, as an undo journal can.
pub fn sql_restore(originals: &Path) -> anyhow::Result<()> {
    print(&fairtrial_load::sql_restore(originals)?.unwrap_or_default())
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

/// Restores what a governor has left. Its file is named on the command line, as an undo journal can.
pub fn govern_restore(originals: &Path) -> anyhow::Result<()> {
    let said = match fairtrial_govern::restore(originals)? {
        None => "nothing is left to restore".to_owned(),
        Some(RestoreOutcome::Gone) => "the server that was governed is gone".to_owned(),
        Some(RestoreOutcome::Foreign(values)) => format!("other values were set since: {values:?}"),
        Some(RestoreOutcome::Set(variables)) => format!("restored: {}", variables.join(", ")),
    };
    print(&json!({"govern_restore": said}))
}

/// Prints the place's facts.
pub fn facts() -> anyhow::Result<()> {
    print(&fairtrial_state::facts()?)
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
    let standing = || error.downcast_ref().map(StandingError::hint);
    load.or_else(sample)
        .or_else(standing)
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
