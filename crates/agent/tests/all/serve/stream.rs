//! The stream itself: what comes between what, and who waits for whom.

use std::fs;

use super::controller::{Agent, eventually, spawn, write_step};
use serde_json::{Value, json};

fn ping(id: u64) -> Value {
    json!({"request": "ping", "id": id})
}

#[test]
fn a_ping_is_answered_while_a_step_runs() {
    let mut agent = Agent::greeted();
    let gate = agent.path("gate");
    let argv = json!([
        "sh",
        "-c",
        format!("until test -e {gate}; do sleep 0.01; done")
    ]);
    let step = json!({"name": "slow", "action": {"kind": "execute", "argv": argv}, "inverse": {"kind": "none"}});
    agent.send(&json!({"request": "change", "id": 1, "step": step}));
    assert_eq!(agent.ask(&ping(2))["event"], "pong");
    fs::write(gate, "").expect("writable");
    let changed = agent.hear();
    assert_eq!(
        (&changed["event"], &changed["id"]),
        (&json!("changed"), &json!(1))
    );
}

#[test]
fn a_ping_is_answered_before_what_waits_to_be_written() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "exec yes"));
    agent.hear_of("spawned");
    for id in 2..12 {
        agent.send(&ping(id));
        assert_eq!(agent.hear_of("pong")["id"], id);
    }
}

#[test]
fn a_ping_is_answered_between_the_chunks_of_a_put() {
    let mut agent = Agent::greeted();
    let path = agent.path("file");
    agent.send(&json!({"request": "put", "id": 1, "path": path, "bytes": 6, "mode": 0o600}));
    agent.chunk(1, b"one");
    assert_eq!(agent.ask(&ping(2))["id"], 2);
    assert!(
        fs::metadata(&path).is_err(),
        "a file has its name only when it is whole"
    );
    agent.chunk(1, b"two");
    assert_eq!(agent.hear(), json!({"event": "done", "id": 1}));
    assert_eq!(fs::read(path).expect("whole"), b"onetwo");
}

#[test]
fn two_files_may_be_on_their_way_at_once() {
    let mut agent = Agent::greeted();
    let paths = [agent.path("a"), agent.path("b")];
    for (id, path) in (1..).zip(&paths) {
        agent.send(&json!({"request": "put", "id": id, "path": path, "bytes": 2, "mode": 0o644}));
    }
    for bytes in [b"x", b"y"] {
        agent.chunk(2, bytes);
        agent.chunk(1, bytes);
    }
    assert_eq!(
        (agent.hear()["id"].clone(), agent.hear()["id"].clone()),
        (json!(2), json!(1))
    );
    assert!(
        paths
            .iter()
            .all(|path| fs::read(path).expect("whole") == b"xy")
    );
}

#[test]
fn a_put_that_cannot_be_written_swallows_its_chunks_and_fails_once() {
    let mut agent = Agent::greeted();
    fs::write(agent.path("file"), "").expect("writable");
    let below = agent.path("file/below");
    agent.send(&json!({"request": "put", "id": 1, "path": below, "bytes": 4, "mode": 0o644}));
    agent.chunk(1, b"lo");
    agent.chunk(1, b"st");
    let failed = agent.hear();
    assert_eq!(
        (&failed["event"], &failed["id"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(agent.ask(&ping(2))["event"], "pong");
}

#[test]
fn a_put_that_never_ends_leaves_no_file() {
    let mut agent = Agent::greeted();
    let path = agent.path("below/file");
    agent.send(&json!({"request": "put", "id": 1, "path": path, "bytes": 4, "mode": 0o644}));
    agent.chunk(1, b"lo");
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0})); // answered in order, unlike a ping
    agent.end();
    let left: Vec<_> = fs::read_dir(agent.path("below")).expect("made").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_comes_in_chunks_of_its_own_number() {
    let mut agent = Agent::greeted();
    let content: Vec<u8> = (0..200_000_u32)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    fs::write(agent.path("file"), &content).expect("writable");
    let path = agent.path("file");
    let file = agent.ask(&json!({"request": "get", "id": 9, "path": path}));
    assert_eq!(
        file,
        json!({"event": "file", "id": 9, "bytes": content.len()})
    );
    let mut got = Vec::new();
    while got.len() < content.len() {
        let (id, bytes) = agent.hear_chunk();
        assert_eq!(id, 9);
        assert!(bytes.len() <= fairtrial_protocol::CHUNK_BYTES);
        got.extend(bytes);
    }
    assert_eq!(got, content);
}

#[test]
fn requests_may_be_sent_without_waiting_for_answers() {
    let mut agent = Agent::greeted();
    for id in 1..=200 {
        agent.send(&json!({"request": "undo", "id": id, "keep": 0}));
    }
    for id in 1..=200 {
        assert_eq!(agent.hear()["id"], id);
    }
}

#[test]
fn a_second_hello_is_refused_and_harmless() {
    let mut agent = Agent::greeted();
    let refused = agent.greet();
    assert_eq!(
        (&refused["event"], &refused["code"]),
        (&json!("failed"), &json!("refused"))
    );
    assert_eq!(agent.ask(&ping(1))["event"], "pong");
}

#[test]
fn bye_is_the_last_word_and_comes_after_everything_is_given_back() {
    let mut agent = Agent::greeted();
    let path = agent.path("setting");
    fs::write(&path, "before").expect("writable");
    agent.ask(&write_step(1, &path, "after"));
    agent.send(&spawn(2, "exec sleep 1000"));
    let pid = agent.hear_of("spawned")["pid"].clone();
    agent.send(&json!({"request": "bye", "id": 3}));
    assert_eq!(agent.hear_of("exited")["signal"], 15);
    assert_eq!(agent.hear(), json!({"event": "bye", "id": 3, "failed": []}));
    assert!(!super::controller::runs(&pid));
    assert_eq!(fs::read_to_string(path).expect("readable"), "before");
    assert_eq!(agent.hear(), Value::Null);
}

#[test]
fn bye_is_heard_though_a_step_hangs() {
    let mut agent = Agent::greeted();
    let begun = agent.path("begun");
    let argv = json!(["sh", "-c", format!("touch {begun}; exec sleep 1000")]);
    let step = json!({"name": "hangs", "action": {"kind": "execute", "argv": argv}, "inverse": {"kind": "none"}});
    agent.send(&json!({"request": "change", "id": 1, "step": step}));
    eventually("the step did not begin", || fs::metadata(&begun).is_ok());
    agent.send(&json!({"request": "bye", "id": 2}));
    assert_eq!(agent.hear()["event"], "failed");
    assert_eq!(agent.hear()["event"], "bye");
}

#[test]
fn the_end_of_a_stream_that_nobody_reads_is_still_an_end() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "exec yes"));
    let pid = agent.hear_of("spawned")["pid"].clone();
    agent.hang_up(); // and reads no more: the pipe is full
    eventually("the process stayed", || !super::controller::runs(&pid));
}
