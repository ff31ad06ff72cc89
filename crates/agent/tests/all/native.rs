//! The native subcommands as real processes: what they say when asked wrongly, and what a kill leaves.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::serve::controller::eventually;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_ipc::reader::StreamReader;
use serde_json::{Value, json};

const INTERVAL_MS: i64 = 10;
const INTERVAL_NS: i64 = INTERVAL_MS * 1_000_000;

pub fn start(subcommand: &str, parameters: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairtrial-agent"))
        .arg(subcommand)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    match input.write_all(parameters.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {} // it refused before it read any
        written => written.expect("the parameters are sent"),
    }
    child
}

fn run(subcommand: &str, parameters: &Value) -> Output {
    let child = start(subcommand, &parameters.to_string());
    child.wait_with_output().expect("ended")
}

#[test]
fn only_the_first_process_of_a_guest_boots_since_booting_ends_with_switching_off() {
    let refused = run("boot", &json!({}));
    let said = error_of(&refused)["error"].to_string();
    assert!(
        said.contains("first process of a virtual machine"),
        "{said}"
    );
}

#[test]
fn a_load_gives_up_what_it_has_no_use_for_before_it_reads_a_word() {
    const LEFT: u64 = 1 << 1 | 1 << 14 | 1 << 24; // capabilities(7): DAC_OVERRIDE, IPC_LOCK, SYS_RESOURCE
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairtrial-agent"))
        .arg("sql")
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let status = format!("/proc/{}/status", child.id());
    eventually("it gives up all but these", || {
        let status = fs::read_to_string(&status).expect("it waits for its parameters");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(line.expect("proc(5)").trim(), 16).expect("a number")
        };
        field("NoNewPrivs:") == 1 && (field("CapEff:") | field("CapPrm:")) & !LEFT == 0
    });
    child.kill().expect("it waits");
    child.wait().expect("a child");
}

/// The one JSON line that tells an error.
fn error_of(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    let error: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        error["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{error}"
    );
    error
}

fn sampler(directory: &Path) -> Child {
    let parameters = json!({
        "interval_ms": INTERVAL_MS,
        "sources": ["cpu", "memory", "vmstat"],
        "output_directory": directory,
    });
    let mut child = start("sample", &parameters.to_string());
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("\"sampling\"") {
        line.clear();
        assert_ne!(
            said.read_line(&mut line).expect("readable"),
            0,
            "it ended early"
        );
    }
    child.stdout = Some(said.into_inner()); // nothing else is said before the end
    child
}

/// Times of the rows of a stream, cut or whole.
fn times_ns(directory: &Path, source: &str) -> Vec<i64> {
    let path = directory.join(format!("telemetry-{source}.arrows"));
    let reader = StreamReader::try_new(File::open(path).expect("there"), None).expect("a schema");
    reader
        .map_while(Result::ok)
        .flat_map(|batch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect()
}

#[test]
fn a_killed_sampler_leaves_streams_that_can_be_read() {
    for pause_ms in [0, 3, 150, 1100, 1250, 2400] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = sampler(directory.path());
        thread::sleep(Duration::from_millis(pause_ms));
        child.kill().expect("alive");
        child.wait().expect("a child");
        for source in ["cpu", "memory", "vmstat"] {
            let times = times_ns(directory.path(), source);
            assert_eq!(times.len() % 100, 0, "whole batches of a second");
            assert!(times.is_sorted_by(|a, b| a < b));
        }
    }
}

