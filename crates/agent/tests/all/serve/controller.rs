//! A controller at the level of lines and chunks, talking to the real binary.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::event::Event;
use fairtrial_protocol::request::ChunkHeader;
use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE_TRIES: u32 = 3000;
const PATIENCE_PAUSE: Duration = Duration::from_millis(10);

const BINARY: &str = env!("CARGO_BIN_EXE_fairtrial-agent");

const STATE: &str = "FAIRTRIAL_STATE_DIRECTORY";

/// An agent at a place of its own.
pub struct Agent {
    pub place: TempDir,
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Agent {
    /// Starts an agent that was not greeted.
    pub fn start(place: TempDir) -> Self {
        let machine = place.path().to_owned();
        Self::start_on(&machine, place)
    }

    /// Starts an agent on a machine that others may be on, too: as many machines as directories.
    pub fn start_on(machine: &Path, place: TempDir) -> Self {
        let mut command = Command::new(BINARY);
        command.arg("serve").env(STATE, place.path());
        Self::launch(place, machine, command)
    }

    /// Starts an agent at the place of another.
    pub fn start_at(place: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command.arg("serve").env(STATE, place);
        let own = tempfile::tempdir().expect("a temporary directory");
        Self::launch(own, place, command)
    }

    /// Starts an agent by a shell script that ends in `exec "$0" serve`, with `$1` the place.
    pub fn start_by(place: TempDir, script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script, BINARY]).arg(place.path());
        command.env(STATE, place.path());
        let machine = place.path().to_owned();
        Self::launch(place, &machine, command)
    }

    fn launch(place: TempDir, machine: &Path, mut command: Command) -> Self {
        command.env("FAIRTRIAL_MACHINE_DIRECTORY", machine);
        // A test that a busy machine holds up is no controller that has gone.
        command.env("FAIRTRIAL_LIMITS", "silence_s=600");
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self {
            place,
            process,
            input,
            output,
        }
    }

    /// Starts an agent and takes the lock of a new place.
    pub fn greeted() -> Self {
        let mut agent = Self::start(tempfile::tempdir().expect("a temporary directory"));
        agent.greet();
        agent
    }

    pub fn greet(&mut self) -> Value {
        self.greet_as("me")
    }

    pub fn greet_as(&mut self, holder: &str) -> Value {
        self.ask(&json!({"request": "hello", "id": 0, "version": fairtrial_protocol::VERSION, "holder": holder, "lock": true}))
    }

    pub fn path(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }

    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub fn chunk(&mut self, id: u64, bytes: &[u8]) {
        self.send(&json!(ChunkHeader {
            id,
            chunk: bytes.len()
        }));
        self.write(bytes);
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.input
            .as_mut()
            .expect("not hung up")
            .write_all(bytes)
            .expect("the agent reads");
    }

    /// The next line; null at the end of the stream.
    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        if line.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&line).expect("JSON")
        }
    }

    /// The next event of a kind; others are passed over.
    pub fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.hear();
            assert!(!event.is_null(), "the stream ended before `{kind}`");
            if event["event"] == kind {
                let _: Event =
                    serde_json::from_value(event.clone()).expect("an event of the protocol");
                return event;
            }
        }
    }

    /// Sends a request and returns the next line.
    pub fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.hear()
    }

    /// Reads a chunk: the number of its request and its bytes.
    pub fn hear_chunk(&mut self) -> (u64, Vec<u8>) {
        let header: ChunkHeader = serde_json::from_value(self.hear()).expect("a chunk header");
        let mut bytes = vec![0; header.chunk];
        self.output.read_exact(&mut bytes).expect("the chunk");
        (header.id, bytes)
    }

    /// Descriptors the agent holds open.
    pub fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.process.id());
        std::fs::read_dir(directory).expect("alive").count()
    }

    /// Threads the agent runs.
    pub fn threads(&self) -> usize {
        let directory = format!("/proc/{}/task", self.process.id());
        std::fs::read_dir(directory).expect("alive").count()
    }

    /// Closes the agent's input, as the end of a controller does.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Kills the agent and returns its place.
    pub fn kill(mut self) -> TempDir {
        self.process.kill().expect("alive");
        self.process.wait().expect("a child");
        let empty = tempfile::tempdir().expect("a temporary directory");
        std::mem::replace(&mut self.place, empty)
    }

    /// Waits for the agent's own end.
    pub fn end(&mut self) {
        self.hang_up();
        assert!(self.process.wait().expect("a child").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.hang_up();
        let _ = self.process.wait(); // it ends when nobody talks to it any more
    }
}

/// Waits until something holds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..PATIENCE_TRIES {
        if holds() {
            return;
        }
        thread::sleep(PATIENCE_PAUSE);
    }
    panic!("{what}");
}

/// Whether a process runs (a zombie does not).
pub fn runs(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// A process that streams what it writes.
pub fn spawn(id: u64, script: &str) -> Value {
    let stream = json!({"kind": "stream"});
    json!({"request": "spawn", "id": id, "name": "it", "argv": ["sh", "-c", script], "stdout": stream, "stderr": stream})
}

/// A step that writes a file and restores it.
pub fn write_step(id: u64, path: &str, value: &str) -> Value {
    let step = json!({
        "name": path,
        "action": {"kind": "write", "path": path, "value": value},
        "check": {"read": {"kind": "file", "path": path}, "expect": value, "normalise": "trim"},
        "inverse": {"kind": "restore"},
    });
    json!({"request": "change", "id": id, "step": step})
}
