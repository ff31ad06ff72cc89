//! The governor of purge as a real process beside a real MariaDB: what it sets, and what is left of it after a kill, and
//! after a server that disappears, hangs or refuses. Nothing here depends on how fast anything is.

mod governor;
#[path = "../../../../load/tests/all/support/mariadb.rs"]
#[allow(dead_code)] // the load engine's tests use more of it
mod mariadb;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Duration;

use fairtrial_load::Client;
use fairtrial_protocol::load::{Endpoint, Sql};
use governor::{GovernorProcess, restore, wait_until};
use mariadb::{Server, shared};
use rustix::process::Signal;
use serde_json::{Value, json};

fn ask(endpoint: &Endpoint, statement: &str) -> Vec<Vec<Option<String>>> {
    let query = Sql {
        endpoint: endpoint.clone(),
        statements: vec![statement.to_owned()],
        connect_timeout_ms: 60_000,
    };
    let answers = fairtrial_load::sql(&query).expect("the server answers");
    answers.into_iter().next().expect("one answer").rows
}

fn number(endpoint: &Endpoint, expression: &str) -> u64 {
    let rows = ask(endpoint, &format!("SELECT {expression}"));
    let cell = rows[0][0].as_ref().expect("a value");
    cell.parse().expect("a number")
}

fn threads(endpoint: &Endpoint) -> u64 {
    number(endpoint, "@@global.innodb_purge_threads")
}

fn batch(endpoint: &Endpoint) -> u64 {
    number(endpoint, "@@global.innodb_purge_batch_size")
}

/// Three threads whatever is seen, so that governing changes something at its first look and nothing after it.
fn three() -> Value {
    json!({"threads": {"least": 3, "most": 3}})
}

fn own() -> Server {
    Server::start().expect("looked for before")
}

#[test]
fn what_was_there_is_there_again_when_it_ends() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = (threads(&endpoint), batch(&endpoint));
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    let mode = fs::metadata(governor.originals())
        .expect("kept")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "a password may stand in it");
    let kept = governor.originals();
    let (decisions, output) = governor.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!((threads(&endpoint), batch(&endpoint)), before);
    assert!(!kept.exists());
    assert_eq!(decisions[0]["decision"], "started");
    let reason = decisions[0]["reason"].as_str().expect("one");
    assert!(
        reason.contains(&format!(
            "begins with 3 threads and batches of {}",
            before.1
        )),
        "{reason}"
    );
    assert_eq!(decisions.last().expect("some")["decision"], "restored");
    assert_eq!(decisions.last().expect("some")["threads"], before.0);
    let governed = output.last_line();
    assert_eq!(governed["restored"], true);
    assert!(
        governed["looks"].as_u64() > Some(0) && governed["cpu_ns"].as_u64() > Some(0),
        "{governed}"
    );
}

#[test]
fn a_dry_run_decides_and_sets_nothing() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = (threads(&endpoint), batch(&endpoint));
    let changes = json!({"dry_run": true, "duration_s": 0.5, "threads": {"least": 1, "most": 3}});
    let mut governor = GovernorProcess::start(&endpoint, &changes);
    let kept = governor.originals();
    assert!(!kept.exists(), "nothing will have to be restored");
    let output = governor.wait(); // it ends by itself
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!((threads(&endpoint), batch(&endpoint)), before);
}

