//! One process with all its threads: `/proc/PID/stat`, `io` and `status`.
//!
//! The open files stand for this very process: when it ends they say so, even if its number is used again.

use std::io;
use std::path::Path;

use rustix::param::page_size;

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

/// Of `stat`: its number in proc(5), and our column. Ascending.
const STAT: [(usize, &str); 6] = [
    (10, "minor_faults"),
    (12, "major_faults"),
    (14, "user_ticks"),
    (15, "system_ticks"),
    (20, "threads"),
    (24, "resident_bytes"),
];
/// The first field behind the command's name, which may hold blanks and parentheses itself.
const STATE: usize = 3;
const RESIDENT: usize = 5;

/// Of `io`, in the kernel's order and under its names (bytes, and numbers of calls).
const IO: [&str; 6] = [
    "rchar",
    "wchar",
    "syscr",
    "syscw",
    "read_bytes",
    "write_bytes",
];

/// Of `status`: the kernel's word and our column. Ascending. The kernel counts switches per thread, and reading every
/// thread would cost more than it tells, so these are the main thread's and say so.
const STATUS: [(&str, &str); 3] = [
    ("VmSwap", "swapped_bytes"),
    ("voluntary_ctxt_switches", "main_thread_voluntary_switches"),
    (
        "nonvoluntary_ctxt_switches",
        "main_thread_involuntary_switches",
    ),
];
const KIBIBYTE: u64 = 1024;

/// One process.
pub struct Process {
    stat: ProcFile,
    status: ProcFile,
    /// Another user's process keeps this to itself.
    io: Option<ProcFile>,
    columns: Vec<String>,
}

impl Process {
    /// Opens the process; returns what is missing, in words.
    pub fn open(root: &Path, process: i32) -> io::Result<(Self, Vec<String>)> {
        let directory = root.join(process.to_string());
        let stat = ProcFile::open_single(&directory.join("stat"))?;
        let status = ProcFile::open_single(&directory.join("status"))?;
        let opened = ProcFile::open_single(&directory.join("io"))
            .and_then(|mut file| file.read().map(drop).map(|()| file));
        let (io, missing) = match opened {
            Ok(file) => (Some(file), vec![]),
            Err(error) => (
                None,
                vec![format!(
                    "input and output of process {process} are not sampled: {error}"
                )],
            ),
        };
        let own = STAT
            .iter()
            .map(|(_, column)| *column)
            .chain(STATUS.iter().map(|(_, column)| *column));
        let columns = own
            .chain(IO.into_iter().filter(|_| io.is_some()))
            .map(str::to_owned)
            .collect();
        let mut process = Self {
            stat,
            status,
            io,
            columns,
        };
        process.read(&mut [None; STAT.len() + STATUS.len() + IO.len()])?;
        Ok((process, missing))
    }
}

impl Counters for Process {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let (stat, rest) = row.split_at_mut(STAT.len());
        let (status, io) = rest.split_at_mut(STATUS.len());
        read_stat(self.stat.read()?, stat)?;
        read_status(self.status.read()?, status);
        if let Some(file) = &mut self.io {
            let mut cursor = Cursor::new(file.read()?);
            for value in io.iter_mut().take(IO.len()) {
                cursor.skip_past(b':');
                *value = cursor.number();
            }
        }
        Ok(())
    }
}

fn read_stat(content: &[u8], row: &mut Row) -> io::Result<()> {
    let mut cursor = Cursor::new(content);
    cursor.skip_past_last(b')');
    match cursor.word() {
        b"" => return Err(damaged("no state of a process")),
        // Not yet awaited by its parent: its memory is gone and its counters are final.
        b"Z" | b"X" => return Err(io::Error::new(io::ErrorKind::NotFound, "the process ended")),
        _ => {}
    }
    let mut field = STATE;
    for ((number, _), value) in STAT.iter().zip(row.iter_mut()) {
        while field + 1 < *number {
            cursor.word();
            field += 1;
        }
        *value = Cursor::new(cursor.word()).number(); // whatever the field holds, the next one stands behind it
        field += 1;
    }
    row[RESIDENT] = row[RESIDENT].and_then(|pages| pages.checked_mul(page_size() as u64));
    Ok(())
}

fn read_status(content: &[u8], row: &mut Row) {
    let mut cursor = Cursor::new(content);
    for ((word, _), value) in STATUS.iter().zip(row.iter_mut()) {
        let start = cursor;
        while !cursor.at_end() && !cursor.take(word.as_bytes()) {
            cursor.next_line();
        }
        if cursor.at_end() {
            cursor = start; // a kernel thread has no VmSwap
            continue;
        }
        cursor.skip_past(b':');
        *value = cursor.number();
    }
    row[0] = row[0].and_then(|kibibytes| kibibytes.checked_mul(KIBIBYTE));
}
