//! Many processes, much output, and processes that try to get away.

use std::collections::HashSet;
use std::fs;

use super::controller::{Agent, eventually, runs, spawn, write_step};
use serde_json::{Value, json};

const MANY: u64 = 500;
const FLOOD_BYTES: usize = 16 << 20;
const FLOOD_LINE_BYTES: usize = 256;
const PINGS: u64 = 10;
const LINE_BYTES: usize = 64 * 1024;

#[test]
fn of_many_short_processes_none_is_lost_and_nothing_of_them_stays() {
    let mut agent = Agent::greeted();
    let own = agent.threads();
    agent.send(&spawn(0, "echo warm"));
    agent.hear_of("exited");
    eventually("the follower stayed", || agent.threads() == own);
    let before = agent.descriptors();
    let (mut spawned, mut said, mut codes) = (HashSet::new(), HashSet::new(), Vec::new());
    for batch in 0..MANY / 50 {
        for id in batch * 50..batch * 50 + 50 {
            agent.send(&spawn(
                id + 1,
                &format!("echo {}; exit {}", id + 1, id % 256),
            ));
        }
        let goal = usize::try_from(batch + 1).expect("few") * 50;
        while codes.len() < goal {
            let event = agent.hear();
            let process = event["process"]
                .as_u64()
                .unwrap_or_else(|| panic!("{event}"));
            match event["event"].as_str().expect("an event") {
                "spawned" => assert!(spawned.insert(process), "{event}"),
                "output" => assert!(said.insert((process, event["line"].clone().to_string()))),
                "exited" => {
                    assert_eq!(event["code"], (process - 1) % 256, "{event}");
                    codes.push(process);
                }
                _ => panic!("{event}"),
            }
        }
    }
    assert_eq!(spawned, (1..=MANY).collect());
    assert_eq!(
        said,
        (1..=MANY)
            .map(|process| (process, format!("\"{process}\"")))
            .collect()
    );
    assert_eq!(
        codes.iter().copied().collect::<HashSet<_>>(),
        spawned,
        "each ended once"
    );
    eventually("threads stayed", || agent.threads() == own);
    assert_eq!(agent.descriptors(), before);
}

#[test]
fn programs_of_steps_leave_no_descriptor_behind_either() {
    let mut agent = Agent::greeted();
    let path = agent.path("setting");
    fs::write(&path, "before").expect("writable");
    let cycle = |agent: &mut Agent, id: u64| {
        assert_eq!(
            agent.ask(&write_step(id, &path, "after"))["event"],
            "changed"
        );
        let step = json!({
            "name": "program",
            "action": {"kind": "execute", "argv": ["true"]},
            "check": {"read": {"kind": "output", "argv": ["echo", "x"]}, "expect": "x"},
            "inverse": {"kind": "execute", "argv": ["true"]},
        });
        assert_eq!(
            agent.ask(&json!({"request": "change", "id": id, "step": step}))["event"],
            "changed"
        );
        assert_eq!(
            agent.ask(&json!({"request": "undo", "id": id, "keep": 0}))["steps"],
            2
        );
    };
    cycle(&mut agent, 1);
    let before = agent.descriptors();
    for id in 2..12 {
        cycle(&mut agent, id);
    }
    assert_eq!(agent.descriptors(), before);
}

#[test]
fn a_flood_loses_no_byte_and_holds_no_ping_up() {
    let mut agent = Agent::greeted();
    let flood_line = "x".repeat(FLOOD_LINE_BYTES - 1);
    let enough = agent.path("enough");
    // What is counted, and then a flood that does not end before the pings are answered.
    let endless =
        format!("yes & flood=$!; until test -e {enough}; do sleep 0.02; done; kill $flood");
    let script = format!("yes {flood_line} | head -c {FLOOD_BYTES}; {endless}");
    agent.send(&spawn(1, &script));
    let (mut bytes, mut answered) = (0, 0);
    agent.send(&json!({"request": "ping", "id": 100}));
    loop {
        let event = agent.hear();
        match event["event"].as_str().expect("an event") {
            "output" => {
                let line = event["line"].as_str().expect("text");
                assert!(line == flood_line || line == "y", "{line}");
                bytes += if line == "y" { 0 } else { line.len() + 1 };
            }
            "pong" => {
                assert_eq!(event["id"], 100 + answered);
                answered += 1;
                if answered < PINGS {
                    agent.send(&json!({"request": "ping", "id": 100 + answered}));
                } else {
                    fs::write(&enough, "").expect("writable");
                }
            }
            "exited" => break,
            _ => {}
        }
    }
    assert_eq!((bytes, answered), (FLOOD_BYTES, PINGS));
}

