//! Each kind of step, done and undone by a real agent; and undoing that is itself cut short.

use std::fs;
use std::path::Path;

use super::controller::{Agent, eventually, spawn, write_step};
use rustix::process::geteuid;
use serde_json::{Value, json};

fn change(agent: &mut Agent, step: &Value) -> Value {
    agent.ask(&json!({"request": "change", "id": 1, "step": step}))
}

fn undo(agent: &mut Agent) -> Value {
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}))
}

fn content(path: &str) -> String {
    fs::read_to_string(path).expect("readable")
}

fn create(path: &str) -> Value {
    json!({"name": path, "action": {"kind": "create", "path": path}, "inverse": {"kind": "restore"}})
}

fn tmpfs(target: &str, options: &str) -> Value {
    let action = json!({"kind": "mount", "source": "none", "target": target, "file_system": "tmpfs", "options": options});
    json!({"name": target, "action": action, "inverse": {"kind": "restore"}})
}

/// A step whose way back notes its own name in a file.
fn noted(name: &str, file: &str, back: &str) -> Value {
    let argv = json!(["sh", "-c", format!("{back} echo {name} >> {file}")]);
    let action = json!({"kind": "execute", "argv": ["true"]});
    json!({"name": name, "action": action, "inverse": {"kind": "execute", "argv": argv}})
}

fn is_mounted(path: &str) -> bool {
    let table = content("/proc/self/mountinfo");
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(path))
}

#[test]
fn a_mount_in_a_made_directory_is_taken_down_before_the_directory_goes() {
    if !geteuid().is_root() {
        return; // mounting takes root
    }
    let mut agent = Agent::greeted();
    let target = agent.path("mounted");
    assert_eq!(change(&mut agent, &create(&target))["event"], "changed");
    assert_eq!(
        change(&mut agent, &tmpfs(&target, "size=1m,mode=0700"))["event"],
        "changed"
    );
    assert!(is_mounted(&target));
    fs::write(format!("{target}/file"), "inside").expect("writable");
    agent.send(&spawn(3, &format!("cd {target}; exec sleep 1000")));
    agent.hear_of("spawned");
    agent.send(&json!({"request": "bye", "id": 4}));
    assert_eq!(
        agent.hear_of("bye")["failed"],
        json!([]),
        "its user is stopped before it is unmounted"
    );
    assert!(!is_mounted(&target) && !Path::new(&target).exists());
}

#[test]
fn a_killed_agents_mount_is_taken_down_by_the_next() {
    if !geteuid().is_root() {
        return; // mounting takes root
    }
    let mut agent = Agent::greeted();
    let target = agent.path("mounted");
    fs::create_dir(&target).expect("made");
    fs::write(format!("{target}/below"), "kept").expect("writable");
    assert_eq!(change(&mut agent, &tmpfs(&target, ""))["event"], "changed");
    let mut next = Agent::start(agent.kill());
    assert!(is_mounted(&target));
    assert_eq!(next.greet()["leftovers"]["undone"], 1);
    assert!(!is_mounted(&target));
    assert_eq!(content(&format!("{target}/below")), "kept");
}

#[test]
fn a_mount_that_fails_says_what_mount_said_and_leaves_nothing_applied() {
    let mut agent = Agent::greeted();
    let target = agent.path("mounted");
    fs::create_dir(&target).expect("made");
    let failed = change(&mut agent, &tmpfs(&target, "size=nonsense"));
    assert_eq!(failed["code"], "system", "{failed}");
    assert!(
        failed["message"].as_str().expect("text").contains("mount"),
        "{failed}"
    );
    assert_eq!(undo(&mut agent)["steps"], 0);
}

