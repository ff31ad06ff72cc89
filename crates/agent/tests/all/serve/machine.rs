//! Sessions with state directories of their own on one machine: whose way back leads where.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::controller::{Agent, eventually, write_step};
use serde_json::{Value, json};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn greeted(machine: &Path, name: &str) -> Agent {
    let mut agent = Agent::start_on(machine, directory());
    assert_eq!(agent.greet_as(name)["event"], "hello");
    agent
}

fn content(path: &str) -> String {
    fs::read_to_string(path).expect("readable")
}

/// A setting of the machine.
fn setting(machine: &TempDir) -> String {
    let path = machine.path().join("setting");
    fs::write(&path, "own").expect("writable");
    path.display().to_string()
}

#[test]
fn one_session_at_a_time_changes_a_machine_whatever_its_state_directory() {
    let machine = directory();
    let path = setting(&machine);
    let (mut first, mut second) = (
        greeted(machine.path(), "first"),
        greeted(machine.path(), "second"),
    );
    assert_eq!(first.ask(&write_step(1, &path, "a"))["event"], "changed");
    let refused = second.ask(&write_step(1, &path, "b"));
    assert_eq!(refused["code"], "busy", "{refused}");
    assert!(refused["message"].as_str().expect("text").contains("first"));
    assert_eq!(content(&path), "a");
    first.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(second.ask(&write_step(2, &path, "b"))["event"], "changed");
    assert_eq!(first.ask(&write_step(3, &path, "a"))["code"], "busy");
    second.end();
    assert_eq!(content(&path), "own");
    assert_eq!(first.ask(&write_step(4, &path, "a"))["event"], "changed");
    first.end();
    assert_eq!(content(&path), "own");
}

#[test]
fn what_a_dead_session_changed_is_undone_before_another_state_directory_changes_anything() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let left = first.kill();
    let mut second = greeted(machine.path(), "second");
    let refused = second.ask(&write_step(1, &path, "b"));
    assert_eq!(refused["code"], "refused", "{refused}");
    let journal = left.path().join("undo.jsonl").display().to_string();
    assert!(
        refused["message"]
            .as_str()
            .expect("text")
            .contains(&journal)
    );
    assert_eq!(content(&path), "a");
    let mut heir = Agent::start_on(machine.path(), left);
    assert_eq!(heir.greet()["leftovers"]["undone"], 1);
    assert_eq!(content(&path), "own");
    assert_eq!(second.ask(&write_step(2, &path, "b"))["event"], "changed");
}

#[test]
fn who_died_and_left_nothing_to_undo_stands_in_nobodys_way() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let left = first.kill();
    fs::remove_file(left.path().join("undo.jsonl")).expect("restored by hand");
    let mut second = greeted(machine.path(), "second");
    assert_eq!(second.ask(&write_step(1, &path, "b"))["event"], "changed");
}

/// The copy of a session's undo journal beside the machine's lock.
fn copy(machine: &Path) -> PathBuf {
    let entries = fs::read_dir(machine).expect("readable");
    let mut names = entries.map(|entry| entry.expect("an entry").path());
    names
        .find(|path| path.extension().is_some_and(|name| name == "jsonl"))
        .expect("a copy")
}

#[test]
fn what_a_dead_session_changed_is_undone_even_if_its_state_directory_is_removed() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    let made = machine.path().join("made").display().to_string();
    first.ask(&write_step(1, &path, "a"));
    let create = json!({"name": "made", "action": {"kind": "create", "path": made}, "inverse": {"kind": "restore"}});
    first.ask(&json!({"request": "change", "id": 2, "step": create}));
    drop(first.kill());
    let mut second = greeted(machine.path(), "second");
    assert_eq!(second.ask(&write_step(1, &path, "b"))["before"], "own");
    assert!(!Path::new(&made).exists());
    second.end();
    assert_eq!(content(&path), "own");
    let mut left: Vec<_> = fs::read_dir(machine.path())
        .expect("readable")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["machine.lock", "setting"]);
}

#[test]
fn what_a_dead_session_changed_is_undone_for_one_that_changes_nothing() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    drop(first.kill());
    fs::write(&path, "somebody's").expect("writable");
    let mut second = Agent::start_on(machine.path(), directory());
    let held = format!("{path} held \"somebody's\" instead of \"own\"");
    assert_eq!(
        second.greet()["leftovers"],
        json!({"undone": 1, "killed": 0, "failed": [], "overwritten": [held]})
    );
    assert_eq!(content(&path), "own");
    let mut third = greeted(machine.path(), "third");
    assert_eq!(third.ask(&write_step(1, &path, "c"))["event"], "changed");
}

