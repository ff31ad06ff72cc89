//! Sources of counters: each opens its files, names its columns, and reads a row.

pub mod counters;
mod cpu;
mod disks;
mod keyed;
mod pressure;
mod process;
mod tree;

use std::io;
use std::path::Path;

use fairtrial_protocol::sample::Source;

use counters::Counters;

/// A source ready to be read, and what it had to leave out, in words.
pub type OpenSource = (Box<dyn Counters>, Vec<String>);

/// What a source is called in file names and messages.
pub fn name(source: Source) -> &'static str {
    match source {
        Source::Cpu => "cpu",
        Source::Memory => "memory",
        Source::Vmstat => "vmstat",
        Source::Disks => "disks",
        Source::Pressure => "pressure",
    }
}

/// Opens a source below `root`, the place's `/proc`.
pub fn open(root: &Path, source: Source) -> io::Result<OpenSource> {
    Ok(match source {
        Source::Cpu => (Box::new(cpu::Cpu::open(root)?), vec![]),
        Source::Memory => (
            Box::new(keyed::KeyValueFile::open_single(&root.join("meminfo"))?),
            vec![],
        ),
        Source::Vmstat => (
            Box::new(keyed::KeyValueFile::open(&root.join("vmstat"))?),
            vec![],
        ),
        Source::Disks => (Box::new(disks::Disks::open(root)?), vec![]),
        Source::Pressure => {
            let (pressure, missing) = pressure::Pressure::open(root)?;
            (Box::new(pressure), missing)
        }
    })
}

/// Opens a process below `root`.
pub fn open_process(root: &Path, process: i32) -> io::Result<OpenSource> {
    let (process, missing) = process::Process::open(root, process)?;
    Ok((Box::new(process), missing))
}

/// Opens a process with its children below `root`.
pub fn open_tree(root: &Path, process: i32) -> io::Result<OpenSource> {
    Ok((Box::new(tree::ProcessTree::open(root, process)?), vec![]))
}
