//! Originals restored on a real database, by triggers as a server that has its own mind.

use super::*;
use std::collections::BTreeMap;

use fairtrial_protocol::load::Sql;

struct Stage {
    directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        stage.ask("CREATE TABLE settings (name TEXT, value TEXT)");
        stage
    }

    fn endpoint(&self) -> Endpoint {
        let path = self.directory.path().join("server.sqlite3");
        Endpoint::Sqlite {
            path: path.to_str().expect("text").to_owned(),
            pragmas: BTreeMap::new(),
            busy_timeout_ms: 1000,
        }
    }

    fn ask(&self, statement: &str) -> Option<String> {
        let parameters = Sql {
            endpoint: self.endpoint(),
            statements: vec![statement.to_owned()],
            connect_timeout_ms: 0,
        };
        let mut answers = crate::sql(&parameters).expect("answered");
        cell(answers.pop().expect("one answer"))
    }

    fn set(&self, name: &str, value: &str) {
        self.ask(&format!("DELETE FROM settings WHERE name = '{name}'"));
        self.ask(&format!(
            "INSERT INTO settings VALUES ('{name}', '{value}')"
        ));
    }

    fn value(&self, name: &str) -> Option<String> {
        self.ask(&format!("SELECT value FROM settings WHERE name = '{name}'"))
    }

    fn option(name: &str, original: Option<&str>, set: Option<&str>) -> OriginalOption {
        let read = format!("SELECT value FROM settings WHERE name = '{name}'");
        let restore = original.map_or_else(
            || format!("DELETE FROM settings WHERE name = '{name}'"),
            |value| format!("UPDATE settings SET value = '{value}' WHERE name = '{name}'"),
        );
        OriginalOption {
            name: name.to_owned(),
            read: read.clone(),
            original: original.map(str::to_owned),
            set: set.map(str::to_owned),
            restore,
            effective: read,
            in_effect: original.map(str::to_owned),
            secret: false,
        }
    }

    fn keep(&self, originals: &ServerOriginals) -> std::path::PathBuf {
        let path = self.directory.path().join("originals.json");
        fs::write(&path, serde_json::to_vec(originals).expect("JSON")).expect("written");
        path
    }
}

#[test]
fn what_was_set_is_restored_and_what_others_set_stays() {
    let stage = Stage::new();
    stage.set("ours", "2");
    stage.set("added", "2");
    stage.set("theirs", "3");
    stage.set("unnoted", "2");
    let options = vec![
        Stage::option("ours", Some("1"), Some("2")),
        Stage::option("added", None, Some("2")),
        Stage::option("theirs", Some("1"), Some("2")),
        Stage::option("unnoted", Some("1"), None),
    ];
    let path = stage.keep(&ServerOriginals {
        endpoint: stage.endpoint(),
        lasting: true,
        options,
        others: vec![],
        after: vec!["INSERT INTO settings VALUES ('reloaded', '1')".to_owned()],
        restart: vec![],
    });
    let outcome = restore(&path).expect("restored").expect("a file");
    assert_eq!(outcome.restored, ["ours", "added", "unnoted"]);
    assert_eq!(outcome.foreign, ["theirs"]);
    let values = ["ours", "added", "theirs", "unnoted", "reloaded"].map(|name| stage.value(name));
    let words = values.each_ref().map(Option::as_deref);
    assert_eq!(words, [Some("1"), None, Some("3"), Some("1"), Some("1")]);
    assert!(!path.exists(), "it holds a password");
    assert_eq!(restore(&path).expect("nothing to do"), None);
}

#[test]
fn what_moved_along_is_restored_however_the_options_move_each_other() {
    let stage = Stage::new();
    for (name, value) in [
        ("capacity", "9"),
        ("most", "9"),
        ("theirs", "3"),
        ("unnoted", "5"),
    ] {
        stage.set(name, value);
    }
    // As a server with a default for one that depends on the other.
    stage.ask("CREATE TRIGGER along AFTER UPDATE ON settings WHEN NEW.name = 'capacity' BEGIN UPDATE settings SET value = '0' WHERE name = 'most'; END");
    let path = stage.keep(&ServerOriginals {
        endpoint: stage.endpoint(),
        lasting: false,
        options: vec![Stage::option("capacity", Some("1"), Some("9"))],
        others: vec![
            Stage::option("most", Some("2"), Some("9")),
            Stage::option("theirs", Some("2"), Some("4")),
            Stage::option("unnoted", Some("4"), None), // what set them was killed before it had looked
        ],
        after: vec![],
        restart: vec![],
    });
    let outcome = restore(&path).expect("restored").expect("a file");
    assert_eq!(outcome.restored, ["capacity", "most", "unnoted"]);
    assert_eq!(outcome.foreign, ["theirs"]);
    let values = ["capacity", "most", "theirs", "unnoted"].map(|name| stage.value(name));
    let words = values.each_ref().map(Option::as_deref);
    assert_eq!(words, [Some("1"), Some("2"), Some("3"), Some("4")]);
}