#[test]
fn purge_is_stepped_down_held_and_let_go_as_history_and_age_say() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = (threads(&endpoint), batch(&endpoint));
    ask(&endpoint, "CREATE DATABASE IF NOT EXISTS governed");
    ask(
        &endpoint,
        "CREATE OR REPLACE TABLE governed.t (a INT, b CHAR(250)) ENGINE=InnoDB",
    );
    ask(
        &endpoint,
        "INSERT INTO governed.t SELECT seq, REPEAT('a', 250) FROM mysql.seq_1_to_2000",
    );
    // A reader that sees the past keeps it from being purged.
    let mut reader = Client::open(&endpoint).expect("a thread");
    let wait = Duration::from_mins(2);
    reader
        .ask("START TRANSACTION WITH CONSISTENT SNAPSHOT", wait)
        .expect("begun");
    let changes = json!({"low_water_percent": 0, "stop_percent": 1, "hysteresis_percent": 0});
    let mut governor = GovernorProcess::start(&endpoint, &changes);
    let mut value = 0;
    wait_until(
        || {
            value += 1;
            ask(
                &endpoint,
                &format!("UPDATE governed.t SET b = REPEAT('b', 100 + {value} % 100)"),
            );
            governor.named().iter().any(|name| name == "hold")
        },
        || format!("{:?}", governor.decisions()),
    );
    let down: Vec<_> = governor.decisions();
    let fewer = down.iter().filter(|each| each["decision"] == "fewer");
    let stepped: Vec<_> = fewer.map(|each| each["threads"].as_u64()).collect();
    assert!(
        stepped.contains(&Some(1)) && !stepped.contains(&Some(0)),
        "{stepped:?}"
    );
    let held = down
        .iter()
        .find(|each| each["decision"] == "hold")
        .expect("seen");
    assert_eq!(
        (&held["threads"], &held["batch_size"]),
        (&json!(1), &json!(1))
    );
    assert!(held["checkpoint_age_percent"].as_u64() >= Some(1), "{held}");
    reader.ask("COMMIT", wait).expect("the past may go");
    ask(
        &endpoint,
        "SET GLOBAL innodb_max_dirty_pages_pct = 0, innodb_max_dirty_pages_pct_lwm = 0",
    ); // and the age with it
    governor.wait_for("release");
    let (decisions, output) = governor.end();
    ask(
        &endpoint,
        "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT, innodb_max_dirty_pages_pct_lwm = DEFAULT",
    );
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!((threads(&endpoint), batch(&endpoint)), before);
    assert!(
        decisions
            .iter()
            .all(|each| each["time_ns"].as_i64() > Some(0))
    );
}

#[test]
fn a_killed_governor_leaves_what_its_originals_restore() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = (threads(&endpoint), batch(&endpoint));
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    governor.signal(Signal::KILL);
    governor.child.wait().expect("gone");
    assert_eq!(threads(&endpoint), 3, "nobody has restored it yet");
    let restored = restore(&governor.originals());
    assert!(restored.code == Some(0), "{restored:?}");
    assert_eq!(
        restored.last_line()["govern_restore"],
        "restored: innodb_purge_threads"
    );
    assert_eq!((threads(&endpoint), batch(&endpoint)), before);
    let again = restore(&governor.originals());
    assert!(again.code == Some(0), "{again:?}");
    assert_eq!(
        again.last_line()["govern_restore"],
        "nothing is left to restore"
    );
}

#[test]
fn a_killed_governors_server_that_was_started_anew_keeps_its_own_values() {
    if shared().is_none() {
        return;
    }
    let mut server = own();
    let endpoint = server.endpoint("mysql");
    thread::sleep(Duration::from_secs(4)); // more than what `Uptime` can tell apart
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    governor.signal(Signal::KILL);
    governor.child.wait().expect("gone");
    server.kill();
    let kept = fs::read(governor.originals()).expect("kept");
    let without = restore(&governor.originals());
    assert_eq!(
        without.last_line()["govern_restore"],
        "the server that was governed is gone"
    );
    fs::write(governor.originals(), kept).expect("once more");
    server.restart();
    ask(&endpoint, "SET GLOBAL innodb_purge_threads = 7");
    let anew = restore(&governor.originals());
    assert_eq!(
        anew.last_line()["govern_restore"],
        "the server that was governed is gone"
    );
    assert_eq!(threads(&endpoint), 7, "set by somebody after the restart");
}

#[test]
fn a_server_that_disappears_is_looked_for_and_met_anew() {
    if shared().is_none() {
        return;
    }
    let mut server = own();
    let endpoint = server.endpoint("mysql");
    let before = threads(&endpoint);
    thread::sleep(Duration::from_secs(4));
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    server.kill();
    governor.wait_for("lost");
    server.restart();
    governor.wait_for("restarted");
    wait_until(|| threads(&endpoint) == 3, || "not governed again".into());
    let (decisions, output) = governor.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(threads(&endpoint), before);
    let lost = decisions
        .iter()
        .filter(|each| each["decision"] == "lost")
        .count();
    assert_eq!(lost, 1, "said once: {decisions:?}");
}

