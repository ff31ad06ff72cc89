//! Servers that are there already: a session held for a run, and options restored after one, whoever has died meanwhile.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fairtrial_protocol::load::{Endpoint, Rows};
use fairtrial_protocol::standing::{OriginalOption, ServerOriginals, SqlHold, SqlRestored};

use crate::client::{Client, ClientError};
use crate::driver::mysql::Mysql;
use crate::error::LoadError;
use crate::stop::end_signal;

/// A server that hangs longer than this keeps the file, for the next try.
const ANSWER: Duration = Duration::from_secs(10);
/// A restarted server may recover first.
const RESTARTED: Duration = Duration::from_mins(2);
/// A reload takes effect when the server's processes have heard of it.
const RELOADED: Duration = Duration::from_secs(3);
/// Of a file that is being replaced.
const NEXT: &str = "next";
/// A large cache is resized in pieces; less than a session's farewell may take.
const RESTORED: Duration = Duration::from_secs(50);
/// How often a held session is asked whether it is there: servers end those that say nothing for too long.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// How soon a signal is heard.
const NOTICE: Duration = Duration::from_millis(20);

/// Why options could not be restored, or a session not held.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// The file cannot be read, or is not one of originals.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server does not answer, refuses, or keeps another value; what it had before, in words.
    #[error("{cause}; the server had {originals} ({path})")]
    NotRestored {
        /// What it says.
        cause: String,
        /// Names and values.
        originals: String,
        /// The file.
        path: String,
    },
    /// The command that restarts it failed.
    #[error("`{command}` failed: {problem}")]
    Restart {
        /// The command line.
        command: String,
        /// How.
        problem: String,
    },
    /// The session ended, or never began.
    #[error(transparent)]
    Session(#[from] ClientError),
    /// The load engine's own.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl StandingError {
    /// What the user can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "restore the server's options by hand and remove the file",
            Self::NotRestored { .. } => {
                "when the server answers again, `fairtrial doctor` restores them; or set them by hand and remove the file"
            }
            Self::Restart { .. } => "restart the server by hand: its options are restored already",
            Self::Session(ClientError::Failed(error)) | Self::Load(error) => error.hint(),
            Self::Session(_) => "check that the server runs",
        }
    }
}