#[test]
fn a_directory_with_something_mounted_below_is_not_emptied() {
    if !geteuid().is_root() {
        return; // mounting takes root
    }
    let mut agent = Agent::greeted();
    let (made, below) = (agent.path("made"), agent.path("made/below"));
    change(&mut agent, &create(&made));
    fs::create_dir(&below).expect("made");
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status();
        assert!(status.expect("ran").success());
    };
    mount(&["mount", "-t", "tmpfs", "none", &below]); // by someone else, who has not asked to undo it
    fs::write(format!("{below}/file"), "someone else's").expect("writable");
    let undone = undo(&mut agent);
    let kept = content(&format!("{below}/file"));
    mount(&["umount", &below]);
    assert!(
        undone["failed"][0]
            .as_str()
            .is_some_and(|said| said.contains("still mounted")),
        "{undone}"
    );
    assert_eq!(kept, "someone else's");
    assert_eq!(undo(&mut agent)["steps"], 1);
    assert!(!Path::new(&made).exists());
}

#[test]
fn a_directory_that_was_there_is_neither_made_nor_removed() {
    let mut agent = Agent::greeted();
    let path = agent.path("there");
    fs::create_dir(&path).expect("made");
    let refused = change(&mut agent, &create(&path));
    assert_eq!(refused["code"], "refused", "{refused}");
    let orphan = agent.path("no/parent");
    assert_eq!(change(&mut agent, &create(&orphan))["code"], "not_found");
    assert_eq!(undo(&mut agent)["steps"], 0);
    assert!(Path::new(&path).exists());
}

#[test]
fn a_choice_in_brackets_is_restored_by_its_word_and_a_file_of_lines_as_it_was() {
    let mut agent = Agent::greeted();
    let (choice, lines) = (agent.path("enabled"), agent.path("my.cnf"));
    fs::write(&choice, "always [madvise] never\n").expect("writable");
    let text = "[mysqld]\nport = 3306\n";
    fs::write(&lines, text).expect("writable");
    for path in [&choice, &lines] {
        assert_eq!(agent.ask(&write_step(1, path, "never"))["event"], "changed");
    }
    assert_eq!(undo(&mut agent)["steps"], 2);
    assert_eq!(
        (content(&choice).as_str(), content(&lines).as_str()),
        ("madvise", text)
    );
}

#[test]
fn what_another_changed_meanwhile_is_restored_and_said() {
    let mut agent = Agent::greeted();
    let (kept, disturbed) = (agent.path("kept"), agent.path("disturbed"));
    for path in [&kept, &disturbed] {
        fs::write(path, "before").expect("writable");
        agent.ask(&write_step(1, path, "after"));
    }
    fs::write(&disturbed, "other").expect("writable");
    let undone = undo(&mut agent);
    assert_eq!(undone["disturbed"], json!([disturbed]));
    assert_eq!(
        (content(&kept), content(&disturbed)),
        ("before".to_owned(), "before".to_owned())
    );
}

#[test]
fn a_program_of_a_step_is_told_with_its_words_when_it_fails() {
    let mut agent = Agent::greeted();
    let argv = json!(["sh", "-c", "echo seen; echo 'no such swap' >&2; exit 9"]);
    let step = json!({"name": "swap", "action": {"kind": "execute", "argv": argv}, "inverse": {"kind": "none"}});
    let failed = change(&mut agent, &step);
    let message = failed["message"].as_str().expect("text");
    assert!(
        ["no such swap", "seen", "9"]
            .iter()
            .all(|word| message.contains(word)),
        "{message}"
    );
    let step = json!({"name": "swap", "action": {"kind": "execute", "argv": ["/no/program"]}, "inverse": {"kind": "none"}});
    assert_eq!(change(&mut agent, &step)["code"], "not_found");
}

#[test]
fn what_a_program_changed_is_undone_only_by_a_program() {
    let mut agent = Agent::greeted();
    let touched = agent.path("touched");
    let action = json!({"kind": "execute", "argv": ["touch", touched]});
    let step = json!({"name": "touch", "action": action, "inverse": {"kind": "restore"}});
    assert_eq!(change(&mut agent, &step)["code"], "invalid");
    assert!(!Path::new(&touched).exists(), "refused before it acts");
}

#[test]
fn steps_are_undone_newest_first_however_the_agent_ended() {
    let mut agent = Agent::greeted();
    let order = agent.path("order");
    for name in ["first", "second", "third"] {
        change(&mut agent, &noted(name, &order, ""));
    }
    assert_eq!(
        agent.ask(&json!({"request": "undo", "id": 2, "keep": 2}))["steps"],
        1
    );
    let mut next = Agent::start(agent.kill());
    assert_eq!(next.greet()["leftovers"]["undone"], 2);
    assert_eq!(content(&order), "third\nsecond\nfirst\n");
}

