//! What a governor leaves behind: a line per decision, and a row per look.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fairtrial_protocol::govern::Decision;
use fairtrial_sample::{ReadingTime, TelemetryTable, batch_rows};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::GovernError;
use crate::knobs::Values;
use crate::server::ServerStatus;

/// Decisions, one JSON line each.
pub const DECISIONS: &str = "governor-decisions.jsonl";
/// Looks, as every source of telemetry has its samples.
pub const LOOKS: &str = "telemetry-governor.arrows";

/// Columns of a look before the times: counters count from the start.
const COLUMNS: [&str; 13] = [
    "looks",
    "missed_looks",
    "decisions",
    "sets",
    "refused",
    "cpu_ns",
    "answer_ns",
    "history_list_length",
    "checkpoint_age_bytes",
    "checkpoint_age_max_bytes",
    "threads",
    "batch_size",
    "held_ns",
];

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GovernorCounts {
    /// Looks answered.
    pub looks: u64,
    /// Looks that were due and not answered.
    pub missed_looks: u64,
    /// Steps of the ladder.
    pub decisions: u64,
    /// Values set.
    pub sets: u64,
    /// Values refused.
    pub refused: u64,
}

/// How long purge stood on each rung, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names)] // the unit is part of a name
pub struct Times {
    held_ns: u64,
    /// By number of threads; the first entry is nobody's.
    at_ns: Vec<u64>,
    since_ns: i64,
}

impl Times {
    /// From now on.
    pub fn new(most: u32, now_ns: i64) -> Self {
        Self {
            held_ns: 0,
            at_ns: vec![0; most as usize + 1],
            since_ns: now_ns,
        }
    }

    /// Adds the time up to now to the rung that purge stood on until now. Where it is held, it stands on no other.
    pub fn pass(&mut self, now_ns: i64, threads: u32, held: bool) {
        let passed_ns = u64::try_from(now_ns - self.since_ns).unwrap_or_default();
        self.since_ns = now_ns;
        if held {
            self.held_ns += passed_ns;
        } else if let Some(at_ns) = self.at_ns.get_mut(threads as usize) {
            *at_ns += passed_ns;
        }
    }
}

/// Where decisions and looks go.
pub struct Log {
    decisions: Option<(PathBuf, File)>,
    looks: Option<TelemetryTable>,
    row: Vec<Option<u64>>,
}

impl Log {
    /// Creates both files in a directory; without one, decisions go to standard output and looks nowhere.
    pub fn create(directory: Option<&str>, most: u32, period_ms: u32) -> Result<Self, GovernError> {
        let Some(directory) = directory.map(Path::new) else {
            return Ok(Self {
                decisions: None,
                looks: None,
                row: vec![],
            });
        };
        let path = directory.join(DECISIONS);
        let file = File::create(&path).map_err(|cause| GovernError::File {
            path: path.clone(),
            cause,
        })?;
        let columns: Vec<String> = COLUMNS
            .map(str::to_owned)
            .into_iter()
            .chain((1..=most).map(|threads| format!("at_{threads}_ns")))
            .collect();
        let looks =
            TelemetryTable::create(&directory.join(LOOKS), &columns, batch_rows(period_ms))?;
        Ok(Self {
            decisions: Some((path, file)),
            looks: Some(looks),
            row: vec![None; columns.len()],
        })
    }

    /// Writes a decision. Nothing is synced: a governor must not wait for the disk that its server waits for.
    pub fn decision(&mut self, decision: &Decision) -> Result<(), GovernError> {
        match &mut self.decisions {
            None => say(decision),
            Some((path, file)) => {
                let failed = |cause| GovernError::File {
                    path: path.clone(),
                    cause,
                };
                file.write_all(&line(decision).map_err(failed)?)
                    .map_err(failed)
            }
        }
    }

    /// Writes a look.
    pub fn look(
        &mut self,
        time_ns: i64,
        counts: &GovernorCounts,
        status: &ServerStatus,
        values: Values,
        times: &Times,
    ) -> Result<(), GovernError> {
        let Some(looks) = &mut self.looks else {
            return Ok(());
        };
        let fixed = [
            counts.looks,
            counts.missed_looks,
            counts.decisions,
            counts.sets,
            counts.refused,
            cpu_ns(),
            status.answer_ns,
            status.history,
            status.age_bytes,
            status.most_bytes,
            values.threads.into(),
            values.batch_size.into(),
            times.held_ns,
        ];
        let row = fixed.into_iter().chain(times.at_ns[1..].iter().copied());
        for (cell, value) in self.row.iter_mut().zip(row) {
            *cell = Some(value);
        }
        let ended_ns = time_ns + i64::try_from(status.answer_ns).unwrap_or_default();
        let at = ReadingTime {
            began_ns: time_ns,
            ended_ns,
        };
        Ok(looks.append(at, &self.row)?)
    }

    /// Ends the file of looks.
    pub fn finish(&mut self) -> Result<(), GovernError> {
        Ok(self.looks.as_mut().map_or(Ok(()), TelemetryTable::finish)?)
    }
}

/// Processor time of this process so far: the loop and the thread that waits for the server.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

/// Prints a line of JSON.
pub fn say<T: Serialize>(said: &T) -> Result<(), GovernError> {
    let bytes = line(said).map_err(GovernError::StandardOutput)?;
    let mut out = io::stdout().lock();
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(GovernError::StandardOutput)
}

fn line<T: Serialize>(said: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(said)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_belongs_to_one_rung() {
        let mut times = Times::new(3, 100);
        times.pass(150, 3, false);
        times.pass(250, 2, false);
        times.pass(300, 1, false);
        times.pass(420, 1, true);
        times.pass(430, 1, false);
        assert_eq!(times.at_ns[1..], [60, 100, 50]);
        assert_eq!(times.held_ns, 120);
        assert_eq!(times.held_ns + times.at_ns.iter().sum::<u64>(), 430 - 100);
    }
}
