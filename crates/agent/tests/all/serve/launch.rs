//! How a process is started: as whom, where, with what, and what is said when it cannot be.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::controller::{Agent, spawn};
use rustix::process::geteuid;
use serde_json::{Value, json};

/// A user that every Debian has and nobody logs in as.
const OTHER_USER: (&str, &str) = ("nobody", "65534");

/// Lines a shell script writes, given more fields of its `spawn`.
fn lines(agent: &mut Agent, script: &str, more: &Value) -> Vec<String> {
    let mut request = spawn(1, script);
    for (name, value) in more.as_object().expect("fields") {
        request[name] = value.clone();
    }
    agent.send(&request);
    let mut lines = Vec::new();
    loop {
        let event = agent.hear();
        match event["event"].as_str().expect("an event") {
            "spawned" => {}
            "output" => lines.push(event["line"].as_str().expect("text").to_owned()),
            "exited" => return lines,
            _ => panic!("{event}"),
        }
    }
}

/// Why a `spawn` with more fields is refused.
fn refusal(agent: &mut Agent, more: &Value) -> (String, String) {
    let mut request = spawn(1, "true");
    for (name, value) in more.as_object().expect("fields") {
        request[name] = value.clone();
    }
    let failed = agent.ask(&request);
    let text = |name: &str| {
        failed[name]
            .as_str()
            .unwrap_or_else(|| panic!("{failed}"))
            .to_owned()
    };
    (text("code"), text("message"))
}

#[test]
fn a_process_may_run_as_another_user_by_name_or_number_without_roots_groups() {
    if !geteuid().is_root() {
        return; // only root starts processes as others
    }
    let mut agent = Agent::greeted();
    for user in [OTHER_USER.0, OTHER_USER.1] {
        let said = lines(
            &mut agent,
            "id -u; id -g; id -G; id -ru",
            &json!({"user": user}),
        );
        assert_eq!(said, [OTHER_USER.1; 4], "as {user}");
    }
    let said = lines(
        &mut agent,
        "cat /proc/self/status",
        &json!({"user": OTHER_USER.0}),
    );
    let capabilities = said
        .iter()
        .find(|line| line.starts_with("CapEff:"))
        .expect("listed");
    assert!(
        capabilities.ends_with("\t0000000000000000"),
        "{capabilities}"
    );
    assert!(said.contains(&"NoNewPrivs:\t1".to_owned()), "{said:?}");
}

#[test]
fn a_process_gets_no_secrets_of_who_started_the_agent_and_loads_nothing_of_theirs() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = r#"export SECRET=s JAVA_HOME=j LD_LIBRARY_PATH=/no/such LC_TIME=C TMPDIR=/var/tmp
        export FAIRTRIAL_ENVIRONMENT=JAVA_HOME,OTHER; exec "$0" serve"#;
    let mut agent = Agent::start_by(place, script);
    agent.greet();
    let more = json!({"environment": {"LD_PRELOAD": "", "OWN": "o"}});
    let named = "SECRET|JAVA_HOME|LD_[A-Z_]*|LC_TIME|TMPDIR|OWN";
    let script = format!("env | grep -E '^({named})=' | sort");
    assert_eq!(
        lines(&mut agent, &script, &more),
        [
            "JAVA_HOME=j",
            "LC_TIME=C",
            "LD_PRELOAD=",
            "OWN=o",
            "TMPDIR=/var/tmp"
        ]
    );
}

#[test]
fn the_agents_own_user_is_no_change() {
    let mut agent = Agent::greeted();
    let own = geteuid().as_raw().to_string();
    assert_eq!(
        lines(&mut agent, "id -u", &json!({"user": own})),
        [own.as_str()]
    );
}

#[test]
fn an_unknown_user_is_said_and_nothing_starts() {
    let mut agent = Agent::greeted();
    let (code, message) = refusal(&mut agent, &json!({"user": "no-such-user"}));
    assert_eq!(code, "not_found");
    assert!(message.contains("no-such-user"), "{message}");
}

#[test]
fn a_process_runs_on_the_processors_it_is_given() {
    let mut agent = Agent::greeted();
    let said = lines(
        &mut agent,
        "grep Cpus_allowed_list /proc/self/status",
        &json!({"processors": [0]}),
    );
    assert_eq!(said, ["Cpus_allowed_list:\t0"]);
}