/// Holds a session until a signal comes.
pub fn hold(parameters: &SqlHold, output: &mut dyn Write) -> Result<(), StandingError> {
    let end = end_signal()?;
    let mut client = Client::open(&parameters.endpoint).map_err(LoadError::start("a thread"))?;
    let mut last = Rows {
        columns: vec![],
        rows: vec![],
    };
    for statement in &parameters.statements {
        last = client.ask(statement, ANSWER)?;
    }
    let line = serde_json::to_string(&last).map_err(|error| LoadError::Progress(error.into()))?;
    writeln!(output, "{line}").map_err(LoadError::Progress)?;
    output.flush().map_err(LoadError::Progress)?;
    let mut asked = Instant::now();
    while !end.load(Ordering::Acquire) {
        thread::sleep(NOTICE);
        if asked.elapsed() > ALIVE_EVERY {
            match client.ask("SELECT 1", ANSWER) {
                Err(ClientError::Late { .. }) | Ok(_) => asked = Instant::now(), // a busy server keeps its sessions
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Restores what a file says; `None` where there is no file any more. Doing it twice is doing it once.
pub fn restore(path: &Path) -> Result<Option<SqlRestored>, StandingError> {
    restore_within(path, RESTORED)
}

fn restore_within(path: &Path, limit: Duration) -> Result<Option<SqlRestored>, StandingError> {
    let failed = |problem: String| StandingError::File {
        path: path.display().to_string(),
        problem,
    };
    let text = match fs::read(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|cause| failed(cause.to_string()))?,
    };
    let originals: ServerOriginals =
        serde_json::from_slice(&text).map_err(|cause| failed(cause.to_string()))?;
    let restored = match restored(path, &originals, limit) {
        Err(StandingError::NotRestored { .. })
            if !originals.lasting && nobody_listens(&originals.endpoint) =>
        {
            SqlRestored::default() // what was set went with the server's process
        }
        outcome => outcome?,
    };
    let _ = fs::remove_file(path.with_extension(NEXT)); // of one that was killed; it is rarely there
    fs::remove_file(path).map_err(|cause| failed(cause.to_string()))?;
    Ok(Some(restored))
}

fn restored(
    path: &Path,
    originals: &ServerOriginals,
    limit: Duration,
) -> Result<SqlRestored, StandingError> {
    let not_restored = |cause: String| StandingError::NotRestored {
        cause,
        originals: in_words(&originals.options),
        path: path.display().to_string(),
    };
    let failed = |cause: ClientError| not_restored(cause.to_string());
    let mut client = Client::open(&originals.endpoint).map_err(LoadError::start("a thread"))?;
    let (ours, outcome) = decided(&mut client, originals).map_err(failed)?;
    if !outcome.restored.is_empty() {
        let decision = ServerOriginals {
            options: ours.clone(),
            others: vec![],
            ..originals.clone()
        };
        // What restoring one option does to another is nobody else's, should this be killed in between. A full disk
        // is no reason not to restore.
        let _ = replace(path, &decision);
    }
    for option in &ours {
        restore_one(&mut client, option).map_err(not_restored)?;
    }
    // Options that move each other along need another round. One that takes effect late refuses to be set meanwhile.
    let refusals: Vec<String> = ours
        .iter()
        .filter_map(|option| restore_one(&mut client, option).err())
        .collect();
    // Also where all have their originals again: who restored them may have died before this.
    for statement in &originals.after {
        client.ask(statement, ANSWER).map_err(failed)?;
    }
    require_originals(&mut client, &ours, limit)
        .map_err(|kept| not_restored([vec![kept], refusals].concat().join(": ")))?;
    if originals.restart.is_empty() {
        wait_for_effect(&mut client, originals, &outcome).map_err(failed)?;
    } else {
        drop(client);
        run(&originals.restart)?;
        wait_for_answer(&originals.endpoint).map_err(failed)?;
    }
    Ok(outcome)
}

/// What is to be restored, and who set what: an option with a value that is neither the original nor ours stays.
fn decided(
    client: &mut Client,
    originals: &ServerOriginals,
) -> Result<(Vec<OriginalOption>, SqlRestored), ClientError> {
    let mut ours = vec![];
    let mut outcome = SqlRestored::default();
    let named = originals.options.iter().map(|option| (option, true));
    let others = originals.others.iter();
    for (option, was_set) in named.chain(others.map(|option| (option, option.set.is_some()))) {
        let current = cell(client.ask(&option.read, ANSWER)?);
        let differs = current != option.original;
        if differs && option.set.is_some() && current != option.set {
            outcome.foreign.push(option.name.clone());
            continue;
        }
        if differs {
            outcome.restored.push(option.name.clone());
        }
        if differs || was_set {
            ours.push(OriginalOption {
                set: None,
                ..option.clone()
            });
        }
    }
    Ok((ours, outcome))
}

fn replace(path: &Path, originals: &ServerOriginals) -> io::Result<()> {
    let next = path.with_extension(NEXT);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&next)?;
    file.write_all(&serde_json::to_vec(originals)?)?;
    file.sync_all()?;
    fs::rename(&next, path)
}

fn restore_one(client: &mut Client, option: &OriginalOption) -> Result<(), String> {
    let told = |cause: ClientError| match cause {
        // A server quotes what it refuses.
        ClientError::Failed(_) if option.secret => format!("{} cannot be restored", option.name),
        other => other.to_string(),
    };
    if cell(client.ask(&option.read, ANSWER).map_err(told)?) != option.original {
        client.ask(&option.restore, RESTORED).map_err(told)?;
    }
    Ok(())
}

/// Reads everything that was restored again.
fn require_originals(
    client: &mut Client,
    ours: &[OriginalOption],
    limit: Duration,
) -> Result<(), String> {
    let began = Instant::now();
    for option in ours {
        loop {
            let current = client
                .ask(&option.read, ANSWER)
                .map(cell)
                .map_err(|cause| cause.to_string())?;
            if current == option.original {
                break;
            }
            if began.elapsed() > limit {
                let kept = words(option, current.as_deref());
                return Err(format!("restored, and the server still has {kept}"));
            }
            thread::sleep(NOTICE);
        }
    }
    Ok(())
}

/// Waits until what was restored is in effect; not for ever, since what else the server read anew may decide otherwise.
fn wait_for_effect(
    client: &mut Client,
    originals: &ServerOriginals,
    outcome: &SqlRestored,
) -> Result<(), ClientError> {
    let began = Instant::now();
    for option in &originals.options {
        while outcome.restored.contains(&option.name)
            && began.elapsed() < RELOADED
            && cell(client.ask(&option.effective, ANSWER)?) != option.in_effect
        {
            thread::sleep(NOTICE);
        }
    }
    Ok(())
}

fn wait_for_answer(endpoint: &Endpoint) -> Result<(), ClientError> {
    let began = Instant::now();
    loop {
        let mut client = Client::open(endpoint).map_err(LoadError::start("a thread"))?;
        match client.ask("SELECT 1", ANSWER) {
            Err(error) if began.elapsed() > RESTARTED => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(100)),
            Ok(_) => return Ok(()),
        }
    }
}

fn run(command: &[String]) -> Result<(), StandingError> {
    let failed = |problem: String| StandingError::Restart {
        command: command.join(" "),
        problem,
    };
    let ended = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|cause| failed(cause.to_string()))?;
    if ended.success() {
        Ok(())
    } else {
        Err(failed(ended.to_string()))
    }
}

fn cell(rows: Rows) -> Option<String> {
    rows.rows.into_iter().next()?.into_iter().next()?
}

fn in_words(options: &[OriginalOption]) -> String {
    let words: Vec<String> = options
        .iter()
        .map(|option| words(option, option.in_effect.as_deref()))
        .collect();
    words.join(", ")
}

fn words(option: &OriginalOption, value: Option<&str>) -> String {
    match value {
        _ if option.secret => format!("a value of {} that is not shown", option.name),
        Some(value) => format!("{} = {value}", option.name),
        None => format!("no {}", option.name),
    }
}

/// Whether the machine of a server says that nothing listens where it did. Silence says nothing.
fn nobody_listens(endpoint: &Endpoint) -> bool {
    let Endpoint::Mysql {
        socket, host, port, ..
    } = endpoint
    else {
        return false;
    };
    let port = port.unwrap_or(Mysql::DEFAULT_PORT);
    let kind = match (socket, host) {
        (Some(path), _) => UnixStream::connect(path)
            .map_err(|error| error.kind())
            .err(),
        (None, Some(host)) => TcpStream::connect((host.as_str(), port))
            .map_err(|error| error.kind())
            .err(),
        (None, None) => None,
    };
    matches!(kind, Some(ErrorKind::ConnectionRefused))
        || (socket.is_some() && kind == Some(ErrorKind::NotFound))
}

#[cfg(test)]
mod tests;
