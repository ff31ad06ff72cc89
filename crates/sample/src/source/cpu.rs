//! `/proc/stat`: clock ticks by class, all processors together, and the counters of the scheduler.

use std::io;
use std::path::Path;

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

/// Fields of the line `cpu`, in the kernel's order (proc(5)); older kernels print fewer.
const CLASSES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

/// Lines of one number: the kernel's word and our column.
const LINES: [(&str, &str); 4] = [
    ("ctxt", "context_switches"),
    ("processes", "forks"),
    ("procs_running", "running"),
    ("procs_blocked", "blocked"),
];

/// `/proc/stat`.
pub struct Cpu {
    file: ProcFile,
    columns: Vec<String>,
}

impl Cpu {
    pub fn open(root: &Path) -> io::Result<Self> {
        let lines = LINES.iter().map(|(_, column)| *column);
        let columns = CLASSES
            .into_iter()
            .chain(lines)
            .map(str::to_owned)
            .collect();
        let mut cpu = Self {
            file: ProcFile::open_single(&root.join("stat"))?,
            columns,
        };
        cpu.read(&mut [None; CLASSES.len() + LINES.len()])?;
        Ok(cpu)
    }
}

impl Counters for Cpu {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let mut cursor = Cursor::new(self.file.read()?);
        if !cursor.take(b"cpu") {
            return Err(damaged("no line `cpu`"));
        }
        let (classes, lines) = row.split_at_mut(CLASSES.len());
        for class in classes {
            *class = cursor.number();
        }
        cursor.next_line();
        while !cursor.at_end() {
            for ((word, _), value) in LINES.iter().zip(lines.iter_mut()) {
                if cursor.take(word.as_bytes()) {
                    *value = cursor.number();
                    break;
                }
            }
            cursor.next_line();
        }
        Ok(())
    }
}