#[test]
fn a_server_that_is_gone_for_good_leaves_nothing_to_restore() {
    if shared().is_none() {
        return;
    }
    let mut server = own();
    let mut governor = GovernorProcess::start(&server.endpoint("mysql"), &three());
    server.kill();
    governor.wait_for("lost");
    let kept = governor.originals();
    let (decisions, output) = governor.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(decisions.last().expect("some")["decision"], "restored");
    assert!(!kept.exists());
}

#[test]
fn a_server_that_hangs_is_waited_for_on_one_connection() {
    if shared().is_none() {
        return;
    }
    let server = own();
    let endpoint = server.endpoint("mysql");
    let mut governor = GovernorProcess::start(&endpoint, &json!({"answer_limit_ms": 300}));
    let before = number(&endpoint, "CONNECTION_ID()");
    server.freeze();
    governor.wait_for("late");
    thread::sleep(Duration::from_secs(2)); // many ticks
    server.thaw();
    let made = number(&endpoint, "CONNECTION_ID()") - before;
    // Connections are numbered as they are made: this one, and room for threads of the server's own.
    assert!((1..=4).contains(&made), "{made} connections were made");
    let (_, output) = governor.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.last_line()["missed_looks"].as_u64() > Some(0));
}

#[test]
fn a_server_that_hangs_to_the_end_is_restored_by_whoever_comes_next() {
    if shared().is_none() {
        return;
    }
    let server = own();
    let endpoint = server.endpoint("mysql");
    let before = threads(&endpoint);
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    server.freeze();
    governor.signal(Signal::TERM);
    let status = governor.child.wait().expect("it ends all the same");
    server.thaw();
    assert_eq!(status.code(), Some(1));
    assert_eq!(
        governor.decisions().last().expect("some")["decision"],
        "not_restored"
    );
    let restored = restore(&governor.originals());
    assert!(restored.code == Some(0), "{restored:?}");
    assert_eq!(threads(&endpoint), before);
}

#[test]
fn a_server_that_refuses_does_so_before_anything_is_changed() {
    let Some(server) = shared() else { return };
    let root = server.endpoint("mysql");
    ask(
        &root,
        "CREATE OR REPLACE USER reader IDENTIFIED BY 'secret'",
    );
    let blind = GovernorProcess::spawn(&user_of(&root, "reader"), &three()).wait();
    assert_eq!(blind.code, Some(1));
    assert!(blind.stderr.contains("PROCESS"), "{blind:?}");
    ask(&root, "GRANT PROCESS ON *.* TO reader");
    let reader = user_of(&root, "reader");
    let mut governor = GovernorProcess::spawn(&reader, &three());
    let output = governor.wait();
    assert_eq!(output.code, Some(1));
    let error: Value = serde_json::from_str(&output.stderr).expect("JSON");
    assert!(
        error["error"]
            .as_str()
            .expect("text")
            .contains("SET GLOBAL innodb_purge_threads"),
        "{error}"
    );
    assert!(
        error["hint"].as_str().expect("text").contains("--dry-run"),
        "{error}"
    );
    let mut looking = GovernorProcess::start(&reader, &json!({"dry_run": true, "duration_s": 0.1}));
    let output = looking.wait();
    assert_eq!(output.code, Some(0), "looking needs no other: {output:?}");
}

fn user_of(root: &Endpoint, name: &str) -> Endpoint {
    let mut endpoint = root.clone();
    if let Endpoint::Mysql {
        user,
        password,
        database,
        ..
    } = &mut endpoint
    {
        name.clone_into(user);
        "secret".clone_into(password);
        "information_schema".clone_into(database);
    }
    endpoint
}

#[test]
fn a_server_that_begins_to_refuse_is_left_alone_for_a_while() {
    let Some(server) = shared() else { return };
    let root = server.endpoint("mysql");
    let before = threads(&root);
    ask(
        &root,
        "CREATE OR REPLACE USER governor IDENTIFIED BY 'secret'",
    );
    ask(&root, "GRANT SUPER, PROCESS ON *.* TO governor");
    let mut governor = GovernorProcess::start(&user_of(&root, "governor"), &three());
    wait_until(|| threads(&root) == 3, || "never 3".into());
    ask(&root, "REVOKE SUPER ON *.* FROM governor");
    ask(&root, "SET GLOBAL innodb_purge_threads = 2");
    ask(&root, "KILL USER governor"); // its next connection lacks the privilege
    governor.wait_for("refused");
    let kept = governor.originals();
    assert_eq!(threads(&root), 2);
    let (decisions, output) = governor.end();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(decisions.last().expect("some")["decision"], "not_restored");
    ask(&root, "GRANT SUPER ON *.* TO governor");
    assert!(restore(&kept).code == Some(0));
    assert_eq!(threads(&root), before);
}

