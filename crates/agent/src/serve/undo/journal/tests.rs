//! The journal cut, filled and garbled.

use super::*;
use fairtrial_protocol::step::{Action, Inverse};

fn step(name: &str) -> Step {
    Step {
        name: name.to_owned(),
        action: Action::Create {
            path: format!("/{name}"),
        },
        check: None,
        inverse: Inverse::Restore {},
    }
}

fn names(entries: &[JournalEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn what_was_not_undone_is_found_again_after_a_kill() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    let (mut journal, entries) = Journal::open(&path).expect("opens");
    assert!(entries.is_empty());
    let added: Vec<JournalEntry> = ["a", "b", "c"]
        .map(|name| journal.add(&step(name), Way::Nothing).expect("written"))
        .into();
    journal.undone(&added[1]).expect("written");
    drop(journal);

    let (mut journal, entries) = Journal::open(&path).expect("opens");
    assert_eq!(names(&entries), ["a", "c"]);
    let next = journal.add(&step("d"), Way::Nothing).expect("written");
    assert_eq!(
        next.number, 3,
        "numbers are not reused while any is outstanding"
    );
    journal.clear();
    assert!(Journal::open(&path).expect("opens").1.is_empty());
}

#[test]
fn a_torn_last_line_is_of_a_step_that_never_acted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    Journal::open(&path)
        .expect("opens")
        .0
        .add(&step("whole"), Way::Nothing)
        .expect("written");
    let whole = fs::read(&path).expect("readable");
    fs::write(&path, [&whole[..], &whole[..whole.len() / 2]].concat()).expect("writable");

    let (mut journal, entries) = Journal::open(&path).expect("opens");
    assert_eq!(names(&entries), ["whole"]);
    journal.add(&step("after"), Way::Nothing).expect("written");
    assert_eq!(
        names(&Journal::open(&path).expect("opens").1),
        ["whole", "after"]
    );
}

/// A journal of five steps, two undone, with names and contents of several bytes per character; and its steps' names
/// and lines' ends.
fn written(path: &Path) -> Vec<u8> {
    let (mut journal, _) = Journal::open(path).expect("opens");
    let names = ["änderung", "b", "c\n\"d\"", "日本", "e"];
    let entries: Vec<JournalEntry> = names
        .iter()
        .map(|name| {
            let way = Way::Write {
                path: format!("/{name}"),
                value: "ß\0\n".to_owned(),
            };
            journal.add(&step(name), way).expect("written")
        })
        .collect();
    journal.undone(&entries[4]).expect("written");
    journal.undone(&entries[1]).expect("written");
    fs::read(path).expect("readable")
}

/// What a journal of these whole lines leaves to do, worked out without the code under test.
fn expected(lines: &[u8]) -> Vec<String> {
    let mut left: Vec<(u64, String)> = Vec::new();
    for line in lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let value: serde_json::Value = serde_json::from_slice(line).expect("a whole line");
        if let Some(entry) = value.get("applying") {
            let name = entry["name"].as_str().expect("a name");
            left.push((entry["number"].as_u64().expect("a number"), name.to_owned()));
        } else {
            left.retain(|(number, _)| Some(*number) != value["undone"].as_u64());
        }
    }
    left.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn a_journal_cut_at_any_byte_gives_the_steps_whose_line_is_whole_and_not_undone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    let bytes = written(&path);
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).expect("writable");
        let whole = bytes[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let (mut journal, entries) = Journal::open(&path).expect("opens");
        assert_eq!(names(&entries), expected(&bytes[..whole]), "cut at {cut}");
        journal.add(&step("next"), Way::Nothing).expect("written");
        let again = Journal::open(&path).expect("opens").1;
        let (next, before) = again.split_last().expect("one at least");
        assert_eq!(
            (next.name.as_str(), before),
            ("next", &entries[..]),
            "cut at {cut}"
        );
        assert!(before.iter().all(|entry| entry.number < next.number));
    }
}

#[test]
fn a_line_of_another_format_is_refused_and_nothing_of_it_is_lost() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    let known = written(&path);
    let strange: [&[u8]; 6] = [
        b"{\"applying\":{\"number\":5,\"name\":\"n\",\"way\":{\"kind\":\"reboot\"},\"check\":null}}\n",
        b"{\"format\":2}\n",
        b"not a journal at all\n",
        b"\n",
        b"\xff\xfe\x00\n",
        b"{\"applying\":{\"number\":5,\"name\":\"n\"}\n",
    ];
    for line in strange {
        let bytes = [&known[..], line, b"{\"undone\":0}\n"].concat();
        fs::write(&path, &bytes).expect("writable");
        let refusal = Journal::open(&path).err().expect("refused").to_string();
        assert!(
            refusal.contains("line 8 of") && refusal.contains("undo.jsonl"),
            "{refusal}"
        );
        assert_eq!(fs::read(&path).expect("readable"), bytes);
    }
}

