//! The way back, at the level of the journal on disk.

use std::fs;
use std::path::Path;

use super::controller::{Agent, eventually, runs, spawn, write_step};
use serde_json::{Value, json};

fn journal(agent: &Agent) -> Vec<Value> {
    let text = fs::read_to_string(agent.path("undo.jsonl")).expect("the journal");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn content(path: &str) -> String {
    fs::read_to_string(path).expect("readable")
}

fn setting(agent: &Agent, name: &str, value: &str) -> String {
    let path = agent.path(name);
    fs::write(&path, value).expect("writable");
    path
}

#[test]
fn the_way_back_is_on_disk_before_the_step_acts() {
    let mut agent = Agent::greeted();
    let (copy, journal) = (agent.path("seen"), agent.path("undo.jsonl"));
    let argv = json!(["cp", journal, copy]); // the step itself looks at the journal
    let back = json!({"kind": "execute", "argv": ["rm", copy]});
    let step =
        json!({"name": "look", "action": {"kind": "execute", "argv": argv}, "inverse": back});
    assert_eq!(
        agent.ask(&json!({"request": "change", "id": 1, "step": step}))["event"],
        "changed"
    );
    let line: Value = serde_json::from_str(content(&copy).trim()).expect("one whole line");
    assert_eq!(line["applying"]["way"]["argv"], json!(["rm", copy]));
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert!(fs::metadata(copy).is_err());
}

#[test]
fn what_was_there_is_kept_in_the_journal_and_gone_from_it_when_restored() {
    let mut agent = Agent::greeted();
    let path = setting(&agent, "setting", "before\n");
    agent.ask(&write_step(1, &path, "after"));
    assert_eq!(
        journal(&agent)[0]["applying"]["way"],
        json!({"kind": "write", "path": path, "value": "before\n"})
    );
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(journal(&agent), Vec::<Value>::new());
    assert_eq!(content(&path), "before\n");
}

#[test]
fn a_parameter_that_is_0_because_its_partner_counts_is_restored_through_its_partner() {
    let mut agent = Agent::greeted();
    fs::create_dir_all(agent.path("sys/vm")).expect("made");
    let bytes = setting(&agent, "sys/vm/dirty_bytes", "0\n");
    let ratio = setting(&agent, "sys/vm/dirty_ratio", "20\n");
    agent.ask(&write_step(1, &bytes, "1048576"));
    fs::write(&ratio, "0\n").expect("writable"); // as the kernel does
    agent.ask(&write_step(2, &ratio, "10")); // now the bytes count
    let ways: Vec<Value> = journal(&agent)
        .into_iter()
        .filter_map(|line| line.get("applying").map(|applying| applying["way"].clone()))
        .collect();
    assert_eq!(
        ways,
        [
            json!({"kind": "write", "path": ratio, "value": "20\n"}),
            json!({"kind": "write", "path": bytes, "value": "1048576"}),
        ]
    );
    agent.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    assert_eq!(content(&ratio), "20\n");
}

#[test]
fn a_devices_number_of_requests_which_its_scheduler_sets_is_restored_after_the_scheduler() {
    let mut agent = Agent::greeted();
    fs::create_dir_all(agent.path("vda/queue")).expect("made");
    let scheduler = setting(&agent, "vda/queue/scheduler", "none [mq-deadline]\n");
    let requests = setting(&agent, "vda/queue/nr_requests", "32\n");
    agent.ask(&write_step(1, &scheduler, "none"));
    fs::write(&requests, "256\n").expect("writable"); // as the kernel does
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(content(&scheduler), "mq-deadline");
    assert_eq!(content(&requests), "32\n");
}

#[test]
fn a_governor_is_set_where_the_preference_beside_it_cannot_be_read() {
    let mut agent = Agent::greeted();
    fs::create_dir_all(agent.path("cpu0/energy_performance_preference")).expect("made"); // reading it fails
    let governor = setting(&agent, "cpu0/scaling_governor", "powersave\n");
    agent.ask(&write_step(1, &governor, "performance"));
    assert_eq!(content(&governor), "performance");
    agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(content(&governor), "powersave\n");
}

#[test]
fn what_the_kernel_changes_with_a_file_is_restored_after_it() {
    for (file, before, value, beside, beside_before, beside_then) in [
        (
            "cpu0/cpufreq/scaling_governor",
            "powersave\n",
            "performance",
            "cpu0/cpufreq/energy_performance_preference",
            "balance_performance\n",
            "performance\n",
        ),
        (
            "proc/sys/kernel/watchdog",
            "1\n",
            "0",
            "proc/sys/kernel/nmi_watchdog",
            "1\n",
            "0\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "never\n",
            "always",
            "proc/sys/vm/min_free_kbytes",
            "5000\n",
            "67584\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
            "never\n",
            "always",
            "proc/sys/vm/min_free_kbytes",
            "5000\n",
            "67584\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "never\n",
            "advise",
            "proc/sys/vm/min_free_kbytes",
            "5000\n",
            "67584\n",
        ),
    ] {
        let mut agent = Agent::greeted();
        for path in [file, beside] {
            let path = agent.path(path);
            fs::create_dir_all(Path::new(&path).parent().expect("above")).expect("made");
        }
        let file = setting(&agent, file, before);
        let beside = setting(&agent, beside, beside_before);
        agent.ask(&write_step(1, &file, value));
        fs::write(&beside, beside_then).expect("writable"); // as the kernel does
        agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
        assert_eq!(content(&file), before);
        assert_eq!(content(&beside), beside_before, "{beside}");
    }
}

#[test]
fn a_choice_in_parentheses_is_restored_by_its_word() {
    let mut agent = Agent::greeted();
    fs::create_dir_all(agent.path("debug/sched")).expect("made");
    let path = setting(&agent, "debug/sched/preempt", "none voluntary (full)\n");
    agent.ask(&write_step(1, &path, "voluntary"));
    assert_eq!(
        journal(&agent)[0]["applying"]["way"],
        json!({"kind": "write", "path": path, "value": "full"})
    );
}

#[test]
fn a_value_that_a_later_step_overwrote_is_disturbed_though_that_steps_way_back_restores_it() {
    let mut agent = Agent::greeted();
    fs::create_dir_all(agent.path("vda/queue")).expect("made");
    let scheduler = setting(&agent, "vda/queue/scheduler", "none");
    let requests = setting(&agent, "vda/queue/nr_requests", "64");
    agent.ask(&write_step(1, &requests, "32"));
    agent.ask(&write_step(2, &scheduler, "kyber"));
    fs::write(&requests, "256").expect("writable"); // as the kernel does
    let undone = agent.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    assert_eq!(undone["disturbed"], json!([requests]));
    assert_eq!(content(&requests), "64");
}

#[test]
fn a_file_written_twice_is_disturbed_by_neither_step() {
    let mut agent = Agent::greeted();
    let path = setting(&agent, "setting", "first");
    agent.ask(&write_step(1, &path, "second"));
    agent.ask(&write_step(2, &path, "third"));
    let undone = agent.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    assert_eq!(undone["disturbed"], json!([]));
    assert_eq!(content(&path), "first");
}

#[test]
fn a_killed_agents_steps_are_undone_newest_first_by_the_next() {
    let mut agent = Agent::greeted();
    let path = setting(&agent, "setting", "first");
    for (id, value) in [(1, "second"), (2, "third")] {
        assert_eq!(agent.ask(&write_step(id, &path, value))["applied"], id);
    }
    let place = agent.kill();
    assert_eq!(content(&path), "third");
    let mut next = Agent::start(place);
    assert_eq!(
        next.greet()["leftovers"],
        json!({"undone": 2, "killed": 0, "failed": [], "overwritten": []})
    );
    assert_eq!(content(&path), "first");
}

#[test]
fn what_somebody_changed_after_the_kill_is_restored_and_told() {
    let mut agent = Agent::greeted();
    let (changed, restored) = (
        setting(&agent, "changed", "a"),
        setting(&agent, "restored", "a"),
    );
    agent.ask(&write_step(1, &changed, "b"));
    agent.ask(&write_step(2, &restored, "b"));
    fs::write(&changed, "c\n").expect("writable");
    fs::write(&restored, "a").expect("writable");
    let mut next = Agent::start(agent.kill());
    assert_eq!(
        next.greet()["leftovers"]["overwritten"],
        json!([format!("{changed} held \"c\" instead of \"a\"")])
    );
    assert_eq!(content(&changed), "a");
}

#[test]
fn a_file_that_takes_its_former_content_otherwise_is_not_restored() {
    let mut agent = Agent::greeted();
    let pid = agent.ask(&spawn(1, "exec sleep 600"))["pid"].clone();
    // Shown in hexadecimal without a prefix, and taken as octal (fs/proc/base.c).
    let path = format!("/proc/{pid}/coredump_filter");
    assert_eq!(content(&path), "00000033\n");
    let mut change = write_step(2, &path, "0x7f");
    change["step"]["check"]["expect"] = json!("0000007f");
    assert_eq!(agent.ask(&change)["event"], "changed");
    let undone = agent.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    let said = format!("{path} held \"0000001b\" instead of \"00000033\"");
    assert!(
        undone["failed"][0]
            .as_str()
            .is_some_and(|text| text.contains(&said)),
        "{undone}"
    );
    assert_eq!(undone["steps"], 0);
}

#[test]
fn all_that_is_restored_is_undone_though_a_full_disk_takes_no_note_of_it() {
    let mut agent = Agent::greeted();
    let path = setting(&agent, "setting", "before");
    let mut change = write_step(1, &path, "after");
    agent.ask(&change);
    let length = fs::metadata(agent.path("undo.jsonl")).expect("there").len();
    let room = 1000;
    let name = "n".repeat(usize::try_from(room - length).expect("short") + path.len());
    let place = agent.kill();
    // The kernel refuses whatever would make a file longer, as a full disk does.
    let limited = format!(
        "trap '' XFSZ; exec prlimit --fsize={} \"$0\" serve",
        room + 5
    );
    let mut agent = Agent::start_by(place, &limited);
    assert_eq!(agent.greet()["leftovers"]["undone"], 1);
    change["step"]["name"] = json!(name);
    assert_eq!(agent.ask(&change)["event"], "changed");
    let undone = agent.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(
        (&undone["steps"], &undone["failed"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(
        (content(&path).as_str(), journal(&agent)),
        ("before", vec![])
    );
}

#[test]
fn a_step_undone_before_the_kill_is_not_undone_again() {
    let mut agent = Agent::greeted();
    let (kept, undone) = (setting(&agent, "kept", "a"), setting(&agent, "undone", "a"));
    agent.ask(&write_step(1, &kept, "b"));
    agent.ask(&write_step(2, &undone, "b"));
    agent.ask(&json!({"request": "undo", "id": 3, "keep": 1}));
    fs::write(&undone, "someone else's").expect("writable");
    let mut next = Agent::start(agent.kill());
    assert_eq!(next.greet()["leftovers"]["undone"], 1);
    assert_eq!(
        (content(&kept), content(&undone)),
        ("a".to_owned(), "someone else's".to_owned())
    );
}

#[test]
fn a_killed_agents_grandchildren_are_found_and_killed_by_the_next() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "setsid sleep 1000 & echo $!; wait"));
    let shell = agent.hear_of("spawned")["pid"].clone();
    let line = agent.hear_of("output")["line"].clone();
    let orphan: Value = serde_json::from_str(line.as_str().expect("text")).expect("a process id");
    let place = agent.kill();
    eventually("the shell outlived its agent", || !runs(&shell));
    assert!(runs(&orphan));
    let mut next = Agent::start(place);
    assert_eq!(next.greet()["leftovers"]["killed"], 1);
    assert!(!runs(&orphan));
}

#[test]
fn who_dies_taking_a_dead_agents_place_has_killed_its_processes_and_leaves_its_name() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "setsid sleep 1000 & echo $!; wait"));
    let line = agent.hear_of("output")["line"].clone();
    let orphan: Value = serde_json::from_str(line.as_str().expect("text")).expect("a process id");
    let place = agent.kill();
    let lock = fs::read(place.path().join("lock")).expect("a lock");
    // The kernel kills it as it writes its own name.
    let mut dying = Agent::start_by(place, "ulimit -f 0; exec \"$0\" serve");
    assert_eq!(dying.greet(), Value::Null);
    assert!(!runs(&orphan));
    assert_eq!(fs::read(dying.path("lock")).expect("a lock"), lock);
}

