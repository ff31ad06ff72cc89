//! Sampling a `/proc` of the test's own, tick by tick.

use std::collections::BTreeMap;
use std::fs;

use fairtrial_protocol::sample::Source;
use fairtrial_sample::{SampleError, Sampler};

use crate::fake_proc::FakeProc;
use crate::stream::columns;

const STAT: &str = "cpu  10 1 5 100 7 2 3 4 9 0\ncpu0 10 1 5 100 7 2 3 4 9 0\nintr 12345 1 2 3\nctxt 777\nbtime 1\nprocesses 55\nprocs_running 2\nprocs_blocked 1\nsoftirq 9 9\n";
const MEMINFO: &str = "MemTotal:       1000 kB\nInactive(file):  20 kB\nHugePages_Total:   3\n";
const VMSTAT: &str =
    "nr_free_pages 5\npgscan_direct 6\npgscan_direct_throttle 7\nworkingset_refault_file 8\n";
const DISKSTATS: &str = " 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 254       1 vda1 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37\n";
const PROCESS_STAT: &str = "42 (maria (db) x) S 1 42 42 0 -1 4194560 1000 0 20 0 300 40 0 0 20 0 17 0 999 123456 64 18446744073709551615 1";
const PROCESS_STATUS: &str = "Name:\tmariadbd\nVmSwap:\t      12 kB\nThreads:\t17\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
const PROCESS_IO: &str = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";

fn fake_proc() -> FakeProc {
    let proc = FakeProc::empty();
    for (path, content) in [
        ("stat", STAT),
        ("meminfo", MEMINFO),
        ("vmstat", VMSTAT),
        ("diskstats", DISKSTATS),
        ("42/stat", PROCESS_STAT),
        ("42/status", PROCESS_STATUS),
        ("42/io", PROCESS_IO),
    ] {
        proc.write(path, content);
    }
    let line = |kind| format!("{kind} avg10=0.12 avg60=0.00 avg300=1.00 total=100\n");
    for resource in ["cpu", "memory", "io"] {
        let content = line("some") + &line("full");
        proc.write(&format!("pressure/{resource}"), content);
    }
    proc
}

fn last(columns: &BTreeMap<String, Vec<Option<u64>>>, name: &str) -> Option<u64> {
    *columns
        .get(name)
        .unwrap_or_else(|| panic!("no column {name}"))
        .last()
        .expect("a row")
}

const ALL: [Source; 5] = [
    Source::Cpu,
    Source::Memory,
    Source::Vmstat,
    Source::Disks,
    Source::Pressure,
];

#[test]
fn every_source_gives_its_raw_counters() {
    let proc = fake_proc();
    let mut sampler = proc.open(&ALL, &[("server", 42)]);
    sampler.tick().expect("sampled");
    assert!(sampler.take_warnings().is_empty());
    sampler.finish().expect("finished");

    let cpu = columns(&proc.file("cpu"));
    for (name, value) in [
        ("user", 10),
        ("idle", 100),
        ("iowait", 7),
        ("steal", 4),
        ("guest", 9),
        ("forks", 55),
    ] {
        assert_eq!(last(&cpu, name), Some(value), "{name}");
    }
    assert_eq!(
        (last(&cpu, "context_switches"), last(&cpu, "blocked")),
        (Some(777), Some(1))
    );
    let memory = columns(&proc.file("memory"));
    assert_eq!(last(&memory, "MemTotal"), Some(1000 * 1024));
    assert_eq!(last(&memory, "Inactive(file)"), Some(20 * 1024));
    assert_eq!(last(&memory, "HugePages_Total"), Some(3), "pages, not kB");
    let vmstat = columns(&proc.file("vmstat"));
    assert_eq!(
        (
            last(&vmstat, "pgscan_direct"),
            last(&vmstat, "pgscan_direct_throttle")
        ),
        (Some(6), Some(7))
    );
    let disks = columns(&proc.file("disks"));
    assert_eq!(
        (
            last(&disks, "vda.sectors_read"),
            last(&disks, "vda1.sectors_written")
        ),
        (Some(3), Some(27))
    );
    assert_eq!(disks.len(), 2 * 17);
    assert_eq!(
        last(&columns(&proc.file("pressure")), "memory.full.total_us"),
        Some(100)
    );
}