#[test]
fn what_a_dead_session_left_elsewhere_is_told_to_one_that_changes_nothing() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let mut beside = Agent::start_on(machine.path(), directory());
    assert_eq!(beside.greet()["leftovers"]["failed"], json!([]), "it lives");
    let left = first.kill();
    let mut second = Agent::start_on(machine.path(), directory());
    let failed = second.greet()["leftovers"]["failed"].clone();
    let journal = left.path().join("undo.jsonl").display().to_string();
    assert!(
        failed[0]
            .as_str()
            .is_some_and(|said| said.contains(&journal)),
        "{failed}"
    );
    let mut heir = Agent::start_on(machine.path(), left);
    assert_eq!(heir.greet()["leftovers"]["undone"], 1);
    let mut third = Agent::start_on(machine.path(), directory());
    assert_eq!(third.greet()["leftovers"]["failed"], json!([]));
}

/// A step whose way back is not of this machine.
fn options_of_a_server(id: u64, back: &str) -> Value {
    let action = json!({"kind": "execute", "argv": ["true"]});
    let inverse = json!({"kind": "execute", "argv": ["sh", "-c", back], "lasting": true});
    let step = json!({"name": "options", "action": action, "inverse": inverse});
    json!({"request": "change", "id": id, "step": step})
}

#[test]
fn options_of_a_server_that_cannot_be_restored_leave_the_machine_to_others() {
    let machine = directory();
    let path = setting(&machine);
    let (mut first, mut second) = (
        greeted(machine.path(), "first"),
        greeted(machine.path(), "second"),
    );
    let up = machine.path().join("up");
    let back = format!("test -e {}", up.display());
    first.ask(&write_step(1, &path, "a"));
    first.ask(&options_of_a_server(2, &back));
    let undone = first.ask(&json!({"request": "undo", "id": 3, "keep": 0}));
    let failed = undone["failed"].as_array().map(Vec::len);
    assert_eq!((&undone["steps"], failed), (&json!(1), Some(1)));
    assert_eq!(second.ask(&write_step(1, &path, "b"))["event"], "changed");
    let mut heir = Agent::start_on(machine.path(), first.kill());
    let leftovers = heir.greet()["leftovers"].clone();
    assert_eq!(leftovers["failed"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        second.ask(&json!({"request": "undo", "id": 2, "keep": 0}))["steps"],
        1
    );
    heir.ask(&write_step(1, &path, "c"));
    let undone = heir.ask(&json!({"request": "undo", "id": 2, "keep": 0}));
    assert_eq!(
        (&undone["steps"], &undone["failed"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(content(&path), "own");
    fs::write(&up, "").expect("writable");
    let mut last = Agent::start_on(machine.path(), heir.kill());
    assert_eq!(last.greet()["leftovers"]["undone"], 1);
}

/// Forgets what a state directory says: by removing it, where the new one often gets the same inode, and by emptying
/// it, where it surely has.
fn made_again(place: &TempDir, is_removed: bool) {
    if is_removed {
        fs::remove_dir_all(place.path()).expect("removable");
        fs::create_dir(place.path()).expect("made again");
        return;
    }
    for name in ["undo.jsonl", "lock"] {
        fs::remove_file(place.path().join(name)).expect("removable");
    }
}

#[test]
fn what_a_dead_session_changed_is_undone_even_if_its_state_directory_is_made_again() {
    let machine = directory();
    let path = setting(&machine);
    for is_removed in [true, false] {
        let mut first = greeted(machine.path(), "first");
        first.ask(&write_step(1, &path, "a"));
        let place = first.kill();
        made_again(&place, is_removed);
        let mut second = Agent::start_on(machine.path(), place);
        assert_eq!(second.greet_as("second")["event"], "hello");
        second.ask(&options_of_a_server(1, "true"));
        assert_eq!(second.ask(&write_step(2, &path, "b"))["before"], "own");
        second.end();
        assert_eq!(content(&path), "own");
    }
}

#[test]
fn what_a_dead_session_changed_is_undone_by_others_if_its_state_directory_is_made_again() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let place = first.kill();
    made_again(&place, true);
    let mut heir = Agent::start_on(machine.path(), place);
    assert_eq!(heir.greet_as("heir")["event"], "hello");
    let mut second = greeted(machine.path(), "second");
    assert_eq!(second.ask(&write_step(1, &path, "b"))["before"], "own");
}

#[test]
fn a_way_back_that_its_state_directory_lost_and_that_fails_stands_in_the_way() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let place = first.kill();
    made_again(&place, false);
    let aside = machine.path().join("aside");
    fs::rename(&path, &aside).expect("moved");
    let mut second = Agent::start_on(machine.path(), place);
    assert_eq!(second.greet_as("second")["event"], "hello");
    let refused = second.ask(&write_step(1, &path, "b"));
    let said = refused["message"].as_str().expect("text");
    assert!(said.contains("no longer says it"), "{said}");
    assert!(said.contains("machine.lock"), "{said}");
    fs::rename(&aside, &path).expect("moved back");
    assert_eq!(second.ask(&write_step(2, &path, "b"))["before"], "own");
}

#[test]
fn a_way_back_that_fails_still_stands_in_the_way() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    drop(first.kill());
    fs::rename(&path, machine.path().join("elsewhere")).expect("moved");
    let mut second = greeted(machine.path(), "second");
    let refused = second.ask(&write_step(1, &path, "b"));
    assert_ne!(refused["event"], "changed", "{refused}");
    fs::rename(machine.path().join("elsewhere"), &path).expect("moved back");
    assert_eq!(second.ask(&write_step(2, &path, "b"))["before"], "own");
}

#[test]
fn a_copy_that_others_may_write_is_not_followed() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    drop(first.kill());
    let open = Permissions::from_mode(0o666);
    fs::set_permissions(copy(machine.path()), open).expect("set");
    let mut second = greeted(machine.path(), "second");
    let refused = second.ask(&write_step(1, &path, "b"));
    assert_eq!(refused["code"], "refused", "{refused}");
    let said = refused["message"].as_str().expect("text");
    assert!(said.contains("can be written by other users"), "{said}");
    assert_eq!(content(&path), "a");
}

