//! A drive in a process of its own: signals, and two processes that must draw alike.
//!
//! The children are this very test binary, told by the environment what to drive.

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fairtrial_protocol::load::{Driven, TpccDrive};
use support::{completed, effects, parameters, sqlite_copy};

const PARAMETERS: &str = "FAIRTRIAL_TEST_DRIVE";

/// Drives when it is a child; as a test of its own it has nothing to do.
#[test]
fn child() {
    let Ok(text) = std::env::var(PARAMETERS) else {
        return;
    };
    let parameters: TpccDrive = serde_json::from_str(&text).expect("parameters from the parent");
    fairtrial_load::drive(&parameters, &mut std::io::stdout()).expect("the drive ends");
}

fn spawn(parameters: &TpccDrive) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child", "--nocapture"])
        .env(PARAMETERS, serde_json::to_string(parameters).expect("JSON"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts")
}

fn result(directory: &Path) -> Driven {
    let text = std::fs::read(directory.join("result.json")).expect("result.json is there");
    serde_json::from_slice(&text).expect("it is a Driven")
}

#[test]
fn sigterm_ends_the_window_and_everything_measured_is_written() {
    let copy = sqlite_copy();
    let mut asked = parameters(copy.endpoint.clone(), copy.directory.path());
    (asked.drive.transactions, asked.drive.duration_s) = (None, Some(3_600.0));
    let mut child = spawn(&asked);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let measuring = |line: &String| line.contains("\"rate\"");
    let rate = lines
        .by_ref()
        .map(|line| line.expect("UTF-8"))
        .find(measuring);
    assert!(rate.is_some(), "it measures");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
    assert!(
        rest.iter().any(|line| line.contains("\"finishing\"")),
        "{rest:?}"
    );
    assert!(child.wait().expect("it ends").success());
    let driven = result(copy.directory.path());
    let seconds = (driven.window.end_ns - driven.window.start_ns) / 1_000_000_000;
    assert!(
        (0..600).contains(&seconds),
        "the window is as long as it was: {seconds} s"
    );
    assert!(completed(&driven) > 0);
    for file in ["latency.hlog", "timeline.arrows"] {
        assert!(
            copy.directory
                .path()
                .join(file)
                .metadata()
                .expect(file)
                .len()
                > 0
        );
    }
}

#[test]
fn two_processes_with_one_seed_draw_the_same_and_leave_the_same_database() {
    let run = |seed| {
        let copy = sqlite_copy();
        let mut asked = parameters(copy.endpoint.clone(), copy.directory.path());
        (
            asked.drive.virtual_users,
            asked.drive.transactions,
            asked.drive.seed,
        ) = (1, Some(250), seed);
        assert!(
            spawn(&asked)
                .wait_with_output()
                .expect("it ends")
                .status
                .success()
        );
        (
            result(copy.directory.path()).drawn,
            effects::look(&copy.endpoint),
        )
    };
    let first = run(5);
    assert_eq!(run(5), first);
    let other = run(6);
    assert_ne!(other.0, first.0, "another seed draws something else");
    assert_ne!(other.1, first.1);
}