#[test]
fn a_process_is_read_past_a_name_that_tries_to_confuse() {
    let proc = fake_proc();
    let mut sampler = proc.open(&[], &[("server", 42)]);
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    let process = columns(&proc.file("process-server"));
    let page_bytes = rustix::param::page_size() as u64;
    for (name, value) in [
        ("minor_faults", 1000),
        ("major_faults", 20),
        ("user_ticks", 300),
        ("system_ticks", 40),
        ("threads", 17),
        ("resident_bytes", 64 * page_bytes),
        ("swapped_bytes", 12 * 1024),
        ("main_thread_voluntary_switches", 5),
        ("main_thread_involuntary_switches", 6),
        ("rchar", 1),
        ("wchar", 2),
        ("syscr", 3),
        ("syscw", 4),
        ("read_bytes", 5),
        ("write_bytes", 6),
    ] {
        assert_eq!(last(&process, name), Some(value), "{name}");
    }
}

#[test]
fn columns_stay_those_of_the_first_read() {
    let proc = fake_proc();
    let mut sampler = proc.open(&[Source::Disks, Source::Vmstat], &[]);
    sampler.tick().expect("sampled");
    // vda is unplugged, vdb plugged in; a counter goes, another comes, and the order changes.
    proc.write("diskstats", " 8 0 vdb 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n 254 1 vda1 91 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    proc.write(
        "vmstat",
        "new_counter 1\nworkingset_refault_file 80\npgscan_direct 60\nnr_free_pages 50\n",
    );
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");

    let disks = columns(&proc.file("disks"));
    assert!(!disks.contains_key("vdb.sectors_read"));
    assert_eq!(disks["vda.sectors_read"], [Some(3), None]);
    assert_eq!(disks["vda1.reads_completed"], [Some(21), Some(91)]);
    let vmstat = columns(&proc.file("vmstat"));
    assert!(!vmstat.contains_key("new_counter"));
    assert_eq!(vmstat["nr_free_pages"], [Some(5), Some(50)]);
    assert_eq!(vmstat["pgscan_direct"], [Some(6), Some(60)]);
    assert_eq!(vmstat["pgscan_direct_throttle"], [Some(7), None]);
    assert_eq!(vmstat["workingset_refault_file"], [Some(8), Some(80)]);
}

#[test]
fn milliseconds_of_disks_go_on_where_the_kernels_32_bits_begin_again() {
    let proc = fake_proc();
    let mut sampler = proc.open(&[Source::Disks], &[]);
    for [reads, reading, weighted] in [
        [4_294_967_290_u64, 4_294_967_290, 4_294_967_000],
        [4_294_967_299, 3, 1_000],
        [4_294_967_300, 4, 4_294_967_295],
        [7, 2, 0],
    ] {
        let line =
            format!("254 0 vda {reads} 2 3 {reading} 5 6 7 8 9 10 {weighted} 12 13 14 15 16 17\n");
        proc.write("diskstats", line);
        sampler.tick().expect("sampled");
    }
    sampler.finish().expect("finished");
    let disks = columns(&proc.file("disks"));
    let values = |field: &str| -> Vec<u64> {
        let column = &disks[&format!("vda.{field}")];
        column.iter().flatten().copied().collect()
    };
    let wrap = 1 << 32;
    assert_eq!(
        values("reading_ms"),
        [wrap - 6, wrap + 3, wrap + 4, wrap + 2]
    );
    // From its half on a difference is a step back: a device was plugged in anew.
    assert_eq!(
        values("weighted_busy_ms"),
        [wrap - 296, wrap + 1_000, wrap - 1, wrap]
    );
    assert_eq!(
        values("reads_completed"),
        [wrap - 6, wrap + 3, wrap + 4, 7],
        "64 bits wide"
    );
}

