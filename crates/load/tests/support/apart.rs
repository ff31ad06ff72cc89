//! Drives in a process of their own: this very test binary, told by the environment what to drive. A binary that begins
//! any has a test `child` that calls `drive_if_child`.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use fairtrial_protocol::load::TpccDrive;
use rustix::process::{Pid, Signal, kill_process};

const PARAMETERS: &str = "FAIRTRIAL_TEST_DRIVE";

/// Drives when it is a child; else there is nothing to do.
pub fn drive_if_child() {
    let Ok(text) = std::env::var(PARAMETERS) else {
        return;
    };
    let parameters: TpccDrive = serde_json::from_str(&text).expect("parameters from the parent");
    fairtrial_load::drive(&parameters, &mut std::io::stdout()).expect("the drive ends");
}

/// A drive under way, killed if it is dropped.
pub struct Apart {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Begins a drive.
pub fn begin(parameters: &TpccDrive) -> Apart {
    let mut process = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child", "--nocapture"])
        .env(PARAMETERS, serde_json::to_string(parameters).expect("JSON"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts");
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    Apart { process, lines }
}

impl Apart {
    /// Waits until it has measured for a while.
    pub fn wait_for_rate(&mut self) {
        let mut lines = self.lines.by_ref().map(|line| line.expect("UTF-8"));
        assert!(lines.any(|line| line.contains("\"rate\"")), "it measures");
    }

    /// Asks for its end.
    pub fn ask_to_end(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it is ours");
    }

    /// Waits for its end; returns what it still said.
    pub fn end(mut self) -> Vec<String> {
        let lines = self.lines.by_ref();
        let said = lines.map(|line| line.expect("UTF-8")).collect();
        assert!(self.process.wait().expect("it ends").success());
        said
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // Fails where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
