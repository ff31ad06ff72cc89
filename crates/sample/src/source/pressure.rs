//! `/proc/pressure/{cpu,memory,io}`: how long tasks waited for a resource (Documentation/accounting/psi.rst).

use std::io;
use std::path::Path;

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

/// The resources that this kernel accounts for.
pub struct Pressure {
    resources: Vec<Resource>,
    columns: Vec<String>,
}

struct Resource {
    file: ProcFile,
    /// `some`, and `full` where the kernel has it.
    kinds: Vec<String>,
}

impl Pressure {
    /// Opens what there is; an error if there is nothing. Returns what is missing, in words.
    pub fn open(root: &Path) -> io::Result<(Self, Vec<String>)> {
        let mut opened = Self {
            resources: Vec::new(),
            columns: Vec::new(),
        };
        let mut missing = Vec::new();
        let mut last_error = damaged("no resource");
        for name in RESOURCES {
            // With `psi=0` the files exist, and reading them fails.
            match Resource::open(&root.join("pressure").join(name)) {
                Ok(resource) => {
                    opened.columns.extend(
                        resource
                            .kinds
                            .iter()
                            .map(|kind| format!("{name}.{kind}.total_us")),
                    );
                    opened.resources.push(resource);
                }
                Err(error) => {
                    missing.push(format!("pressure of {name} is not sampled: {error}"));
                    last_error = error;
                }
            }
        }
        if opened.resources.is_empty() {
            Err(last_error)
        } else {
            Ok((opened, missing))
        }
    }
}

impl Resource {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = ProcFile::open_single(path)?;
        let mut cursor = Cursor::new(file.read()?);
        let mut kinds = Vec::new();
        while !cursor.at_end() {
            kinds.push(String::from_utf8_lossy(cursor.word()).into_owned());
            cursor.next_line();
        }
        if kinds.is_empty() {
            Err(damaged("an empty file"))
        } else {
            Ok(Self { file, kinds })
        }
    }

    /// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`: the number behind the fourth equals sign.
    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let mut cursor = Cursor::new(self.file.read()?);
        for (kind, value) in self.kinds.iter().zip(row) {
            if !cursor.take(kind.as_bytes()) {
                return Err(damaged("lines in another order"));
            }
            for _ in 0..4 {
                cursor.skip_past(b'=');
            }
            *value = cursor.number();
            cursor.next_line();
        }
        Ok(())
    }
}

impl Counters for Pressure {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let mut rest = row;
        for resource in &mut self.resources {
            let (own, others) = rest.split_at_mut(resource.kinds.len());
            resource.read(own)?;
            rest = others;
        }
        Ok(())
    }
}
