//! Access to files as a whole: what is counted, what is checked, what is refused, and what a signal leaves.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fairtrial_load::{LoadError, drive_files, load_files};
use fairtrial_protocol::file::{FileCounters, FileDistribution, FileDrive, FileEngine, FileLoad};
use fairtrial_protocol::load::Driven;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::apart::is_apart;

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 96;
const JOBS: u32 = 2;

/// Files, and a directory for results.
struct FileSet {
    directory: TempDir,
}

impl FileSet {
    fn new() -> Self {
        let site = Self {
            directory: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(site.out()).expect("made");
        let loading = FileLoad {
            directory: site.text(),
            files: JOBS,
            bytes: BLOCKS * u64::from(BLOCK),
            seed: 5,
        };
        load_files(&loading, &mut std::io::sink()).expect("loaded");
        site
    }

    fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    fn text(&self) -> String {
        self.directory.path().to_str().expect("text").into()
    }

    fn job(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("job.{number}"))
    }

    fn request(&self) -> FileDrive {
        FileDrive {
            directory: self.text(),
            jobs: JOBS,
            bytes: BLOCKS * u64::from(BLOCK),
            block_bytes: BLOCK,
            engine: FileEngine::Pread,
            direct: false,
            depth: 1,
            distribution: FileDistribution::Random {},
            write_share: 0.0,
            accesses: Some(700),
            duration_s: None,
            warm_up_accesses: 50,
            seed: 9,
            interval_ms: 10,
            output_directory: self.out().to_str().expect("text").into(),
        }
    }
}

fn drive(request: &FileDrive) -> Result<Driven, LoadError> {
    drive_files(request, &mut std::io::sink())
}

fn committed(driven: &Driven, kind: &str) -> u64 {
    driven.transactions[kind].committed
}

fn refused(request: &FileDrive) -> String {
    drive(request).expect_err("refused").to_string()
}

#[test]
fn each_job_does_its_accesses_and_warming_up_is_not_among_them() {
    let site = FileSet::new();
    let driven = drive(&site.request()).expect("driven");
    assert_eq!(committed(&driven, "read"), 2 * 700);
    assert_eq!(committed(&driven, "write"), 0);
    assert_eq!(driven.effective["blocks_per_file"], "96");
    assert!(driven.window.end_ns > driven.window.start_ns);
    let written: Driven =
        serde_json::from_slice(&fs::read(site.out().join("result.json")).expect("there"))
            .expect("JSON");
    assert_eq!(written, driven);
}

#[test]
fn the_counters_stand_around_the_window() {
    let site = FileSet::new();
    let driven = drive(&site.request()).expect("driven");
    let text = fs::read(site.out().join("counters.json")).expect("there");
    let [before, after]: [FileCounters; 2] = serde_json::from_slice(&text).expect("two of them");
    assert!(before.time_ns <= driven.window.start_ns);
    assert!(after.time_ns >= driven.window.end_ns);
    assert_eq!(before.medium, after.medium);
    assert!(after.vmstat["pgfault"] >= before.vmstat["pgfault"]);
}

