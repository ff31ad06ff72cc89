//! What different kernels print, whole and damaged.
//!
//! `kernels/6.18` was recorded. The others have the names and forms that those kernels print (fewer counters, no
//! `full` line of processor pressure in 5.10, no flushes in 4.19, no discards in 4.14), with values made up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairtrial_protocol::sample::Source;
use fairtrial_sample::Sampler;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::fake_proc::FakeProc;
use crate::stream::columns;

const WHOLE: [&str; 4] = ["5.10", "6.1", "6.12", "6.18"];
const SOURCES: [(Source, &str); 5] = [
    (Source::Cpu, "cpu"),
    (Source::Memory, "memory"),
    (Source::Vmstat, "vmstat"),
    (Source::Disks, "disks"),
    (Source::Pressure, "pressure"),
];
const FILES: [&str; 7] = [
    "stat",
    "meminfo",
    "vmstat",
    "diskstats",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
];
const DISK_FIELDS: &str = "reads_completed reads_merged sectors_read reading_ms writes_completed writes_merged \
    sectors_written writing_ms in_flight busy_ms weighted_busy_ms discards_completed discards_merged \
    sectors_discarded discarding_ms flushes_completed flushing_ms";
const CPU_CLASSES: &str = "user nice system idle iowait irq softirq steal guest guest_nice";

type Values = BTreeMap<String, u64>;

fn recorded(kernel: &str, file: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    fs::read_to_string(directory.join(kernel).join(file)).expect("recorded")
}

fn proc_of(kernel: &str) -> FakeProc {
    let proc = FakeProc::empty();
    for file in FILES {
        proc.write(file, recorded(kernel, file));
    }
    proc
}

/// What a source should say, worked out slowly from the text.
fn expected(source: Source, kernel: &str) -> Values {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match source {
        Source::Cpu => {
            let text = recorded(kernel, "stat");
            let words = |line: &str| {
                line.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let lines: BTreeMap<String, Vec<String>> = text
                .lines()
                .map(words)
                .map(|words| (words[0].clone(), words))
                .collect();
            let classes = CPU_CLASSES.split(' ').map(str::to_owned);
            let mut values: Values = classes
                .zip(lines["cpu"][1..].iter().map(|value| number(value)))
                .collect();
            for (word, column) in [
                ("ctxt", "context_switches"),
                ("processes", "forks"),
                ("procs_running", "running"),
                ("procs_blocked", "blocked"),
            ] {
                values.insert(column.to_owned(), number(&lines[word][1]));
            }
            values
        }
        Source::Memory => {
            let text = recorded(kernel, "meminfo");
            text.lines()
                .map(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let unit = if words.len() == 3 { 1024 } else { 1 };
                    (
                        words[0].trim_end_matches(':').to_owned(),
                        number(words[1]) * unit,
                    )
                })
                .collect()
        }
        Source::Vmstat => {
            let text = recorded(kernel, "vmstat");
            let pairs = text
                .lines()
                .map(|line| line.split_once(' ').expect("a pair"));
            pairs
                .map(|(name, value)| (name.to_owned(), number(value)))
                .collect()
        }
        Source::Disks => disks(&recorded(kernel, "diskstats")),
        Source::Pressure => {
            let mut values = Values::new();
            for resource in ["cpu", "memory", "io"] {
                for line in recorded(kernel, &format!("pressure/{resource}")).lines() {
                    let (kind, rest) = line.split_once(' ').expect("a kind");
                    let (_, total) = rest.split_once("total=").expect("a total");
                    values.insert(format!("{resource}.{kind}.total_us"), number(total));
                }
            }
            values
        }
    }
}

fn disks(text: &str) -> Values {
    let mut values = Values::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (field, value) in DISK_FIELDS.split_whitespace().zip(&words[3..]) {
            values.insert(
                format!("{}.{field}", words[2]),
                value.parse().expect("a number"),
            );
        }
    }
    values
}

/// The last row of a stream.
fn last_row(path: &Path) -> BTreeMap<String, Option<u64>> {
    columns(path)
        .into_iter()
        .map(|(name, values)| (name, *values.last().expect("a row")))
        .collect()
}

fn said(values: Values) -> BTreeMap<String, Option<u64>> {
    values
        .into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect()
}

#[test]
fn every_counter_of_every_kernel_is_read_under_its_name() {
    for kernel in WHOLE {
        let proc = proc_of(kernel);
        let mut sampler = proc.open(&SOURCES.map(|(source, _)| source), &[]);
        sampler.tick().expect("sampled");
        assert!(sampler.take_warnings().is_empty());
        sampler.finish().expect("finished");
        for (source, name) in SOURCES {
            let values = expected(source, kernel);
            assert!(
                values.len() >= 5,
                "{kernel} {name}: the record is not empty"
            );
            assert_eq!(last_row(&proc.file(name)), said(values), "{kernel} {name}");
        }
    }
}