#[test]
fn a_step_that_cannot_be_undone_stays_for_the_next_and_does_not_hold_the_others_up() {
    let mut agent = Agent::greeted();
    let (first, second) = (
        setting(&agent, "first", "a"),
        setting(&agent, "second", "a"),
    );
    agent.ask(&write_step(1, &first, "b"));
    agent.ask(&write_step(2, &second, "b"));
    fs::remove_file(&second).expect("there");
    let undone = agent.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    assert_eq!(
        (&undone["steps"], undone["failed"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );
    assert_eq!(content(&first), "a");
    fs::write(&second, "back").expect("writable");
    let mut next = Agent::start(agent.kill());
    assert_eq!(next.greet()["leftovers"]["undone"], 1);
    assert_eq!(content(&second), "a");
}

#[test]
fn a_failed_check_leaves_nothing_applied() {
    let mut agent = Agent::greeted();
    let path = setting(&agent, "setting", "before");
    let mut change = write_step(1, &path, "asked");
    change["step"]["check"]["expect"] = json!("other");
    let failed = agent.ask(&change);
    assert_eq!(
        (&failed["event"], &failed["code"]),
        (&json!("failed"), &json!("check"))
    );
    let message = failed["message"].as_str().expect("text");
    assert!(
        ["\"other\"", "\"asked\"", "\"before\""]
            .iter()
            .all(|word| message.contains(word)),
        "{message}"
    );
    assert_eq!(content(&path), "before");
    assert_eq!(agent.ask(&write_step(2, &path, "fine"))["applied"], 1);
}

#[test]
fn a_file_that_does_not_exist_is_not_made() {
    let mut agent = Agent::greeted();
    let path = agent.path("missing");
    let mut change = write_step(1, &path, "value");
    change["step"]["check"] = Value::Null;
    change["step"]["inverse"] = json!({"kind": "none"});
    assert_eq!(agent.ask(&change)["code"], "not_found");
    assert!(fs::metadata(path).is_err());
}

#[test]
fn a_created_directory_goes_with_what_is_in_it() {
    let mut agent = Agent::greeted();
    let path = agent.path("made");
    let step = json!({"name": "made", "action": {"kind": "create", "path": path}, "inverse": {"kind": "restore"}});
    agent.ask(&json!({"request": "change", "id": 1, "step": step}));
    fs::write(agent.path("made/file"), "").expect("writable");
    agent.end();
    assert!(fs::metadata(agent.path("made")).is_err());
}

#[test]
fn what_holds_a_lock_on_a_server_ends_after_the_way_back() {
    let mut agent = Agent::greeted();
    let (fifo, seen, path) = (
        agent.path("sql-hold"),
        agent.path("seen"),
        setting(&agent, "setting", "before"),
    );
    let hold = format!(
        "mkfifo {fifo}; cd {}; exec bash -c 'exec -a fairtrial-agent cat sql-hold'",
        agent.path(".")
    );
    let holder = agent.ask(&spawn(1, &hold))["pid"].clone();
    let other = agent.ask(&spawn(2, "exec sleep 600"))["pid"].clone();
    let look = format!(
        "for each in {holder} {other}; do grep -qs . /proc/$each/cmdline && echo $each; done > {seen}; rm {path}"
    );
    let step = json!({
        "name": "look",
        "action": {"kind": "execute", "argv": ["true"]},
        "inverse": {"kind": "execute", "argv": ["sh", "-c", look]},
    });
    eventually("it holds", || {
        content(&format!("/proc/{holder}/cmdline")).starts_with("fairtrial-agent\0sql-hold\0")
    });
    assert_eq!(
        agent.ask(&json!({"request": "change", "id": 3, "step": step}))["event"],
        "changed"
    );
    agent.end();
    assert_eq!(content(&seen).trim(), holder.to_string());
    assert!(!runs(&holder) && !runs(&other));
}