#[test]
fn what_the_kernel_read_for_the_jobs_is_all_that_they_read() {
    // The kernel counts for a process, whose other threads run other tests.
    if !is_apart("file_access::what_the_kernel_read_for_the_jobs_is_all_that_they_read") {
        return;
    }
    let site = FileSet::new();
    let request = FileDrive {
        direct: true,
        ..site.request()
    };
    match drive(&request) {
        Ok(driven) => assert_eq!(driven.client.blocks_in * 512, 2 * 700 * 4096),
        Err(error) => {
            assert!(error.to_string().contains("cannot open"), "{error}");
            eprintln!("no direct access here: {error}");
        }
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error_and_nobody_waits_for_it() {
    // The limit holds for a whole process.
    if !is_apart("file_access::a_thread_that_cannot_be_started_is_an_error_and_nobody_waits_for_it")
    {
        return;
    }
    let site = FileSet::new();
    let loading = FileLoad {
        directory: site.text(),
        files: 64,
        bytes: u64::from(BLOCK),
        seed: 5,
    };
    load_files(&loading, &mut std::io::sink()).expect("loaded");
    let request = FileDrive {
        jobs: 64,
        bytes: u64::from(BLOCK),
        ..site.request()
    };
    let status = fs::read_to_string("/proc/self/status").expect("of this process");
    let space = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let space = space.and_then(|space| space.trim().strip_suffix(" kB"));
    let space: u64 = space.expect("in kB").parse().expect("a number");
    let before = getrlimit(Resource::As);
    let lowered = Rlimit {
        current: Some((space << 10) + (32 << 20)), // stacks take 2 MiB each
        ..before
    };
    setrlimit(Resource::As, lowered).expect("lowered");
    let error = drive(&request).expect_err("no room for 64 stacks");
    setrlimit(Resource::As, before).expect("as before");
    assert!(matches!(error, LoadError::Start { .. }), "{error}");
}

#[test]
fn equal_seeds_access_equal_blocks_and_others_do_not() {
    let site = FileSet::new();
    let writes = |seed| {
        let request = FileDrive {
            seed,
            write_share: 0.5,
            ..site.request()
        };
        committed(&drive(&request).expect("driven"), "write")
    };
    assert_eq!(writes(1), writes(1));
    let several: Vec<_> = (2..8).map(writes).collect();
    assert!(
        several.iter().any(|count| *count != several[0]),
        "{several:?}"
    );
}

#[test]
fn every_distribution_and_engine_reads_the_right_blocks() {
    let site = FileSet::new();
    let distributions = [
        FileDistribution::Random {},
        FileDistribution::Zipf { theta: 0.8 },
        FileDistribution::Pareto { h: 0.2 },
        FileDistribution::Normal {
            deviation_percent: 14.0,
        },
    ];
    for distribution in distributions {
        for (engine, depth) in [
            (FileEngine::Pread, 1),
            (FileEngine::Mmap, 1),
            (FileEngine::IoUring, 16),
        ] {
            let request = FileDrive {
                engine,
                depth,
                distribution,
                write_share: 0.2,
                ..site.request()
            };
            match drive(&request) {
                Ok(driven) => assert_eq!(
                    committed(&driven, "read") + committed(&driven, "write"),
                    2 * 700,
                    "{engine:?} {distribution:?}"
                ),
                Err(error) => {
                    assert_eq!(engine, FileEngine::IoUring, "{error}");
                    eprintln!("no io_uring here: {error}");
                }
            }
        }
    }
}

#[test]
fn writes_leave_every_block_where_it_belongs() {
    let site = FileSet::new();
    let request = FileDrive {
        write_share: 1.0,
        ..site.request()
    };
    assert_eq!(
        committed(&drive(&request).expect("written"), "write"),
        2 * 700
    );
    let request = FileDrive {
        seed: 10,
        ..site.request()
    };
    assert_eq!(
        committed(&drive(&request).expect("read back"), "read"),
        2 * 700
    );
}

#[test]
fn a_block_of_another_file_ends_the_drive() {
    let site = FileSet::new();
    let mut held = vec![0; BLOCK as usize];
    fs::File::open(site.job(0))
        .expect("there")
        .read_exact_at(&mut held, 4096)
        .expect("read");
    let other = fs::OpenOptions::new()
        .write(true)
        .open(site.job(1))
        .expect("there");
    for block in 0..BLOCKS {
        other
            .write_all_at(&held, block * u64::from(BLOCK))
            .expect("written");
    }
    let error = drive(&site.request()).expect_err("found out");
    assert!(matches!(error, LoadError::WrongBlock { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("job.1 holds at byte") && text.contains("at byte 4096 of job.0"),
        "{text}"
    );
    assert!(error.hint().contains("do not trust"), "{}", error.hint());
}

#[test]
fn a_file_that_is_missing_or_too_short_is_named() {
    let site = FileSet::new();
    fs::File::options()
        .write(true)
        .open(site.job(1))
        .and_then(|file| file.set_len(4096))
        .expect("cut");
    let text = refused(&site.request());
    assert!(
        text.contains("cannot open") && text.contains("job.1"),
        "{text}"
    );
    fs::remove_file(site.job(0)).expect("removed");
    assert!(refused(&site.request()).contains("job.0"));
}

#[test]
fn a_timed_window_is_as_long_as_asked_and_its_files_agree() {
    let site = FileSet::new();
    let request = FileDrive {
        accesses: None,
        duration_s: Some(0.15),
        ..site.request()
    };
    let driven = drive(&request).expect("driven");
    assert_eq!(driven.window.end_ns - driven.window.start_ns, 150_000_000);
    let log = fs::read_to_string(site.out().join("latency.hlog")).expect("there");
    let reads = log
        .lines()
        .filter(|line| line.starts_with("Tag=read,"))
        .count();
    assert_eq!(reads, 15, "one line per interval of 10 ms");
}

#[test]
fn progress_says_when_the_window_begins_and_ends() {
    let site = FileSet::new();
    let mut said = Vec::new();
    let driven = drive_files(&site.request(), &mut said).expect("driven");
    let lines: Vec<Value> = said
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["progress"], "measuring");
    assert_eq!(lines[0]["time_ns"], driven.window.start_ns);
    assert_eq!(lines.last().expect("lines")["progress"], "finishing");
}

type Spoil = fn(&mut FileDrive);

const WRONG: [(&str, Spoil); 12] = [
    ("jobs", |request| request.jobs = 0),
    ("block_bytes", |request| request.block_bytes = 100),
    ("bytes", |request| request.bytes = 4097),
    ("depth", |request| request.depth = 2),
    ("depth", |request| request.depth = 0),
    ("direct", |request| {
        (request.direct, request.engine) = (true, FileEngine::Mmap);
    }),
    ("write_share", |request| request.write_share = 1.5),
    ("interval_ms", |request| request.interval_ms = 1),
    ("duration_s", |request| {
        (request.duration_s, request.accesses) = (Some(0.0), None);
    }),
    ("accesses", |request| request.duration_s = Some(1.0)),
    ("accesses", |request| request.accesses = Some(0)),
    ("distribution", |request| {
        request.distribution = FileDistribution::Zipf { theta: -1.0 };
    }),
];

#[test]
fn what_contradicts_itself_is_refused_by_its_field() {
    let site = FileSet::new();
    for (field, spoil) in WRONG {
        let mut request = site.request();
        spoil(&mut request);
        let text = refused(&request);
        assert!(text.starts_with(&format!("{field}: ")), "{field}: {text}");
    }
}

#[test]
fn counters_of_a_missing_path_name_it() {
    let request = fairtrial_protocol::file::FileCountersOf {
        path: "/nowhere/job.0".into(),
    };
    let error = fairtrial_load::file_counters(&request).expect_err("missing");
    assert!(error.to_string().contains("/nowhere/job.0"), "{error}");
    assert!(Path::new("/proc/vmstat").exists());
}