#[test]
fn a_kernel_without_discards_or_flushes_gives_the_fields_it_has() {
    for (kernel, fields) in [("4.14", 11), ("4.19", 15), ("5.10", 17)] {
        let proc = FakeProc::empty();
        proc.write("diskstats", recorded(kernel, "diskstats"));
        let mut sampler = proc.open(&[Source::Disks], &[]);
        sampler.tick().expect("sampled");
        sampler.finish().expect("finished");
        let row = last_row(&proc.file("disks"));
        assert_eq!(
            row.keys().filter(|name| name.starts_with("sda.")).count(),
            fields,
            "{kernel}"
        );
        assert_eq!(row, said(disks(&recorded(kernel, "diskstats"))), "{kernel}");
    }
}

#[test]
fn a_kernel_without_full_pressure_of_processors_gives_some() {
    let proc = proc_of("5.10");
    let sampler = proc.open(&[Source::Pressure], &[]);
    sampler.finish().expect("finished");
    let columns: Vec<String> = expected(Source::Pressure, "5.10").into_keys().collect();
    assert!(columns.contains(&"cpu.some.total_us".to_owned()));
    assert!(!columns.contains(&"cpu.full.total_us".to_owned()));
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_lines_and_never_a_panic() {
    for (source, file, name) in [
        (Source::Memory, "meminfo", "memory"),
        (Source::Disks, "diskstats", "disks"),
        (Source::Cpu, "stat", "cpu"),
        (Source::Pressure, "pressure/io", "pressure"),
    ] {
        let whole = recorded("6.12", file);
        let proc = proc_of("6.12");
        let mut sampler = proc.open(&[source], &[]);
        for cut in (0..=whole.len()).rev() {
            proc.write(file, &whole.as_bytes()[..cut]);
            sampler.tick().expect("no more than a warning");
        }
        sampler.finish().expect("finished");
        let values = expected(source, "6.12");
        for (column, cells) in columns(&proc.file(name)) {
            let whole = values[&column];
            assert_eq!(cells[0], Some(whole), "{column}: whole at first");
            // A number cut short is a prefix of the whole one; nothing else may ever be read.
            for value in cells.into_iter().flatten() {
                let is_prefix = whole.to_string().starts_with(&value.to_string());
                let is_cut_unit = whole.is_multiple_of(1024)
                    && (whole / 1024).to_string().starts_with(&value.to_string());
                assert!(is_prefix || is_cut_unit, "{column}: {value} of {whole}");
            }
        }
    }
}

#[test]
fn garbled_files_are_warnings_or_gaps_and_never_a_panic() {
    let mut random = StdRng::seed_from_u64(17);
    for round in 0..150 {
        let kernel = WHOLE[round % WHOLE.len()];
        let proc = proc_of(kernel);
        let garble = |random: &mut StdRng, file: &str| {
            let mut bytes = recorded(kernel, file).into_bytes();
            for _ in 0..random.random_range(1..30) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..4) {
                    0 => bytes[at] = random.random_range(0..=255),
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes[at] = b'\n',
                    _ => drop(bytes.splice(at..at, *b"99999999999999999999")),
                }
            }
            proc.write(file, &bytes);
        };
        if round % 2 == 0 {
            for file in FILES {
                // columns are garbage from the start
                garble(&mut random, file);
            }
        }
        let mut sampler = proc.open(&SOURCES.map(|(source, _)| source), &[]);
        for _ in 0..4 {
            for file in FILES {
                garble(&mut random, file);
            }
            sampler.tick().expect("no more than a warning");
        }
        let followed: Vec<String> = sampler.names().into_iter().map(str::to_owned).collect();
        sampler.finish().expect("finished");
        for name in followed {
            let read = columns(&proc.file(&name));
            // A row for each tick; where a garbled name is that of another column, those of both.
            assert!(
                read.values().all(|values| values.len().is_multiple_of(4)),
                "{name}"
            );
        }
    }
}

#[test]
fn kibibytes_that_no_number_of_bytes_can_hold_are_a_gap() {
    let proc = FakeProc::empty();
    proc.write(
        "meminfo",
        b"A: 18014398509481984 kB\nB: 18014398509481983 kB\nC: 7\nD:\nE: x kB\n",
    );
    let mut sampler = proc.open(&[Source::Memory], &[]);
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    let row = last_row(&proc.file("memory"));
    assert_eq!(
        (row["A"], row["B"], row["C"]),
        (None, Some(u64::MAX - 1023), Some(7))
    );
    assert_eq!((row["D"], row["E"]), (None, None));
}

