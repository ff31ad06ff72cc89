//! One job: a thread that accesses its own file, first unrecorded, then inside the window.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::file::FileDrive;

use super::choice::Choice;
use super::content;
use super::engine;
use super::engine::access::{Access, Engine};
use crate::drive::recorder::{Outcome, Recorder, Run};
use crate::error::LoadError;

/// Names of what an access does, by their numbers.
pub const KINDS: [&str; 2] = ["read", "write"];

const READ: usize = 0;
const WRITE: usize = 1;

/// A job at work.
pub struct FileJob {
    number: u32,
    path: PathBuf,
    engine: Box<dyn Engine>,
    choice: Choice,
    block: u64,
    seed: u64,
    slots: Vec<Access>,
    started_ns: Vec<i64>,
}

/// Whether another access begins.
pub struct StopCondition<'a> {
    /// Accesses; without it, until the window is over.
    pub accesses: Option<u64>,
    /// Somebody wants everything to end.
    pub stop: &'a AtomicBool,
}

impl FileJob {
    /// Opens the job's file.
    pub fn open(number: u32, parameters: &FileDrive) -> Result<Self, LoadError> {
        let path = content::path(Path::new(&parameters.directory), number);
        let engine = engine::open(&path, parameters)?;
        let block = u64::from(parameters.block_bytes);
        let depth = parameters.depth as usize;
        let none = Access {
            offset: 0,
            writes: false,
        };
        Ok(Self {
            number,
            path,
            engine,
            choice: Choice::new(
                &parameters.distribution,
                parameters.bytes / block,
                parameters.write_share,
                (parameters.seed, number),
            ),
            block,
            seed: parameters.seed,
            slots: vec![none; depth],
            started_ns: vec![0; depth],
        })
    }

    /// Accesses blocks; recorded ones until the recorder says that the window is over, too.
    pub fn run(
        &mut self,
        until: &StopCondition<'_>,
        recorder: Option<&Recorder>,
    ) -> Result<(), LoadError> {
        let mut free: Vec<usize> = (0..self.slots.len()).rev().collect();
        let mut left = until.accesses.unwrap_or(u64::MAX);
        let mut over = false;
        loop {
            while left > 0 && !over && !until.stop.load(Ordering::Relaxed) {
                let Some(slot) = free.pop() else { break };
                self.begin(slot)?;
                left -= 1;
            }
            if free.len() == self.slots.len() {
                return Ok(());
            }
            let slot = self
                .engine
                .end()
                .map_err(|source| self.failed("access", source))?;
            self.verify(slot)?;
            if let Some(recorder) = recorder {
                over |= self.record(slot, recorder);
            }
            free.push(slot);
        }
    }

    fn begin(&mut self, slot: usize) -> Result<(), LoadError> {
        let (block, writes) = self.choice.next();
        let access = Access {
            offset: block * self.block,
            writes,
        };
        if writes {
            content::fill(
                self.engine.buffer(slot),
                self.number,
                access.offset,
                self.seed,
            );
        }
        self.slots[slot] = access;
        self.started_ns[slot] = monotonic_ns();
        let doing = if writes { "write" } else { "read" };
        self.engine
            .begin(slot, access)
            .map_err(|source| self.failed(doing, source))
    }

    fn verify(&mut self, slot: usize) -> Result<(), LoadError> {
        let access = self.slots[slot];
        if access.writes {
            return Ok(());
        }
        let mistaken = content::mistaken(self.engine.buffer(slot), self.number, access.offset);
        mistaken.map_or(Ok(()), |owner| {
            Err(LoadError::WrongBlock {
                path: self.path.clone(),
                offset: access.offset,
                owner,
            })
        })
    }

    fn record(&self, slot: usize, recorder: &Recorder) -> bool {
        let kind = if self.slots[slot].writes { WRITE } else { READ };
        let run = Run {
            outcome: Outcome::Committed,
            started_ns: self.started_ns[slot],
            late_ns: None,
            retried: 0,
            statements: 1,
        };
        recorder.ended(self.number as usize, kind, &run)
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> LoadError {
        LoadError::File {
            doing,
            path: self.path.clone(),
            source,
        }
    }
}