#[test]
fn an_undo_that_is_cut_short_is_finished_by_the_next_agent() {
    let mut agent = Agent::greeted();
    let (order, begun, path) = (
        agent.path("order"),
        agent.path("begun"),
        agent.path("setting"),
    );
    fs::write(&path, "before").expect("writable");
    agent.ask(&write_step(1, &path, "after"));
    change(&mut agent, &noted("first", &order, ""));
    // Hangs the first time it is followed, as a crash finds it half done.
    change(
        &mut agent,
        &noted(
            "hangs",
            &order,
            &format!("test -e {begun} || {{ touch {begun}; sleep 1000; }};"),
        ),
    );
    change(&mut agent, &noted("last", &order, ""));
    let mut second = Agent::start(agent.kill());
    second.send(&json!({"request": "hello", "id": 0, "version": fairtrial_protocol::VERSION, "holder": "me", "lock": true}));
    eventually("the undoing did not begin", || Path::new(&begun).exists());
    assert_eq!(content(&order), "last\n");
    let mut third = Agent::start(second.kill());
    assert_eq!(
        third.greet()["leftovers"]["undone"],
        3,
        "the last one was noted as undone"
    );
    assert_eq!(content(&order), "last\nhangs\nfirst\n");
    assert_eq!(content(&path), "before");
    let mut fourth = Agent::start(third.kill());
    assert_eq!(fourth.greet()["leftovers"]["undone"], 0);
}

#[test]
fn a_journal_of_another_format_is_refused_and_kept_until_somebody_looks() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let journal = place.path().join("undo.jsonl");
    let text = "{\"format\":2,\"steps\":[]}\n";
    fs::write(&journal, text).expect("writable");
    let mut agent = Agent::start(place);
    let refused = agent.greet();
    assert_eq!(refused["code"], "refused", "{refused}");
    let message = refused["message"].as_str().expect("text");
    assert!(
        message.contains("undo.jsonl") && message.contains("line 1"),
        "{message}"
    );
    assert_eq!(
        agent.hear(),
        Value::Null,
        "a refused `hello` ends the stream"
    );
    assert_eq!(fs::read_to_string(&journal).expect("kept"), text);
    fs::rename(&journal, journal.with_extension("aside")).expect("moved");
    let mut next = Agent::start_at(agent.place.path());
    assert_eq!(next.greet()["event"], "hello");
}

#[test]
fn a_place_that_cannot_hold_state_is_refused_by_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for state in [
        file.path().join("below").display().to_string(),
        "/proc/fairtrial".to_owned(),
    ] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let script = format!("export FAIRTRIAL_STATE_DIRECTORY={state}; exec \"$0\" serve");
        let mut agent = Agent::start_by(place, &script);
        let refused = agent.greet();
        assert_eq!(refused["event"], "failed");
        assert!(
            refused["message"].as_str().expect("text").contains(&state),
            "{refused}"
        );
        assert_eq!(agent.hear(), Value::Null);
    }
}

#[test]
fn only_whole_files_are_got_and_put() {
    let mut agent = Agent::greeted();
    let pipe = agent.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("ran").success());
    for path in [pipe, agent.path(""), "/dev/zero".to_owned()] {
        let refused = agent.ask(&json!({"request": "get", "id": 1, "path": path}));
        assert_eq!(refused["code"], "refused", "{refused}");
    }
    let path = agent.path("file");
    agent.send(&json!({"request": "put", "id": 2, "path": path, "bytes": 2, "mode": 0o600}));
    agent.chunk(2, b"more");
    assert_eq!(agent.hear()["code"], "invalid");
    assert!(!Path::new(&path).exists());
    for path in ["relative", ""] {
        assert_eq!(
            agent.ask(&json!({"request": "get", "id": 3, "path": path}))["code"],
            "invalid"
        );
    }
    assert_eq!(
        agent.ask(&json!({"request": "get", "id": 4, "path": "/no/file"}))["code"],
        "not_found"
    );
}