#[test]
fn who_died_and_whose_state_directory_is_away_stands_in_the_way_until_the_lock_is_removed() {
    let machine = directory();
    let path = setting(&machine);
    for is_mounted_there in [true, false] {
        let mut first = greeted(machine.path(), "first");
        first.ask(&write_step(1, &path, "a"));
        let place = first.kill();
        let state = place.path().to_owned();
        drop(place);
        fs::remove_file(copy(machine.path())).expect("removable");
        if is_mounted_there {
            fs::create_dir(&state).expect("what a disk leaves that is unmounted");
        }
        let mut second = greeted(machine.path(), "second");
        let refused = second.ask(&write_step(1, &path, "b"));
        assert_eq!(refused["code"], "refused", "{refused}");
        let said = refused["message"].as_str().expect("text");
        let lock = machine.path().join("machine.lock");
        for part in [&state, &lock] {
            assert!(said.contains(&part.display().to_string()), "{said}");
        }
        assert_eq!(content(&path), "a");
        fs::remove_file(lock).expect("restored by hand");
        assert_eq!(second.ask(&write_step(2, &path, "b"))["event"], "changed");
        second.end();
        if is_mounted_there {
            fs::remove_dir(state).expect("still empty");
        }
    }
}

#[test]
fn a_new_state_directory_in_the_place_of_one_that_is_away_restores_and_so_does_that_one() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let place = first.kill();
    let away = machine.path().join("away");
    fs::rename(place.path(), &away).expect("as a disk that is unmounted");
    fs::create_dir(place.path()).expect("where it was mounted");
    let mut second = Agent::start_on(machine.path(), place);
    assert_eq!(second.greet_as("second")["event"], "hello");
    assert_eq!(second.ask(&write_step(1, &path, "b"))["before"], "own");
    let place = second.kill();
    fs::remove_dir_all(place.path()).expect("removable");
    fs::rename(&away, place.path()).expect("mounted again");
    let mut heir = Agent::start_on(machine.path(), place);
    assert_eq!(heir.greet()["leftovers"]["undone"], 1);
    assert_eq!(content(&path), "own");
}

#[test]
fn who_died_before_its_first_change_was_noted_stands_in_nobodys_way() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let place = first.kill();
    fs::write(place.path().join("undo.jsonl"), "").expect("as it was before the step");
    let mut second = Agent::start_on(machine.path(), place);
    assert_eq!(second.greet_as("second")["event"], "hello");
    let mut third = greeted(machine.path(), "third");
    assert_eq!(third.ask(&write_step(1, &path, "b"))["event"], "changed");
}

#[test]
fn who_has_undone_everything_may_take_its_state_directory_away() {
    let machine = directory();
    let path = setting(&machine);
    let undo = json!({"request": "undo", "id": 2, "keep": 0});
    for is_killed in [true, false] {
        let mut first = greeted(machine.path(), "first");
        first.ask(&write_step(1, &path, "a"));
        if is_killed {
            assert_eq!(first.ask(&undo)["event"], "undone");
            drop(first.kill());
        } else {
            first.end();
            drop(first);
        }
        let mut second = greeted(machine.path(), "second");
        assert_eq!(second.ask(&write_step(1, &path, "b"))["event"], "changed");
        second.end();
    }
}

#[test]
fn leftovers_are_not_undone_while_another_session_changes_the_machine() {
    let machine = directory();
    let path = setting(&machine);
    let mut first = greeted(machine.path(), "first");
    first.ask(&write_step(1, &path, "a"));
    let journal = fs::read(first.path("undo.jsonl")).expect("the journal");
    let place = directory();
    let kept = place.path().join("undo.jsonl");
    fs::write(&kept, &journal).expect("written");
    let mut second = Agent::start_on(machine.path(), place);
    assert_eq!(second.greet_as("second")["code"], "busy");
    assert_eq!(
        (content(&path).as_str(), fs::read(&kept).expect("kept")),
        ("a", journal)
    );
    second.end();
    first.hang_up();
    eventually("the first undoes", || content(&path) == "own");
}