#[test]
fn missing_sources_are_warnings_and_the_others_go_on() {
    let proc = fake_proc();
    fs::remove_dir_all(proc.root.path().join("pressure")).expect("removed");
    proc.write("vmstat", "");
    let mut sampler = proc.open(&ALL, &[("server", 42), ("gone", 43)]);
    let warnings = sampler.take_warnings();
    for missing in [
        "pressure is not sampled",
        "vmstat is not sampled",
        "process-gone is not sampled",
    ] {
        assert!(
            warnings.iter().any(|warning| warning.starts_with(missing)),
            "{missing} in {warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 3);
    assert_eq!(
        sampler.names(),
        ["cpu", "memory", "disks", "process-server"]
    );
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    assert!(!proc.file("pressure").exists());
    assert_eq!(columns(&proc.file("cpu"))["user"].len(), 1);
}

#[test]
fn a_kernel_without_one_kind_of_pressure_gives_the_others() {
    let proc = fake_proc();
    fs::remove_file(proc.root.path().join("pressure/memory")).expect("removed");
    proc.write(
        "pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=31\n",
    );
    let mut sampler = proc.open(&[Source::Pressure], &[]);
    assert_eq!(sampler.take_warnings().len(), 1);
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    let pressure = columns(&proc.file("pressure"));
    assert_eq!(
        pressure.keys().collect::<Vec<_>>(),
        ["cpu.some.total_us", "io.full.total_us", "io.some.total_us"]
    );
    assert_eq!(last(&pressure, "cpu.some.total_us"), Some(31));
}

#[test]
fn a_process_that_keeps_its_io_to_itself_is_followed_without() {
    let proc = fake_proc();
    fs::remove_file(proc.root.path().join("42/io")).expect("removed");
    let mut sampler = proc.open(&[], &[("server", 42)]);
    assert!(sampler.take_warnings()[0].starts_with("input and output of process 42"));
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    let process = columns(&proc.file("process-server"));
    assert!(!process.contains_key("read_bytes"));
    assert_eq!(last(&process, "main_thread_involuntary_switches"), Some(6));
}

#[test]
fn the_file_of_a_process_that_ends_just_ends() {
    let proc = fake_proc();
    let mut sampler = proc.open(&[Source::Cpu], &[("server", 42)]);
    sampler.tick().expect("sampled");
    proc.write("42/stat", PROCESS_STAT.replace(" S 1 ", " Z 1 "));
    sampler.tick().expect("sampled");
    sampler.tick().expect("sampled");
    assert_eq!(
        sampler.take_warnings(),
        ["process-server ended: the process ended"]
    );
    assert_eq!(sampler.names(), ["cpu"]);
    sampler.finish().expect("finished");
    assert_eq!(columns(&proc.file("process-server"))["threads"], [Some(17)]);
    assert_eq!(columns(&proc.file("cpu"))["user"].len(), 3);
}

#[test]
fn rows_are_written_in_batches_and_a_killed_sampler_leaves_whole_ones() {
    let proc = fake_proc();
    let mut sampler = proc.open(&[Source::Cpu], &[]);
    let schema_bytes = fs::metadata(proc.file("cpu")).expect("there").len();
    assert!(schema_bytes > 0, "the schema is written at once");
    for tick in 1..=250_u64 {
        proc.write("stat", STAT.replace("ctxt 777", &format!("ctxt {tick}")));
        sampler.tick().expect("sampled");
    }
    std::mem::forget(sampler); // as SIGKILL does: nothing more is written
    let switches: Vec<u64> = columns(&proc.file("cpu"))["context_switches"]
        .iter()
        .flatten()
        .copied()
        .collect();
    assert_eq!(switches, (1..=200).collect::<Vec<_>>());
}

#[test]
fn an_output_directory_that_is_not_there_is_an_error_with_advice() {
    let proc = fake_proc();
    let mut parameters = proc.sample(&[Source::Cpu], &[], 10);
    parameters.output_directory += "/missing";
    let error = Sampler::open(proc.root.path(), &parameters)
        .err()
        .expect("refused");
    assert!(
        matches!(&error, SampleError::Write { path, .. } if path.ends_with("telemetry-cpu.arrows")),
        "{error}"
    );
    assert!(error.hint().contains("directory exists"));
}

#[test]
fn a_process_cannot_be_called_a_path() {
    let proc = fake_proc();
    let parameters = proc.sample(&[], &[("../server", 42)], 10);
    let error = Sampler::open(proc.root.path(), &parameters)
        .err()
        .expect("refused");
    assert!(matches!(error, SampleError::ProcessName { .. }), "{error}");
}

#[test]
fn an_interval_too_short_is_refused() {
    let proc = fake_proc();
    let error = fairtrial_sample::sample(&proc.sample(&ALL, &[], 9)).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "an interval of 9 ms is too short, the shortest is 10 ms"
    );
}
