//! Servers that are there already: a session held for a run, and options restored after one, whoever has died meanwhile.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
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
    /// The server does not answer or refuses; what it had before, in words.
    #[error("{cause}; the server had {originals}")]
    NotRestored {
        /// What it says.
        cause: ClientError,
        /// Names and values.
        originals: String,
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
                "when the server answers again, `fairtrial doctor` restores them; or set them by hand"
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
    let restored = match restored(&originals) {
        Err(StandingError::NotRestored { .. })
            if !originals.lasting && nobody_listens(&originals.endpoint) =>
        {
            SqlRestored::default() // what was set went with the server's process
        }
        outcome => outcome?,
    };
    fs::remove_file(path).map_err(|cause| failed(cause.to_string()))?;
    Ok(Some(restored))
}

fn restored(originals: &ServerOriginals) -> Result<SqlRestored, StandingError> {
    let failed = |cause| StandingError::NotRestored {
        cause,
        originals: in_words(&originals.options),
    };
    let mut client = Client::open(&originals.endpoint).map_err(LoadError::start("a thread"))?;
    let mut outcome = SqlRestored::default();
    for option in &originals.options {
        let current = cell(client.ask(&option.read, ANSWER).map_err(failed)?);
        if current == option.original {
            continue;
        }
        if option.set.is_some() && current != option.set {
            outcome.foreign.push(option.name.clone());
            continue;
        }
        client.ask(&option.restore, ANSWER).map_err(failed)?;
        outcome.restored.push(option.name.clone());
    }
    // Also where all have their originals again: who restored them may have died before this.
    for statement in &originals.after {
        client.ask(statement, ANSWER).map_err(failed)?;
    }
    if originals.restart.is_empty() {
        wait_for_effect(&mut client, originals, &outcome).map_err(failed)?;
    } else {
        drop(client);
        run(&originals.restart)?;
        wait_for_answer(&originals.endpoint).map_err(failed)?;
    }
    Ok(outcome)
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
        .map(|option| match &option.in_effect {
            Some(value) => format!("{} = {value}", option.name),
            None => format!("no {}", option.name),
        })
        .collect();
    words.join(", ")
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
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use fairtrial_protocol::load::Sql;

    struct Stage {
        directory: tempfile::TempDir,
    }

    impl Stage {
        fn new() -> Self {
            let stage = Self {
                directory: tempfile::tempdir().expect("a temporary directory"),
            };
            stage.ask("CREATE TABLE settings (name TEXT, value TEXT)");
            stage
        }

        fn endpoint(&self) -> Endpoint {
            let path = self.directory.path().join("server.sqlite3");
            Endpoint::Sqlite {
                path: path.to_str().expect("text").to_owned(),
                pragmas: BTreeMap::new(),
                busy_timeout_ms: 1000,
            }
        }

        fn ask(&self, statement: &str) -> Option<String> {
            let parameters = Sql {
                endpoint: self.endpoint(),
                statements: vec![statement.to_owned()],
                connect_timeout_ms: 0,
            };
            let mut answers = crate::sql(&parameters).expect("answered");
            cell(answers.pop().expect("one answer"))
        }

        fn set(&self, name: &str, value: &str) {
            self.ask(&format!("DELETE FROM settings WHERE name = '{name}'"));
            self.ask(&format!(
                "INSERT INTO settings VALUES ('{name}', '{value}')"
            ));
        }

        fn value(&self, name: &str) -> Option<String> {
            self.ask(&format!("SELECT value FROM settings WHERE name = '{name}'"))
        }

        fn option(name: &str, original: Option<&str>, set: Option<&str>) -> OriginalOption {
            let read = format!("SELECT value FROM settings WHERE name = '{name}'");
            let restore = original.map_or_else(
                || format!("DELETE FROM settings WHERE name = '{name}'"),
                |value| format!("UPDATE settings SET value = '{value}' WHERE name = '{name}'"),
            );
            OriginalOption {
                name: name.to_owned(),
                read: read.clone(),
                original: original.map(str::to_owned),
                set: set.map(str::to_owned),
                restore,
                effective: read,
                in_effect: original.map(str::to_owned),
            }
        }

        fn keep(&self, originals: &ServerOriginals) -> std::path::PathBuf {
            let path = self.directory.path().join("originals.json");
            fs::write(&path, serde_json::to_vec(originals).expect("JSON")).expect("written");
            path
        }
    }

    #[test]
    fn what_was_set_is_restored_and_what_others_set_stays() {
        let stage = Stage::new();
        stage.set("ours", "2");
        stage.set("added", "2");
        stage.set("theirs", "3");
        stage.set("unnoted", "2");
        let options = vec![
            Stage::option("ours", Some("1"), Some("2")),
            Stage::option("added", None, Some("2")),
            Stage::option("theirs", Some("1"), Some("2")),
            Stage::option("unnoted", Some("1"), None),
        ];
        let path = stage.keep(&ServerOriginals {
            endpoint: stage.endpoint(),
            lasting: true,
            options,
            after: vec!["INSERT INTO settings VALUES ('reloaded', '1')".to_owned()],
            restart: vec![],
        });
        let outcome = restore(&path).expect("restored").expect("a file");
        assert_eq!(outcome.restored, ["ours", "added", "unnoted"]);
        assert_eq!(outcome.foreign, ["theirs"]);
        let values =
            ["ours", "added", "theirs", "unnoted", "reloaded"].map(|name| stage.value(name));
        let words = values.each_ref().map(Option::as_deref);
        assert_eq!(words, [Some("1"), None, Some("3"), Some("1"), Some("1")]);
        assert!(!path.exists(), "it holds a password");
        assert_eq!(restore(&path).expect("nothing to do"), None);
    }

    #[test]
    fn a_server_that_nobody_listens_for_keeps_the_file_only_of_what_outlasts_it() {
        let stage = Stage::new();
        let socket = stage.directory.path().join("gone.sock");
        let mut originals = ServerOriginals {
            endpoint: Endpoint::Mysql {
                socket: Some(socket.to_str().expect("text").to_owned()),
                host: None,
                port: None,
                user: "boss".to_owned(),
                password: String::new(),
                tls: None,
                database: "mysql".to_owned(),
            },
            lasting: true,
            options: vec![Stage::option("ours", Some("1"), Some("2"))],
            after: vec![],
            restart: vec![],
        };
        let path = stage.keep(&originals);
        let refused = restore(&path).expect_err("nobody answers");
        assert!(refused.to_string().contains("ours = 1"), "{refused}");
        assert!(path.exists());
        originals.lasting = false;
        stage.keep(&originals);
        assert_eq!(
            restore(&path).expect("gone with it"),
            Some(SqlRestored::default())
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_none_of_originals_is_refused_by_name() {
        let stage = Stage::new();
        let path = stage.directory.path().join("originals.json");
        fs::write(&path, "{}").expect("written");
        let refused = restore(&path).expect_err("no originals").to_string();
        assert!(refused.contains("originals.json"), "{refused}");
    }

    #[test]
    fn a_restart_that_fails_is_told_by_its_command_line() {
        let failed = run(&["false".to_owned()])
            .expect_err("it fails")
            .to_string();
        assert!(failed.starts_with("`false` failed"), "{failed}");
        run(&["true".to_owned()]).expect("it does not");
    }
}