#[test]
fn processors_that_are_not_there_are_refused_even_beside_one_that_is() {
    let mut agent = Agent::greeted();
    for processors in [
        json!([1023]),
        json!([0, 1023]),
        json!([]),
        json!([0, 4_000_000_000_u32]),
    ] {
        let (code, message) = refusal(&mut agent, &json!({"processors": processors}));
        assert!(
            ["refused", "invalid"].contains(&code.as_str()),
            "{processors}: {code}"
        );
        assert!(message.contains("processor"), "{processors}: {message}");
    }
    assert_eq!(lines(&mut agent, "echo fine", &json!({})), ["fine"]);
}

#[test]
fn the_environment_is_added_to_and_the_mark_cannot_be_taken_away() {
    let mut agent = Agent::greeted();
    let more = json!({"environment": {"A": "a b=c\nd", "PATH": "/bin:/usr/bin", "FAIRTRIAL_SESSION": "forged"}});
    let script = "printf '%s|' \"$A\" \"$PATH\" ${FAIRTRIAL_SESSION:+marked}; test \"$FAIRTRIAL_SESSION\" = forged || echo own";
    assert_eq!(
        lines(&mut agent, script, &more),
        ["a b=c", "d|/bin:/usr/bin|marked|own"]
    );
}

#[test]
fn a_directory_is_entered_and_a_missing_one_is_named() {
    let mut agent = Agent::greeted();
    let place = fs::canonicalize(agent.place.path()).expect("there");
    let place = place.to_str().expect("plain").to_owned();
    assert_eq!(
        lines(&mut agent, "pwd", &json!({"directory": place})),
        [place.as_str()]
    );
    let missing = agent.path("missing");
    let (code, message) = refusal(&mut agent, &json!({"directory": missing}));
    assert_eq!(code, "not_found");
    assert!(message.contains(&missing), "{message}");
}

#[test]
fn a_missing_program_is_named_and_takes_no_number() {
    let mut agent = Agent::greeted();
    for argv in [json!(["/no/such/program"]), json!(["no-such-program", "x"])] {
        let (code, message) = refusal(&mut agent, &json!({"argv": argv}));
        assert_eq!(code, "not_found");
        assert!(message.contains("no"), "{message}");
    }
    let (code, message) = refusal(&mut agent, &json!({"argv": []}));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("invalid", "argv is empty")
    );
    let (code, message) = refusal(&mut agent, &json!({"argv": ["/etc/passwd"]}));
    assert_eq!(code, "system");
    assert!(
        message.contains("/etc/passwd") && message.contains("denied"),
        "{message}"
    );
    agent.send(&spawn(2, "true"));
    assert_eq!(agent.hear_of("spawned")["process"], 0);
}

#[test]
fn its_own_name_means_this_very_binary() {
    let mut agent = Agent::greeted();
    let said = lines(
        &mut agent,
        "",
        &json!({"argv": ["fairtrial-agent", "--version"], "environment": {"PATH": ""}}),
    );
    assert_eq!(
        said,
        [format!("fairtrial-agent {}", env!("CARGO_PKG_VERSION"))]
    );
}

#[test]
fn standard_input_holds_the_text_and_then_ends() {
    let mut agent = Agent::greeted();
    let text = format!("first\n{}\nlast without newline ß", "x".repeat(200_000));
    let said = lines(&mut agent, "cat | wc -c; cat", &json!({"stdin": text}));
    assert_eq!(said, [text.len().to_string()]);
    assert_eq!(
        lines(&mut agent, "cat", &json!({"stdin": "a\nb ß"})),
        ["a", "b ß"]
    );
    assert_eq!(
        lines(&mut agent, "cat; echo end", &json!({})),
        ["end"],
        "no input is an empty one"
    );
}

#[test]
fn a_file_is_appended_to_and_holds_both_streams_in_order() {
    let mut agent = Agent::greeted();
    let path = agent.path("log");
    fs::write(&path, "before\n").expect("writable");
    let file = json!({"kind": "file", "path": path});
    for word in ["one", "two"] {
        let script = format!("echo {word}; echo {word} >&2");
        assert!(
            lines(
                &mut agent,
                &script,
                &json!({"stdout": file, "stderr": file})
            )
            .is_empty()
        );
    }
    assert_eq!(
        fs::read_to_string(path).expect("readable"),
        "before\none\none\ntwo\ntwo\n"
    );
}

