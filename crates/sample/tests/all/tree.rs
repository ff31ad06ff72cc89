//! A real process followed with its children.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use fairtrial_protocol::sample::Sample;
use fairtrial_sample::Sampler;

use crate::stream::columns;

/// Counts to a number, which takes a tick of the clock at least.
const COUNTING: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

#[test]
fn the_children_of_a_real_process_count_while_they_live_and_once_they_have_ended() {
    let output = tempfile::tempdir().expect("a directory");
    // One child that has ended, one that lives; their parent does nothing itself.
    let script = format!(
        "({COUNTING}); ({COUNTING}; echo ready; read -r line <&3) & wait; echo over; read -r line"
    );
    let mut parent = Command::new("sh")
        .args(["-c", &format!("exec 3<&0; {script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = BufReader::new(parent.stdout.take().expect("a pipe"));
    let mut stdin = parent.stdin.take().expect("a pipe");
    let mut wait_for = |word: &str| {
        let mut line = String::new();
        said.read_line(&mut line).expect("it speaks");
        assert_eq!(line.trim(), word);
    };
    let process = parent.id().cast_signed();
    wait_for("ready");
    let parameters = Sample {
        interval_ms: 1000,
        sources: vec![],
        processes: [("alone".to_owned(), process)].into(),
        process_trees: [("all".to_owned(), process)].into(),
        server: None,
        exporters: vec![],
        commands: vec![],
        shown: vec![],
        output_directory: output.path().to_str().expect("plain").to_owned(),
    };
    let mut sampler = Sampler::open(Path::new("/proc"), &parameters).expect("opened");
    sampler.tick().expect("sampled");
    stdin.write_all(b"end\n").expect("it listens");
    wait_for("over");
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    drop(stdin);
    parent.wait().expect("a child");

    let read = |name: &str| {
        columns(
            &output
                .path()
                .join(format!("telemetry-process-{name}.arrows")),
        )
    };
    let (alone, all) = (read("alone"), read("all"));
    assert_eq!(all["processes"], [Some(2), Some(1)]);
    for row in 0..2 {
        let ticks = |columns: &std::collections::BTreeMap<String, Vec<Option<u64>>>| {
            columns["user_ticks"][row].expect("ticks")
                + columns["system_ticks"][row].expect("ticks")
        };
        assert!(ticks(&all) >= ticks(&alone) + 2, "two children, row {row}");
    }
    assert!(all["user_ticks"][1] >= all["user_ticks"][0]);
}
