//! Threads that take locks, as a whole: every kind excludes, ends when it should, and its files tell one story.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;

use crate::support::eventually;
use fairtrial_load::{LoadError, drive_locks};
use fairtrial_protocol::arrivals::Spacing;
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Driven;
use fairtrial_protocol::locks::{Contention, LockDrive, LockKind, Turns};
use tempfile::TempDir;

const KINDS: [LockKind; 9] = [
    LockKind::Pthread,
    LockKind::Adaptive,
    LockKind::Fast,
    LockKind::FastLocal,
    LockKind::FastConstant,
    LockKind::Ticket,
    LockKind::Mcs,
    LockKind::Clh,
    LockKind::Spin,
];

fn request(kind: LockKind, out: &Path) -> LockDrive {
    LockDrive {
        kind,
        threads: 8,
        locks: 1,
        padding: true,
        spins: None,
        critical_turns: 20,
        outside_turns: 20,
        spacing: Spacing::Constant,
        lines: 2,
        sample_every: 4,
        ramp_up_s: 0.0,
        duration_s: None,
        acquisitions: Some(500),
        seed: 7,
        interval_ms: 20,
        output_directory: out.to_str().expect("text").into(),
    }
}

fn timed(kind: LockKind, out: &Path) -> LockDrive {
    LockDrive {
        duration_s: Some(0.1),
        acquisitions: None,
        ..request(kind, out)
    }
}

fn here() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn drive(request: &LockDrive) -> (Driven, Contention) {
    let driven = drive_locks(request, &mut io::sink()).expect("driven");
    let path = Path::new(&request.output_directory).join("contention.json");
    let text = fs::read(path).expect("there");
    (driven, serde_json::from_slice(&text).expect("JSON"))
}

/// Drives anew where a machine that others load kept most threads from it: what is tested is the locks.
fn drive_until(
    request: &LockDrive,
    is_meant: impl Fn(&Driven, &Contention) -> bool,
) -> (Driven, Contention) {
    eventually("a drive as it is meant", || {
        let (driven, contention) = drive(request);
        excluded(&contention);
        let meant = is_meant(&driven, &contention);
        if !meant {
            eprintln!("again: {:?}: {contention:?}", request.kind);
        }
        meant.then_some((driven, contention))
    })
}

/// Nobody was where somebody else was, and nothing was lost.
fn excluded(contention: &Contention) {
    assert_eq!(contention.guarded, contention.acquired, "{contention:?}");
    assert_eq!((contention.intruded, contention.torn_lines), (0, 0));
}

#[test]
fn every_kind_excludes_with_more_threads_than_processors_side_by_side_and_apart() {
    let out = here();
    for kind in KINDS {
        for padding in [true, false] {
            let (driven, contention) = drive(&LockDrive {
                padding,
                locks: 3,
                ..request(kind, out.path())
            });
            excluded(&contention);
            assert!(contention.acquired > 0, "{contention:?}");
            assert_eq!(contention.threads.len(), 8);
            let most = contention
                .threads
                .iter()
                .map(|turns| turns.acquisitions)
                .max();
            assert_eq!(
                most,
                Some(500),
                "{kind:?}: the first to have them ends the window"
            );
            let all: u64 = contention
                .threads
                .iter()
                .map(|turns| turns.acquisitions)
                .sum();
            assert_eq!(driven.transactions["acquisition"].committed, all);
        }
    }
}

#[test]
fn every_kind_ends_in_time_when_threads_outnumber_processors_by_far() {
    let out = here();
    for kind in KINDS {
        let request = LockDrive {
            threads: 64,
            ..timed(kind, out.path())
        };
        let began_ns = Cell::new(monotonic_ns());
        drive_until(&request, |driven, contention| {
            assert_eq!(driven.window.end_ns - driven.window.start_ns, 100_000_000);
            let now_ns = monotonic_ns();
            let took_ns = now_ns - began_ns.replace(now_ns);
            contention.acquired > 0 && took_ns < 30_000_000_000
        });
    }
}

#[test]
fn queues_that_sleep_at_once_and_queues_that_never_do_exclude() {
    let out = here();
    for kind in [
        LockKind::Ticket,
        LockKind::Mcs,
        LockKind::Clh,
        LockKind::Fast,
    ] {
        for spins in [0, 20_000] {
            let (driven, contention) = drive(&LockDrive {
                spins: Some(spins),
                threads: 4,
                ..request(kind, out.path())
            });
            excluded(&contention);
            assert_eq!(driven.effective["spins"], spins.to_string());
        }
    }
}

#[test]
fn a_thread_alone_finds_no_lock_taken_and_hands_none_over() {
    let out = here();
    for kind in KINDS {
        let (_, contention) = drive(&LockDrive {
            threads: 1,
            ..request(kind, out.path())
        });
        excluded(&contention);
        let [turns] = contention.threads.as_slice() else {
            panic!("one thread");
        };
        assert_eq!(
            (turns.acquisitions, turns.handed, turns.contended),
            (500, 0, 0)
        );
        assert_eq!(
            turns.sampled,
            1 + 499_u64.div_ceil(4),
            "one in four, the first included"
        );
    }
}