#[test]
fn a_sampler_that_is_told_to_end_has_a_row_for_each_tick_and_no_more_than_time_allows() {
    let directory = tempfile::tempdir().expect("a directory");
    let child = sampler(directory.path());
    // Rows are written by the second: some are, so the last ones are not.
    eventually("rows are written", || {
        !times_ns(directory.path(), "vmstat").is_empty()
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("alive");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    let last: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
    let ticks = last["ticks"].as_i64().expect("a count");
    assert!(last["missed_ticks"].is_i64(), "{last}");
    for source in ["cpu", "memory", "vmstat"] {
        let times = times_ns(directory.path(), source);
        assert_eq!(
            i64::try_from(times.len()).expect("few"),
            ticks + 1,
            "the last one is taken at the end"
        );
        let elapsed_ns = times[times.len() - 1] - times[0];
        // Deadlines that pass while a row is being read are answered once, so lateness never adds rows: beside the
        // deadlines inside the time there is the first row and one answer to what passed before it.
        assert!(
            ticks <= elapsed_ns / INTERVAL_NS + 3,
            "{ticks} in {elapsed_ns} ns"
        );
        assert!(ticks >= 2, "it was told to end after many");
    }
}

#[test]
fn parameters_that_are_not_understood_are_said_as_json_with_advice() {
    for subcommand in [
        "tpcc-load",
        "tpcc-drive",
        "tpcc-check",
        "sql",
        "sample",
        "restore",
        "settle",
    ] {
        let error = error_of(&run(subcommand, &json!({"misspelt": 1})));
        assert!(
            error["error"].as_str().expect("text").contains("misspelt"),
            "{subcommand}: {error}"
        );
        let empty = start(subcommand, "").wait_with_output().expect("ended");
        error_of(&empty);
    }
}

#[test]
fn what_cannot_be_done_is_said_with_the_crates_own_advice() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let error = error_of(&run(
        "restore",
        &json!({"from": missing, "to": directory.path().join("to")}),
    ));
    assert!(
        error["error"].as_str().expect("text").contains("missing"),
        "{error}"
    );
    let sample = json!({"interval_ms": 10, "sources": ["cpu"], "output_directory": missing});
    let error = error_of(&run("sample", &sample));
    assert!(
        error["error"]
            .as_str()
            .expect("text")
            .contains("telemetry-cpu"),
        "{error}"
    );
    let fast = json!({"interval_ms": 9, "sources": ["cpu"], "output_directory": directory.path()});
    error_of(&run("sample", &fast));
}

#[test]
fn facts_settle_and_restore_print_their_result_as_the_last_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let prepared = directory.path().join("prepared");
    fs::create_dir(&prepared).expect("made");
    fs::write(prepared.join("file"), "content").expect("written");
    let result = |output: Output| -> Value {
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
    };
    let restored = result(run(
        "restore",
        &json!({"from": prepared, "to": directory.path().join("work")}),
    ));
    assert_eq!(
        (&restored["files"], &restored["bytes"]),
        (&json!(1), &json!(7))
    );
    let settle = json!({"dirty_bytes": u64::MAX, "timeout_s": 1.0, "drop_caches": false});
    assert_eq!(result(run("settle", &settle))["dropped"], json!(false));
    let facts = result(run("facts", &Value::Null));
    assert!(
        facts["page_bytes"]
            .as_u64()
            .is_some_and(u64::is_power_of_two),
        "{facts}"
    );
}

#[test]
fn a_restore_killed_in_the_middle_leaves_the_old_data_and_the_next_one_finishes() {
    let directory = tempfile::tempdir().expect("a directory");
    let (prepared, work) = (
        directory.path().join("prepared"),
        directory.path().join("work"),
    );
    for (path, files) in [(&prepared, 400), (&work, 3)] {
        fs::create_dir(path).expect("made");
        for number in 0..files {
            fs::write(path.join(number.to_string()), vec![7; 50_000]).expect("written");
        }
    }
    let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
    let parameters = json!({"from": prepared, "to": work}).to_string();
    let mut child = start("restore", &parameters);
    let unfinished: PathBuf = directory.path().join(".work.restoring");
    while count(&unfinished) < 20 && child.try_wait().expect("a child").is_none() {}
    child.kill().expect("a child");
    let status = child.wait().expect("a child");
    // A fast machine may have finished, or all but its exit; the directory is whole, old or new.
    let files = count(&work);
    assert!(files == 400 || files == 3 && !status.success(), "{files}");
    let output = start("restore", &parameters)
        .wait_with_output()
        .expect("ended");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(count(&work), 400);
    assert!(!unfinished.exists());
}

#[test]
fn a_subcommand_takes_all_the_descriptors_that_it_may_have() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let parameters = json!({"interval_ms": INTERVAL_MS, "sources": ["cpu"], "output_directory": directory.path()});
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -Sn 100; exec \"$0\" sample"])
        .arg(env!("CARGO_BIN_EXE_fairtrial-agent"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    input
        .write_all(parameters.to_string().as_bytes())
        .expect("the parameters are sent");
    drop(input);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("it says something");
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("it runs");
    child.kill().expect("killed");
    child.wait().expect("ended");
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .expect("listed");
    let values: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(values[0], values[1], "soft and hard: {files}");
    assert_ne!(values[0], "100");
}