#[test]
fn devices_come_and_go_and_each_keeps_its_own_numbers() {
    let mut random = StdRng::seed_from_u64(23);
    let names = ["sda", "sda1", "sda10", "dm-0", "nvme0n1", "nvme0n1p1"];
    let line = |name: &str, value: u64| {
        let numbers: Vec<String> = (0..17).map(|field| (value + field).to_string()).collect();
        format!("   8       0 {name} {}\n", numbers.join(" "))
    };
    for _ in 0..20 {
        let proc = FakeProc::empty();
        let known = &names[..4];
        proc.write(
            "diskstats",
            known
                .iter()
                .map(|name| line(name, 1))
                .collect::<String>()
                .as_bytes(),
        );
        let mut sampler = proc.open(&[Source::Disks], &[]);
        let mut whole: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
        for _ in 0..25 {
            let mut present: Vec<(&str, u64)> = names
                .iter()
                .map(|name| (*name, random.random_range(0..1_000_000)))
                .collect();
            present.retain(|_| random.random_bool(0.7));
            if random.random_bool(0.3) {
                present.reverse();
            }
            let text: String = present
                .iter()
                .map(|(name, value)| line(name, *value))
                .collect();
            proc.write("diskstats", text.as_bytes());
            sampler.tick().expect("sampled");
            for name in known {
                let value = present
                    .iter()
                    .find(|(there, _)| there == name)
                    .map(|(_, value)| *value);
                whole
                    .entry(format!("{name}.reads_completed"))
                    .or_default()
                    .push(value);
                whole
                    .entry(format!("{name}.flushing_ms"))
                    .or_default()
                    .push(value.map(|value| value + 16));
            }
        }
        sampler.finish().expect("finished");
        let read = columns(&proc.file("disks"));
        assert_eq!(read.len(), known.len() * 17, "none is added");
        for (column, values) in whole {
            assert_eq!(read[&column], values, "{column}");
        }
    }
}

#[test]
fn a_counter_that_shrinks_or_wraps_is_written_as_it_is() {
    let proc = FakeProc::empty();
    let values = [10, 7, u64::MAX, 0, 1];
    proc.write("vmstat", b"pgfault 1\n");
    let mut sampler = proc.open(&[Source::Vmstat], &[]);
    for value in values {
        proc.write("vmstat", format!("pgfault {value}\n"));
        sampler.tick().expect("sampled");
    }
    sampler.finish().expect("finished");
    assert_eq!(columns(&proc.file("vmstat"))["pgfault"], values.map(Some));
}

#[test]
fn a_field_of_a_process_that_is_no_number_does_not_shift_the_next() {
    let proc = FakeProc::empty();
    let numbers = "S 1 42 42 0 -1 4194560 1000 0 -20 0 300 40 0 0 20 0 17 0 999 123456 64 1 1";
    proc.write("42/stat", format!("42 (x) {numbers}").as_bytes());
    proc.write("42/status", b"Name:\tx\n");
    proc.write("42/io", b"rchar: 1\n");
    let mut sampler = proc.open(&[], &[("server", 42)]);
    sampler.tick().expect("sampled");
    sampler.finish().expect("finished");
    let row = last_row(&proc.file("process-server"));
    assert_eq!(
        (row["minor_faults"], row["major_faults"]),
        (Some(1000), None)
    );
    assert_eq!(
        (row["user_ticks"], row["system_ticks"], row["threads"]),
        (Some(300), Some(40), Some(17))
    );
    assert_eq!(
        row["resident_bytes"],
        Some(64 * rustix::param::page_size() as u64)
    );
    assert_eq!(
        (row["swapped_bytes"], row["rchar"], row["wchar"]),
        (None, Some(1), None)
    );
}

#[test]
fn a_real_process_that_ends_ends_its_file_and_nothing_else() {
    let proc = FakeProc::empty();
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("started");
    let process = child.id().cast_signed();
    let parameters = proc.sample(&[Source::Cpu], &[("it", process)], 1000);
    let mut sampler = Sampler::open(Path::new("/proc"), &parameters).expect("opened");
    sampler.tick().expect("sampled");
    sampler.tick().expect("sampled");
    child.kill().expect("alive");
    child.wait().expect("a child");
    for _ in 0..3 {
        sampler.tick().expect("sampled");
    }
    let warnings = sampler.take_warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("process-it"),
        "{warnings:?}"
    );
    assert_eq!(sampler.names(), ["cpu"]);
    sampler.finish().expect("finished");
    let rows = |name: &str| {
        let read = columns(&proc.file(name));
        read.values().next().expect("a column").len()
    };
    assert_eq!((rows("cpu"), rows("process-it")), (5, 2));
}