#[test]
fn a_server_that_keeps_another_value_is_told_until_it_has_the_original() {
    let stage = Stage::new();
    stage.set("ours", "2");
    stage.ask("CREATE TRIGGER clipped AFTER UPDATE ON settings WHEN NEW.value = '0' BEGIN UPDATE settings SET value = '1' WHERE name = NEW.name; END");
    let secret = OriginalOption {
        secret: true,
        ..Stage::option("word", Some("hush"), None)
    };
    stage.set("word", "hush");
    let path = stage.keep(&ServerOriginals {
        endpoint: stage.endpoint(),
        lasting: true,
        options: vec![Stage::option("ours", Some("0"), Some("2")), secret],
        others: vec![],
        after: vec![],
        restart: vec![],
    });
    for _ in 0..2 {
        let refused = restore_within(&path, NOTICE)
            .expect_err("clipped")
            .to_string();
        assert!(refused.contains("still has ours = 1"), "{refused}");
        assert!(refused.contains("the server had ours = 0"), "{refused}");
        assert!(refused.contains("originals.json"), "{refused}");
        assert!(!refused.contains("hush"), "{refused}");
    }
    stage.ask("DROP TRIGGER clipped");
    restore(&path).expect("restored");
    assert_eq!(stage.value("ours").as_deref(), Some("0"));
    assert!(!path.with_extension(NEXT).exists());
}

#[test]
fn an_option_that_takes_effect_late_and_refuses_to_be_set_meanwhile_is_waited_for() {
    let stage = Stage::new();
    stage.ask("CREATE TABLE resizes (done REAL)");
    stage.ask("CREATE TRIGGER under_way BEFORE INSERT ON resizes WHEN EXISTS (SELECT 1 FROM resizes) BEGIN SELECT RAISE(ABORT, 'a resize is in progress'); END");
    let read = "SELECT CASE WHEN EXISTS (SELECT 1 FROM resizes WHERE done < julianday('now')) THEN '1' ELSE '2' END";
    let lasting = |seconds: f64| {
        let pool = OriginalOption {
            read: read.to_owned(),
            effective: read.to_owned(),
            restore: format!("INSERT INTO resizes VALUES (julianday('now') + {seconds:?} / 86400)"),
            ..Stage::option("pool", Some("1"), Some("2"))
        };
        stage.keep(&ServerOriginals {
            endpoint: stage.endpoint(),
            lasting: false,
            options: vec![pool],
            others: vec![],
            after: vec![],
            restart: vec![],
        })
    };
    let path = lasting(0.3);
    let outcome = restore(&path).expect("restored").expect("a file");
    assert_eq!(outcome.restored, ["pool"]);
    assert!(!path.exists());
    stage.ask("DELETE FROM resizes");
    let path = lasting(3_600.0);
    let late = restore_within(&path, Duration::ZERO)
        .expect_err("not waited for")
        .to_string();
    assert!(late.contains("still has pool = 2: "), "{late}");
    assert!(late.contains("INSERT INTO resizes"), "{late}");
}

#[test]
fn a_server_that_nobody_listens_for_keeps_the_file_only_of_what_outlasts_it() {
    let stage = Stage::new();
    let socket = stage.directory.path().join("gone.sock");
    let mut originals = ServerOriginals {
        endpoint: Endpoint::mysql_at(&socket, "boss", "mysql"),
        lasting: true,
        options: vec![Stage::option("ours", Some("1"), Some("2"))],
        others: vec![],
        after: vec![],
        restart: vec![],
    };
    let path = stage.keep(&originals);
    let refused = restore(&path).expect_err("nobody answers");
    assert!(refused.to_string().contains("ours = 1"), "{refused}");
    assert!(path.exists());
    originals.lasting = false;
    stage.keep(&originals);
    assert_eq!(
        restore(&path).expect("gone with it"),
        Some(SqlRestored::default())
    );
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_none_of_originals_is_refused_by_name() {
    let stage = Stage::new();
    let path = stage.directory.path().join("originals.json");
    fs::write(&path, "{}").expect("written");
    let refused = restore(&path).expect_err("no originals").to_string();
    assert!(refused.contains("originals.json"), "{refused}");
}

#[test]
fn a_restart_that_fails_is_told_by_its_command_line() {
    let failed = run(&["false".to_owned()])
        .expect_err("it fails")
        .to_string();
    assert!(failed.starts_with("`false` failed"), "{failed}");
    run(&["true".to_owned()]).expect("it does not");
}
