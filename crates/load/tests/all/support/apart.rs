//! Drives in a process of their own: this very test binary, told by the environment what to drive, and asked to end
//! where nothing else ends it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use fairtrial_protocol::limits::VARIABLE;
use fairtrial_protocol::load::{Arrivals, Drive, Driven, Progress, Spacing, TpccDrive};
use fairtrial_protocol::oltp::OltpDrive;
use fairtrial_protocol::script::ScriptDrive;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::result;

const PARAMETERS: &str = "FAIRTRIAL_TEST_DRIVE";

/// What a child says before the error that its drive ended with.
const FAILED: &str = "the drive failed: ";

/// For servers that never answer again: a drive that waits for them gives up soon.
pub const IMPATIENT: [(&str, &str); 1] = [(VARIABLE, "stall_s=0.5,finish_s=0.5")];

/// Longer than any machine takes to get over all that breaks: for drives that are asked to end.
const LONG_S: f64 = 600.0;

/// Lets a drive last until it is asked to end, by users who think: while something breaks they need not be busy.
pub fn endless(drive: &mut Drive) {
    (drive.transactions, drive.duration_s) = (None, Some(LONG_S));
    drive.arrivals = Arrivals::Closed {
        think_s: 0.005,
        spacing: Spacing::Exponential,
    };
}

/// What to drive.
#[derive(Serialize, Deserialize)]
pub enum AnyDrive {
    Tpcc(TpccDrive),
    Oltp(OltpDrive),
    Script(ScriptDrive),
}

impl AnyDrive {
    fn drive(&self) -> &Drive {
        match self {
            Self::Tpcc(request) => &request.drive,
            Self::Oltp(request) => &request.drive,
            Self::Script(request) => &request.drive,
        }
    }
}

/// Drives when it is a child; as a test of its own it has nothing to do.
#[test]
fn child() {
    let Ok(text) = std::env::var(PARAMETERS) else {
        return;
    };
    let lines = &mut std::io::stdout();
    let ended = match serde_json::from_str(&text).expect("parameters from the parent") {
        AnyDrive::Tpcc(request) => fairtrial_load::drive(&request, lines),
        AnyDrive::Oltp(request) => fairtrial_load::drive_oltp(&request, lines),
        AnyDrive::Script(request) => fairtrial_load::drive_script(&request, lines),
    };
    if let Err(error) = ended {
        let error = fairtrial_load::in_full(&error);
        writeln!(lines, "{FAILED}{error}").expect("the parent reads");
    }
}

/// Runs a test of this binary in a process of its own; says whether this is that process.
pub fn is_apart(test: &str) -> bool {
    const APART: &str = "FAIRTRIAL_TEST_APART";
    if std::env::var_os(APART).is_some() {
        return true;
    }
    let ran = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test, "--nocapture"])
        .env(APART, "1")
        .output()
        .expect("this binary starts");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    false
}

/// A drive under way, killed if it is dropped.
pub struct DriveProcess {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    directory: PathBuf,
}

/// Begins a drive.
pub fn begin(request: &AnyDrive) -> DriveProcess {
    begin_with(request, &[])
}

/// Begins a drive with variables of its own.
pub fn begin_with(request: &AnyDrive, variables: &[(&str, &str)]) -> DriveProcess {
    let binary = std::env::current_exe().expect("this binary");
    begin_by(&mut Command::new(binary), request, variables)
}

/// Begins a drive that may have this many open files.
pub fn begin_with_files(request: &AnyDrive, most: u32) -> DriveProcess {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")]);
    shell.arg(std::env::current_exe().expect("this binary"));
    begin_by(&mut shell, request, &[])
}

fn begin_by(command: &mut Command, request: &AnyDrive, variables: &[(&str, &str)]) -> DriveProcess {
    let mut process = command
        .args(["--exact", "support::apart::child", "--nocapture"])
        .env(PARAMETERS, serde_json::to_string(request).expect("JSON"))
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts");
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let directory = PathBuf::from(&request.drive().output_directory);
    DriveProcess {
        process,
        lines,
        directory,
    }
}

impl DriveProcess {
    /// Waits until a transaction has ended, well or not.
    pub fn wait_for_rate(&mut self) {
        let has_rate = |said| matches!(said, Progress::Rate { per_s, .. } if per_s > 0.0);
        self.wait_for("a rate", has_rate);
    }

    /// Waits until this many errors are counted, of the whole drive.
    pub fn wait_for_errors(&mut self, least: u64) {
        let has_errors = |said| matches!(said, Progress::Rate { errors, .. } if errors >= least);
        self.wait_for("errors", has_errors);
    }

    /// Waits until the window begins.
    pub fn wait_for_window(&mut self) {
        self.wait_for("a window", |said| {
            matches!(said, Progress::Measuring { .. })
        });
    }

    fn wait_for(&mut self, what: &str, is_it: impl Fn(Progress) -> bool) {
        let mut why = String::new();
        for line in self.lines.by_ref() {
            let line = line.expect("UTF-8");
            // libtest's own lines are among them.
            if serde_json::from_str(&line).is_ok_and(&is_it) {
                return;
            }
            why.extend(line.strip_prefix(FAILED));
        }
        panic!("it ended before it had {what}: {why}");
    }

    /// Asks for its end.
    pub fn ask_to_end(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it is ours");
    }

    /// Waits for its end, good or not; returns what it still said.
    pub fn said(mut self) -> Vec<String> {
        self.rest()
    }

    /// Waits for its good end; returns what it still said.
    pub fn end(self) -> Vec<String> {
        let said = self.said();
        let failed = said.iter().find(|line| line.starts_with(FAILED));
        assert_eq!(failed, None);
        said
    }

    /// Waits for its end by an error; returns what it says.
    pub fn error(mut self) -> String {
        let said = self.rest();
        let failed = said.iter().find_map(|line| line.strip_prefix(FAILED));
        failed.expect("it cannot end well").to_owned()
    }

    fn rest(&mut self) -> Vec<String> {
        let lines = self.lines.by_ref();
        let said = lines.map(|line| line.expect("UTF-8")).collect();
        assert!(self.process.wait().expect("it ends").success());
        said
    }

    /// Asks for its end and waits for it; returns what it has written.
    pub fn result(self) -> Driven {
        let directory = self.directory.clone();
        self.ask_to_end();
        self.end();
        result(&directory)
    }
}

impl Drop for DriveProcess {
    fn drop(&mut self) {
        // Fails where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
