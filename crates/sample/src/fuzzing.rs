//! Readers of foreign bytes as functions of bytes: for the fuzzers in `fuzz/`, and for the tests that read their corpora.

use std::path::Path;

use fairtrial_protocol::sample::{SampledCommand, Source};

use crate::series::command::SampledProgram;
use crate::series::exposition::{matches, parse};
use crate::series::reader::SeriesReader as _;
use crate::source::counters::Counters;
use crate::source::{open, open_process, open_tree};

const SOURCES: [Source; 5] = [
    Source::Cpu,
    Source::Memory,
    Source::Vmstat,
    Source::Disks,
    Source::Pressure,
];

/// What a process is called in a tree of files.
const PROCESS: i32 = 1;

/// Reads what the kernel says below `root`, and again after `later`.
pub fn sources(root: &Path, later: impl FnOnce()) {
    let opened = SOURCES.into_iter().map(|source| open(root, source));
    let opened = opened.chain([open_process(root, PROCESS), open_tree(root, PROCESS)]);
    let mut counters: Vec<Box<dyn Counters>> = opened
        .filter_map(|opened| opened.ok().map(|(counters, _missing)| counters))
        .collect();
    later();
    for counters in &mut counters {
        let mut row = vec![None; counters.columns().len()];
        let _ = counters.read(&mut row);
    }
}

/// What an endpoint answers: its first line holds patterns of names, with blanks between.
pub fn exposition(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (patterns, text) = text.split_once('\n').unwrap_or(("", text));
    let patterns: Vec<String> = patterns.split_whitespace().map(str::to_owned).collect();
    let _ = parse(text, |name| matches(&patterns, name));
}

/// What a command prints: its first line holds a path into JSON, or `/` and a regex.
pub fn command(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (first, output) = text.split_once('\n').unwrap_or(("", text));
    let program = SampledProgram::new(&SampledCommand {
        name: "command".into(),
        argv: vec!["true".into()],
        interval_ms: 1_000,
        series: "series".into(),
        counter: false,
        json_path: first.strip_prefix('.').map(str::to_owned),
        regex: first.strip_prefix('/').map(str::to_owned),
    });
    if let Ok(program) = program {
        let _ = program.values(output.as_bytes().to_vec());
    }
}

#[cfg(test)]
mod tests;