#[test]
fn what_somebody_else_has_set_meanwhile_stays() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = threads(&endpoint);
    let mut governor = GovernorProcess::start(&endpoint, &three());
    wait_until(|| threads(&endpoint) == 3, || "never 3".into());
    ask(&endpoint, "SET GLOBAL innodb_purge_threads = 5");
    let (decisions, output) = governor.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.last_line()["restored"], false);
    assert_eq!(decisions.last().expect("some")["decision"], "not_restored");
    assert_eq!(threads(&endpoint), 5);
    ask(
        &endpoint,
        &format!("SET GLOBAL innodb_purge_threads = {before}"),
    );
}

#[test]
fn of_two_variables_the_one_that_nobody_else_has_set_is_restored() {
    let Some(server) = shared() else { return };
    let endpoint = server.endpoint("mysql");
    let before = (threads(&endpoint), batch(&endpoint));
    let both = json!({"threads": {"least": 3, "most": 3}, "batch_size": {"least": 1, "most": 444}});
    let mut governor = GovernorProcess::start(&endpoint, &both);
    wait_until(
        || (threads(&endpoint), batch(&endpoint)) == (3, 444),
        || "never both".into(),
    );
    ask(&endpoint, "SET GLOBAL innodb_purge_batch_size = 77");
    let (_, output) = governor.end();
    assert_eq!(output.last_line()["restored"], false, "{output:?}");
    assert_eq!((threads(&endpoint), batch(&endpoint)), (before.0, 77));
    let again = format!("SET GLOBAL innodb_purge_batch_size = {}", before.1);
    ask(&endpoint, &again);
}

#[test]
fn a_server_that_turns_the_login_away_lives_and_is_restored_later() {
    let Some(server) = shared() else { return };
    let root = server.endpoint("mysql");
    let before = threads(&root);
    let allowed = "GRANT SUPER, PROCESS ON *.* TO passing";
    let user = "CREATE OR REPLACE USER passing IDENTIFIED BY 'secret'";
    ask(&root, user);
    ask(&root, allowed);
    let mut governor = GovernorProcess::start(&user_of(&root, "passing"), &three());
    wait_until(|| threads(&root) == 3, || "never 3".into());
    governor.signal(Signal::KILL);
    governor.child.wait().expect("gone");
    ask(&root, "DROP USER passing");
    let refused = restore(&governor.originals());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        governor.originals().exists(),
        "whoever comes next needs them"
    );
    assert_eq!(threads(&root), 3);
    ask(&root, user);
    ask(&root, allowed);
    assert_eq!(restore(&governor.originals()).code, Some(0));
    assert_eq!(threads(&root), before);
}

#[test]
fn wrong_parameters_and_servers_that_are_not_there_are_told() {
    let nowhere =
        json!({"kind": "mysql", "socket": "/nowhere/socket", "user": "root", "database": "mysql"});
    let endpoint: Endpoint = serde_json::from_value(nowhere).expect("an endpoint");
    for (changes, said) in [
        (json!({}), "cannot govern"),
        (json!({"period_ms": 0}), "period_ms"),
        (json!({"threads": {"least": 3, "most": 2}}), "threads"),
        (json!({"threads": {"least": 1, "most": 33}}), "threads"),
        (json!({"batch_size": {"least": 0}}), "batch_size"),
        (json!({"low_water_percent": 80}), "stop_percent"),
        (json!({"stop_percent": 101}), "stop_percent"),
        (json!({"hysteresis_percent": 80}), "hysteresis_percent"),
        (
            json!({"endpoint": {"kind": "postgres", "user": "a", "database": "b"}}),
            "InnoDB",
        ),
    ] {
        let output = GovernorProcess::spawn(&endpoint, &changes).wait();
        assert_eq!(output.code, Some(1), "{changes}");
        let text = output.stderr;
        assert!(text.contains(said), "{changes}: {text}");
    }
}