#[test]
fn a_line_that_is_too_long_is_cut_and_the_next_is_whole() {
    let mut agent = Agent::greeted();
    let script = format!(
        "head -c {} /dev/zero | tr '\\0' x; echo; echo next; printf last",
        3 * LINE_BYTES
    );
    agent.send(&spawn(1, &script));
    let long = agent.hear_of("output");
    assert!(long["line"] == "x".repeat(LINE_BYTES), "cut at 64 KiB");
    assert_eq!(agent.hear_of("output")["line"], "next");
    assert_eq!(
        agent.hear_of("output")["line"],
        "last",
        "a last line may lack its newline"
    );
    assert_eq!(
        agent.hear()["event"],
        "exited",
        "and nothing else of the long line comes"
    );
}

#[test]
fn a_signal_to_a_process_that_has_ended_is_no_error_and_reaches_nobody() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "exit 3"));
    assert_eq!(agent.hear_of("exited")["code"], 3);
    for group in [false, true] {
        let signal =
            json!({"request": "signal", "id": 2, "process": 0, "signal": 9, "group": group});
        assert_eq!(agent.ask(&signal), json!({"event": "done", "id": 2}));
    }
    let unknown = agent.ask(&json!({"request": "signal", "id": 3, "process": 1, "signal": 9}));
    assert_eq!(
        (&unknown["code"], &unknown["message"]),
        (&json!("not_found"), &json!("process 1 does not exist"))
    );
    for number in [0, -1, 1000] {
        let odd = agent.ask(&json!({"request": "signal", "id": 4, "process": 0, "signal": number}));
        assert_eq!(odd["code"], "invalid", "{odd}");
    }
}

#[test]
fn a_signal_reaches_the_process_alone_or_its_whole_group() {
    let mut agent = Agent::greeted();
    let script = "trap 'echo got; exit 5' USR1; sleep 1000 & echo $!; wait";
    for (process, group) in [(0, false), (1, true)] {
        agent.send(&spawn(1, script));
        let child = agent.hear_of("output")["line"].clone();
        let child: Value =
            serde_json::from_str(child.as_str().expect("text")).expect("a process id");
        // Until then it is a shell that may still take the signal as its parent does.
        let name = format!("/proc/{child}/comm");
        eventually("the child began no sleep", || {
            fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")
        });
        agent.send(&json!({"request": "signal", "id": 2, "process": process, "signal": 10, "group": group}));
        assert_eq!(agent.hear_of("output")["line"], "got");
        assert_eq!(agent.hear_of("exited")["code"], 5);
        if group {
            eventually("the child got no signal", || !runs(&child));
        } else {
            assert!(runs(&child), "only the shell was meant");
        }
    }
}

#[test]
fn grandchildren_that_left_group_session_and_parents_end_with_the_stream() {
    let mut agent = Agent::greeted();
    // Forks twice, leads a session of its own, has no mark in its environment, closes everything: a daemon.
    let daemon =
        "setsid env -i /bin/sh -c '(/bin/sleep 1000 >/dev/null 2>&1 </dev/null & echo $!)'";
    agent.send(&spawn(1, &format!("{daemon}; trap '' TERM; {daemon}")));
    let mut daemons = Vec::new();
    loop {
        let event = agent.hear();
        match event["event"].as_str().expect("an event") {
            "output" => {
                let pid = event["line"].as_str().expect("text");
                daemons
                    .push(serde_json::from_str::<Value>(pid).unwrap_or_else(|_| panic!("{pid}")));
            }
            "exited" => break,
            _ => {}
        }
    }
    assert_eq!(daemons.len(), 2);
    assert!(daemons.iter().all(runs));
    assert_eq!(
        agent.ask(&json!({"request": "bye", "id": 2}))["event"],
        "bye"
    );
    assert!(
        !daemons.iter().any(runs),
        "the second ignores SIGTERM, and is killed"
    );
}