#[test]
fn a_lock_in_the_order_of_arrival_goes_round_and_is_found_taken() {
    let out = here();
    for kind in [LockKind::Ticket, LockKind::Mcs, LockKind::Clh] {
        let request = LockDrive {
            threads: 4,
            critical_turns: 2_000,
            outside_turns: 10,
            sample_every: 1,
            ramp_up_s: 0.2, // until a queue has formed: whoever is first has the lock for itself
            duration_s: Some(0.4),
            ..timed(kind, out.path())
        };
        drive_until(&request, |_, contention| {
            let sum = |of: fn(&Turns) -> u64| contention.threads.iter().map(of).sum::<u64>();
            let all = sum(|turns| turns.acquisitions);
            assert_eq!(sum(|turns| turns.sampled), all);
            let counts = || contention.threads.iter().map(|turns| turns.acquisitions);
            let (least, most) = (counts().min(), counts().max());
            // On a busy machine threads are kept from the queue for a while, but never let past it.
            2 * sum(|turns| turns.handed) > all
                && 2 * sum(|turns| turns.contended) > all
                && least.map(|least| least * 10) > most
        });
    }
}

#[test]
fn ramp_up_is_in_no_figure_but_in_what_is_guarded() {
    let out = here();
    let request = LockDrive {
        ramp_up_s: 0.05,
        ..timed(LockKind::Pthread, out.path())
    };
    let (driven, contention) = drive_until(&request, |driven, contention| {
        let measured = driven.transactions["acquisition"].committed;
        measured > 0 && measured < contention.acquired
    });
    let sampled: u64 = contention.threads.iter().map(|turns| turns.sampled).sum();
    let log = fs::read_to_string(out.path().join("latency.hlog")).expect("there");
    assert_eq!(
        log.matches("Tag=acquisition").count(),
        5,
        "one line per interval of the window"
    );
    assert!(sampled > 0);
    for turns in &contention.threads {
        assert!(
            (0..=100_000_000).contains(&turns.longest_gap_ns),
            "{turns:?}"
        );
    }
    assert!(driven.effective["mutexes_of"].contains("glibc"));
    assert!(contention.turn_ns > 0.0 && contention.clock_ns > 0.0);
}

#[test]
fn locks_apart_have_two_cache_lines_each_and_those_side_by_side_only_what_they_need() {
    let out = here();
    let bytes = |kind, padding| {
        let (driven, contention) = drive(&LockDrive {
            padding,
            threads: 1,
            ..request(kind, out.path())
        });
        assert_eq!(
            driven.effective["lock_bytes"],
            contention.lock_bytes.to_string()
        );
        contention.lock_bytes
    };
    assert_eq!(KINDS.map(|kind| bytes(kind, true)), [128; 9]);
    assert_eq!(
        bytes(LockKind::Pthread, false),
        size_of::<libc::pthread_mutex_t>() as u64
    );
    assert_eq!(
        bytes(LockKind::Fast, false),
        bytes(LockKind::Pthread, false) + 8
    );
    assert_eq!(bytes(LockKind::Mcs, false), 4);
    assert_eq!(bytes(LockKind::Spin, false), 4);
}

/// What makes a drive one that cannot be meant.
type Change = fn(&mut LockDrive);

#[test]
fn what_cannot_be_meant_is_refused_by_the_name_of_its_field() {
    let out = here();
    let wrong: [(&str, Change); 13] = [
        ("threads: must be 1 to 512", |request| request.threads = 0),
        ("threads", |request| request.threads = 513),
        ("locks: must be 1 to 65536", |request| {
            request.locks = 65_537;
        }),
        ("lines: must be 1 to 64", |request| request.lines = 0),
        ("lines: must be at most 1048576", |request| {
            (request.locks, request.lines) = (65_536, 17);
        }),
        ("critical_turns", |request| {
            request.outside_turns = 100_000_001;
        }),
        ("sample_every", |request| request.sample_every = 0),
        ("spins: is for kinds", |request| request.spins = Some(8)),
        ("spins: must be", |request| {
            (request.kind, request.spins) = (LockKind::Mcs, Some(1_000_001));
        }),
        ("interval_ms", |request| request.interval_ms = 9),
        ("ramp_up_s", |request| request.ramp_up_s = f64::NAN),
        ("acquisitions: exactly one", |request| {
            request.duration_s = Some(1.0);
        }),
        ("acquisitions: must be at least sample_every", |request| {
            request.acquisitions = Some(3);
        }),
    ];
    for (said, change) in wrong {
        let mut mistaken = request(LockKind::Pthread, out.path());
        change(&mut mistaken);
        let error = drive_locks(&mistaken, &mut io::sink()).expect_err(said);
        assert!(matches!(error, LoadError::Parameter { .. }), "{error}");
        assert!(error.to_string().starts_with(said), "{error}");
    }
}
