//! A governor as a process of a test's own, and what it has said so far.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::Endpoint;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::native::start;

/// A crowded machine's patience, in looks of a tenth of a second.
const LOOKS: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(100);
const AGENT: &str = env!("CARGO_BIN_EXE_fairtrial-agent");

/// A governor at work, and its directory.
pub struct GovernorProcess {
    pub child: Child,
    output: BufReader<ChildStdout>,
    pub directory: TempDir,
}

impl GovernorProcess {
    pub fn parameters(endpoint: &Endpoint, directory: &Path, changes: &Value) -> Value {
        let mut parameters = json!({
            "endpoint": endpoint, "period_ms": 20, "answer_limit_ms": 5000,
            "threads": {"least": 1}, "batch_size": {"least": 1},
            "low_water_percent": 20, "stop_percent": 80, "hysteresis_percent": 2,
            "output_directory": directory, "originals": directory.join("originals.json"),
        });
        for (name, value) in changes.as_object().expect("a mapping") {
            parameters[name] = value.clone();
        }
        parameters
    }

    pub fn spawn(endpoint: &Endpoint, changes: &Value) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let parameters = Self::parameters(endpoint, directory.path(), changes);
        let mut child = start("govern-purge", &parameters.to_string());
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            output,
            directory,
        }
    }

    /// One that has said that it governs.
    pub fn start(endpoint: &Endpoint, changes: &Value) -> Self {
        let mut governor = Self::spawn(endpoint, changes);
        let mut line = String::new();
        governor.output.read_line(&mut line).expect("a line");
        assert!(line.contains("\"started\""), "{line:?}");
        governor
    }

    pub fn originals(&self) -> PathBuf {
        self.directory.path().join("originals.json")
    }

    pub fn decisions(&self) -> Vec<Value> {
        let path = self.directory.path().join("governor-decisions.jsonl");
        let text = fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    pub fn named(&self) -> Vec<String> {
        let name = |each: &Value| each["decision"].as_str().expect("a name").to_owned();
        self.decisions().iter().map(name).collect()
    }

    pub fn wait_for(&self, decision: &str) {
        wait_until(
            || self.named().iter().any(|name| name == decision),
            || format!("no {decision} among {:?}", self.decisions()),
        );
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    /// Ends it; returns its decisions and what it said.
    pub fn end(&mut self) -> (Vec<Value>, ProcessExit) {
        self.signal(Signal::TERM);
        let said = self.wait();
        (self.decisions(), said)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ProcessExit {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.output.read_to_string(&mut stdout).expect("its lines");
        let errors = self.child.stderr.as_mut().expect("piped");
        errors.read_to_string(&mut stderr).expect("its errors");
        let code = self.child.wait().expect("ended").code();
        ProcessExit {
            code,
            stdout,
            stderr,
        }
    }
}

/// How a process ended, and with which words.
#[derive(Debug)]
pub struct ProcessExit {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl ProcessExit {
    pub fn last_line(&self) -> Value {
        let line = self
            .stdout
            .lines()
            .last()
            .unwrap_or_else(|| panic!("{self:?}"));
        serde_json::from_str(line).expect("JSON")
    }
}

pub fn wait_until(mut holds: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        thread::sleep(PAUSE);
    }
    panic!("{}", otherwise());
}

pub fn restore(originals: &Path) -> ProcessExit {
    let output = Command::new(AGENT)
        .arg("govern-restore")
        .arg(originals)
        .output()
        .expect("it runs");
    ProcessExit {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

impl Drop for GovernorProcess {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