#[test]
fn numbers_go_on_above_what_is_outstanding() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    written(&path);
    for _ in 0..3 {
        let (mut journal, entries) = Journal::open(&path).expect("opens");
        let newest = entries.last().expect("outstanding").number;
        assert_eq!(
            journal
                .add(&step("more"), Way::Nothing)
                .expect("written")
                .number,
            newest + 1
        );
    }
}

#[test]
fn a_journal_that_cannot_be_opened_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("missing/undo.jsonl");
    let failure = Journal::open(&path)
        .err()
        .expect("no directory")
        .to_string();
    assert!(failure.contains("missing/undo.jsonl"), "{failure}");
    let failure = Journal::open(directory.path())
        .err()
        .expect("a directory")
        .to_string();
    assert!(failure.starts_with("open "), "{failure}");
}

#[test]
fn a_line_that_a_full_disk_cut_is_taken_back_before_the_next() {
    if !rustix::process::geteuid().is_root() {
        return; // mounting a small file system takes root
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (target, size) = (directory.path(), c"size=8k");
    rustix::mount::mount(
        "none",
        target,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        size,
    )
    .expect("mounted");
    let path = target.join("undo.jsonl");
    let (mut journal, _) = Journal::open(&path).expect("opens");
    journal.add(&step("first"), Way::Nothing).expect("written");
    let long = "x".repeat(9000);
    let failure = journal
        .add(&step(&long), Way::Nothing)
        .expect_err("full")
        .to_string();
    let added = journal
        .add(&step("second"), Way::Nothing)
        .expect("there is room for a short one");
    drop(journal);
    let entries = Journal::open(&path).expect("opens").1;
    rustix::mount::unmount(target, rustix::mount::UnmountFlags::DETACH).expect("unmounted");
    assert!(failure.contains("No space left"), "{failure}");
    assert_eq!(
        (names(&entries), added.number),
        (vec!["first", "second"], 1)
    );
}

/// One way back of each kind, by what it takes back.
fn ways() -> [(&'static str, Way); 8] {
    let write = |path: &str| Way::Write {
        path: path.to_owned(),
        value: "1".to_owned(),
    };
    [
        (
            "zram",
            Way::Execute {
                argv: vec!["swapoff".to_owned()],
                lasting: false,
            },
        ),
        (
            "server",
            Way::Execute {
                argv: vec!["sql-restore".to_owned()],
                lasting: true,
            },
        ),
        ("kernel", write("/sys/kernel/mm/ksm/run")),
        (
            "mount",
            Way::Unmount {
                target: "/mnt".to_owned(),
            },
        ),
        ("file", write("/etc/hosts")),
        (
            "directory",
            Way::Remove {
                path: "/var/lib/x".to_owned(),
            },
        ),
        (
            "device",
            Way::Remove {
                path: "/sys/kernel/config/nullb/x".to_owned(),
            },
        ),
        (
            "group",
            Way::Disband {
                path: "/sys/fs/cgroup/x".to_owned(),
            },
        ),
    ]
}

#[test]
fn what_ended_with_an_earlier_boot_is_not_taken_from_whoever_has_its_name_now() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("undo.jsonl");
    let ways = ways();
    let (mut journal, _) = Journal::open(&path).expect("opens");
    for (name, way) in &ways {
        journal.add(&step(name), way.clone()).expect("written");
    }
    drop(journal);
    let all = ways.each_ref().map(|(name, _)| *name);
    let (_, entries) = Journal::open(&path).expect("opens");
    assert_eq!(names(&entries), all);

    let boot = entries[0].boot.clone().expect("every Linux tells it");
    let text = fs::read_to_string(&path).expect("readable");
    let renamed = text.replace(&boot.id, "another");
    assert_ne!(renamed, text);
    fs::write(&path, &renamed).expect("writable");
    assert_eq!(
        names(&Journal::open(&path).expect("opens").1),
        all,
        "a container that began anew on the same kernel"
    );
    let began = format!("\"began_s\":{}", boot.began_s);
    let earlier = format!("\"began_s\":{}", boot.began_s - 60);
    fs::write(&path, renamed.replace(&began, &earlier)).expect("writable");
    assert_eq!(
        names(&Journal::open(&path).expect("opens").1),
        ["server", "file", "directory"]
    );
    assert_eq!(
        names(&Journal::open(&path).expect("opens").1),
        ["server", "file", "directory"],
        "what is gone is noted as undone"
    );
    let noted = serde_json::to_string(&boot).expect("plain");
    fs::write(&path, text.replace(&noted, "null")).expect("writable");
    assert_eq!(
        names(&Journal::open(&path).expect("opens").1),
        all,
        "of a journal that does not say"
    );
}