#[test]
fn an_output_that_cannot_be_opened_is_named_and_nothing_starts() {
    let mut agent = Agent::greeted();
    let file = json!({"kind": "file", "path": agent.path("missing/log")});
    let touched = agent.path("touched");
    let (code, message) = refusal(
        &mut agent,
        &json!({"stderr": file, "argv": ["touch", touched]}),
    );
    assert_eq!(code, "not_found");
    assert!(message.contains("missing/log"), "{message}");
    assert!(fs::metadata(touched).is_err());
}

#[test]
fn what_is_thrown_away_never_comes() {
    let mut agent = Agent::greeted();
    let nowhere = json!({"kind": "null"});
    assert_eq!(
        lines(
            &mut agent,
            "echo lost; echo kept >&2",
            &json!({"stdout": nowhere})
        ),
        ["kept"]
    );
}

/// What any child of this test inherits: who runs the tests may have left descriptors open.
fn passed_on_by_this_test() -> Vec<String> {
    let listed = std::process::Command::new("ls")
        .args(["-l", "/proc/self/fd"])
        .output()
        .expect("ran");
    let text = String::from_utf8(listed.stdout).expect("text");
    text.lines()
        .filter_map(|line| Some(line.split_once(" -> ")?.1.to_owned()))
        .collect()
}

#[test]
fn a_child_has_nothing_of_the_agents_but_its_three_streams() {
    let mut agent = Agent::greeted();
    let said = lines(
        &mut agent,
        "ls -l /proc/self/fd; ps -o pgid= -p $$ | tr -d ' '; echo $$",
        &json!({}),
    );
    let passed_on = passed_on_by_this_test();
    let descriptors = said.iter().filter_map(|line| line.split_once(" -> "));
    let surplus: Vec<_> = descriptors
        .map(|(head, target)| {
            (
                head.rsplit(' ').next().expect("a number"),
                target.to_owned(),
            )
        })
        .filter(|(number, _)| !["0", "1", "2"].contains(number))
        .filter(|(_, target)| !target.starts_with("/proc/") && !passed_on.contains(target))
        .collect();
    assert!(surplus.is_empty(), "{surplus:?}");
    let [.., group, own] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(group, own, "it leads a process group of its own");
}

#[test]
fn whatever_the_umask_nobody_else_can_lock_the_place_or_write_its_way_back() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = "umask 0; export FAIRTRIAL_STATE_DIRECTORY=\"$1/state\"; exec \"$0\" serve";
    let mut agent = Agent::start_by(place, script);
    assert_eq!(agent.greet()["event"], "hello");
    let mode = |name: &str| {
        fs::metadata(agent.path(name))
            .expect("made")
            .permissions()
            .mode()
            & 0o777
    };
    let passable = if geteuid().is_root() { 0o711 } else { 0o700 }; // servers are another user then
    assert_eq!(mode("state"), passable);
    assert_eq!(mode("state/lock"), 0o600);
    assert_eq!(mode("state/undo.jsonl"), 0o600);
}

#[test]
fn ends_are_seen_though_the_launcher_ignores_those_of_its_children() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut agent = Agent::start_by(place, "exec env --ignore-signal=CHLD \"$0\" serve");
    assert_eq!(agent.greet()["event"], "hello");
    agent.send(&spawn(1, "exit 7"));
    assert_eq!(agent.hear_of("exited")["code"], 7);
}

#[test]
fn the_end_of_a_process_is_said_although_its_child_writes_for_ever() {
    let mut agent = Agent::greeted();
    agent.send(&spawn(1, "echo first; yes & exit 3"));
    let heard = (0..2_000_000).map(|_| agent.hear());
    let mut kept = heard.filter(|event| event["line"] != "y");
    assert_eq!(kept.next().expect("an answer")["event"], "spawned");
    assert_eq!(kept.next().expect("a line")["line"], "first");
    let exited = kept.next().expect("the end");
    assert_eq!(
        (&exited["event"], &exited["code"]),
        (&json!("exited"), &json!(3))
    );
}