/// Starts a shell script that prints the numbers of processes it leaves, and returns them once it has ended.
fn left_by(agent: &mut Agent, id: u64, script: &str, of_trial: bool) -> Vec<Value> {
    let mut request = spawn(id, script);
    request["of_trial"] = json!(of_trial);
    agent.send(&request);
    let mut left = Vec::new();
    loop {
        let event = agent.hear();
        match event["event"].as_str().expect("an event") {
            "output" => {
                let pid = event["line"].as_str().expect("text");
                left.push(serde_json::from_str(pid).unwrap_or_else(|_| panic!("{pid}")));
            }
            "exited" => return left,
            _ => {}
        }
    }
}

#[test]
fn a_sweep_ends_what_a_trial_left_running_and_nothing_else() {
    let mut agent = Agent::greeted();
    let quiet = ">/dev/null 2>&1 </dev/null & echo $!";
    // By the mark, in a session of its own; by the group, without a mark and deaf to SIGTERM; by descent from that one,
    // with neither.
    let inner = agent.path("inner");
    let script = format!(
        "setsid sleep 1000 {quiet}
         env -i /bin/sh -c 'trap \"\" TERM
            /usr/bin/setsid /bin/sleep 1000 & echo $! >{inner}
            while :; do /bin/sleep 1; done' {quiet}"
    );
    let mut left = left_by(&mut agent, 1, &script, true);
    eventually("nothing is left running", || {
        fs::read_to_string(&inner).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = fs::read_to_string(&inner).expect("readable");
    left.push(serde_json::from_str(&pid).expect("a number"));
    let name = format!("/proc/{}/comm", left[0]);
    eventually("the first began no sleep", || {
        fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")
    });
    let others = left_by(&mut agent, 2, &format!("setsid sleep 1000 {quiet}"), false);
    assert!(left.iter().chain(&others).all(runs));
    let sweep = json!({"request": "sweep", "id": 3, "grace_ms": 100});
    agent.send(&sweep);
    let swept = agent.hear_of("swept");
    assert_eq!(swept["left"], 0);
    let programs = swept["programs"].as_array().expect("names");
    assert!(programs.contains(&json!("sh")) && programs.contains(&json!("sleep")));
    assert!(!left.iter().any(runs), "ended");
    assert!(others.iter().all(runs), "not the trial's");
    let again = agent.ask(&json!({"request": "sweep", "id": 4, "grace_ms": 100}));
    assert_eq!(
        again,
        json!({"event": "swept", "id": 4, "programs": [], "killed": 0, "left": 0})
    );
}

#[test]
fn a_process_whose_child_holds_its_output_open_has_ended_all_the_same() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "sleep 1000 & echo said; exit 4"));
    assert_eq!(agent.hear_of("output")["line"], "said");
    assert_eq!(agent.hear()["code"], 4);
}

#[test]
fn what_a_process_used_is_told_with_its_end() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(
        1,
        "head -c 30000000 /dev/zero | tail -c 30000000 > /dev/null",
    ));
    let exited = agent.hear_of("exited");
    assert_eq!(
        (&exited["code"], &exited["signal"]),
        (&json!(0), &Value::Null)
    );
    let resident = exited["usage"]["max_resident_bytes"]
        .as_u64()
        .expect("bytes");
    assert!(resident > 30_000_000, "tail keeps all of it: {resident}");
    assert!(exited["usage"]["minor_faults"].as_u64().expect("a count") > 1000);
}

#[test]
fn a_second_session_is_told_who_holds_the_place_and_both_work() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "exec sleep 1000"));
    let pid = agent.hear_of("spawned")["pid"].clone();
    let mut other = Agent::start_at(agent.place.path());
    let refused = other.greet_as("you");
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!("busy"), &json!("the place is held by me"))
    );
    let mut looking = Agent::start_at(agent.place.path());
    let hello = json!({"request": "hello", "id": 0, "version": fairtrial_protocol::VERSION, "holder": "b", "lock": false});
    assert_eq!(
        looking.ask(&hello)["leftovers"],
        json!({"undone": 0, "killed": 0, "failed": [], "overwritten": []})
    );
    let path = agent.path("setting");
    fs::write(&path, "before").expect("writable");
    assert_eq!(
        looking.ask(&write_step(1, &path, "after"))["code"],
        "refused"
    );
    for id in 0..100 {
        agent.send(&spawn(id, &format!("echo {id}")));
        looking.send(&spawn(id, &format!("echo {id}")));
    }
    for session in [&mut looking, &mut agent] {
        let mut heard = HashSet::new();
        while heard.len() < 100 {
            heard.insert(session.hear_of("output")["line"].to_string());
        }
    }
    looking.end();
    assert!(runs(&pid), "the end of one session is no other's");
}
