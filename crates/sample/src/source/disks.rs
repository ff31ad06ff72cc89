//! `/proc/diskstats`: what every block device did, partitions and mapped devices included.

use std::io;
use std::path::Path;

use super::counters::{Counters, Row, damaged};
use crate::parse::Cursor;
use crate::proc_file::ProcFile;

/// Fields after the device's name (Documentation/admin-guide/iostats.rst); discards came with Linux 4.18, flushes with
/// 5.5. A sector is 512 bytes whatever the device says. The kernel prints milliseconds in 32 bits, which begin again at 0
/// after 50 days, of requests that wait together after hours.
const FIELDS: [&str; 17] = [
    "reads_completed",
    "reads_merged",
    "sectors_read",
    "reading_ms",
    "writes_completed",
    "writes_merged",
    "sectors_written",
    "writing_ms",
    "in_flight",
    "busy_ms",
    "weighted_busy_ms",
    "discards_completed",
    "discards_merged",
    "sectors_discarded",
    "discarding_ms",
    "flushes_completed",
    "flushing_ms",
];

/// `/proc/diskstats`, its milliseconds carried on in 64 bits.
pub struct Disks {
    file: ProcFile,
    devices: Vec<String>,
    fields: usize,
    columns: Vec<String>,
    carried: Vec<Carried>,
}

impl Disks {
    pub fn open(root: &Path) -> io::Result<Self> {
        let mut file = ProcFile::open(&root.join("diskstats"))?;
        let mut cursor = Cursor::new(file.read()?);
        let (mut devices, mut fields) = (Vec::new(), 0);
        while !cursor.at_end() {
            skip_numbers(&mut cursor);
            devices.push(String::from_utf8_lossy(cursor.word()).into_owned());
            fields = (0..FIELDS.len())
                .take_while(|_| cursor.number().is_some())
                .count();
            cursor.next_line();
        }
        if fields == 0 {
            return Err(damaged("no device"));
        }
        let named = |device: &String| {
            FIELDS[..fields]
                .iter()
                .map(move |field| format!("{device}.{field}"))
                .collect()
        };
        let columns: Vec<String> = devices
            .iter()
            .flat_map(|device| -> Vec<String> { named(device) })
            .collect();
        Ok(Self {
            file,
            devices,
            fields,
            carried: vec![Carried::default(); columns.len()],
            columns,
        })
    }
}

impl Counters for Disks {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, row: &mut Row) -> io::Result<()> {
        let mut cursor = Cursor::new(self.file.read()?);
        let mut expected = 0;
        while !cursor.at_end() {
            skip_numbers(&mut cursor);
            let name = cursor.word();
            let is_it = |device: &String| device.as_bytes() == name;
            let position = if self.devices.get(expected).is_some_and(is_it) {
                Some(expected)
            } else {
                self.devices.iter().position(is_it)
            };
            if let Some(device) = position {
                let own = device * self.fields..(device + 1) * self.fields;
                let carried = &mut self.carried[own.clone()];
                for ((value, carried), field) in row[own].iter_mut().zip(carried).zip(FIELDS) {
                    *value = cursor.number();
                    if field.ends_with("_ms") {
                        *value = value.map(|printed| carried.on(printed));
                    }
                }
                expected = device + 1;
            }
            cursor.next_line();
        }
        Ok(())
    }
}

/// A counter whose low 32 bits the kernel prints.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    /// What it was last, all bits of it.
    last: Option<u64>,
    /// Whether it was printed with more than 32 bits, as a kernel to come may.
    is_wide: bool,
}

impl Carried {
    /// What these 32 bits mean: it went on, or back where that is the shorter way, as the counters of a device go that is
    /// plugged in anew.
    fn on(&mut self, printed: u64) -> u64 {
        let low = u32::try_from(printed);
        self.is_wide |= low.is_err();
        let now = match (self.last, low) {
            (Some(last), Ok(low)) if !self.is_wide => {
                #[allow(clippy::cast_possible_truncation)] // the low half is meant
                let step = low.wrapping_sub(last as u32).cast_signed();
                last.checked_add_signed(step.into()).unwrap_or(printed)
            }
            _ => printed,
        };
        self.last = Some(now);
        now
    }
}

/// Major and minor number.
fn skip_numbers(cursor: &mut Cursor<'_>) {
    cursor.number();
    cursor.number();
}
