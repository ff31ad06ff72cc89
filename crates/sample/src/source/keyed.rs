//! Files of one name and one number per line: `/proc/meminfo` (`MemTotal:  24 kB`) and `/proc/vmstat` (`pgfault 24`).

use std::io;
use std::path::Path;

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

const KIBIBYTE: u64 = 1024;

/// One such file. Columns carry the kernel's names; what it gives in kB is in bytes here.
pub struct KeyValueFile {
    file: ProcFile,
    columns: Vec<String>,
}

impl KeyValueFile {
    /// Opens `/proc/meminfo` or a file like it, which the kernel gives in one answer.
    pub fn open_single(path: &Path) -> io::Result<Self> {
        Self::of(ProcFile::open_single(path)?)
    }

    /// Opens `/proc/vmstat` or a file like it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(ProcFile::open(path)?)
    }

    fn of(mut file: ProcFile) -> io::Result<Self> {
        let mut cursor = Cursor::new(file.read()?);
        let mut columns = Vec::new();
        while !cursor.at_end() {
            columns.push(String::from_utf8_lossy(cursor.word()).into_owned());
            cursor.next_line();
        }
        if columns.is_empty() {
            Err(damaged("an empty file"))
        } else {
            Ok(Self { file, columns })
        }
    }
}

impl Counters for KeyValueFile {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let mut cursor = Cursor::new(self.file.read()?);
        let mut expected = 0;
        while !cursor.at_end() {
            if let Some(column) = position(&self.columns, expected, &mut cursor) {
                row[column] = value(&mut cursor);
                expected = column + 1;
            }
            cursor.next_line();
        }
        Ok(())
    }
}

/// The column whose name stands here: nearly always the expected one, since kernels keep their order.
fn position(columns: &[String], expected: usize, cursor: &mut Cursor<'_>) -> Option<usize> {
    if columns
        .get(expected)
        .is_some_and(|column| cursor.take(column.as_bytes()))
    {
        return Some(expected);
    }
    columns
        .iter()
        .position(|column| cursor.take(column.as_bytes()))
}

fn value(cursor: &mut Cursor<'_>) -> Option<u64> {
    if cursor.rest().first() == Some(&b':') {
        cursor.skip_past(b':');
    }
    let number = cursor.number()?;
    if cursor.rest().starts_with(b" kB") {
        number.checked_mul(KIBIBYTE)
    } else {
        Some(number)
    }
}
