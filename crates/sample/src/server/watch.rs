//! A server watched over one connection, tick by tick, on a thread of its own: whatever the server does, a tick ends
//! within [`ANSWER_LIMIT`], and what could not be read is a gap that is counted and said.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use fairtrial_load::{Client, ClientError, LoadError, in_full};
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Rows;
use fairtrial_protocol::sample::SampledServer;

use super::counters::{self, Counter};
use super::family::{Family, VERSION};
use super::lock_waits::LockWaits;
use super::queries::{CounterQueries, first_cells};
use crate::error::SampleError;
use crate::table::{ReadingTime, TelemetryTable, batch_rows};

/// How long one tick waits for the server. What comes later is dropped: nobody could say of which time it tells.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Columns before the server's own: how long the answer took (the counters are of a moment inside that time), how many
/// ticks have passed without a sample, how often a connection was made, and how often it did not say who waits for a lock.
const OWN: [&str; 4] = [
    "answer_ns",
    "missed_samples",
    "connections_made",
    "lock_waits_missed",
];

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// What MariaDB and MySQL say to who lacks a privilege (`ER_SPECIFIC_ACCESS_DENIED_ERROR`).
const ACCESS_DENIED: &str = "1227";

/// What the watching thread says.
pub enum WatchMessage {
    /// The first tick is over; whether it gave a sample.
    First(bool),
    /// Something a reader should know.
    Warning(String),
}

/// A server being watched.
pub struct ServerWatch {
    parameters: SampledServer,
    /// Columns whose values are said for people who look on.
    shown: Vec<String>,
    directory: PathBuf,
    said: Sender<WatchMessage>,
    counters: Vec<Counter>,
    connection: Option<WatchConnection>,
    table: Option<TelemetryTable>,
    lock_waits: Option<LockWaits>,
    missed: u64,
    connections: u64,
    gap: Option<Gap>,
    /// Whether the last question for lock waits failed: said once.
    lock_waits_failed: bool,
    lock_waits_missed: u64,
}

struct WatchConnection {
    client: Client,
    /// Known once the server has said what it is.
    known: Option<(Family, CounterQueries)>,
    /// Why only some of its counters are asked for.
    refused: Option<String>,
}

/// A time without samples.
struct Gap {
    began_ns: i64,
    missed_before: u64,
    reason: String,
}

impl ServerWatch {
    /// Nothing is connected yet.
    pub fn new(
        (parameters, shown): (SampledServer, Vec<String>),
        directory: &Path,
        said: Sender<WatchMessage>,
    ) -> Self {
        Self {
            parameters,
            shown,
            directory: directory.to_owned(),
            said,
            counters: counters::all(),
            connection: None,
            table: None,
            lock_waits: None,
            missed: 0,
            connections: 0,
            gap: None,
            lock_waits_failed: false,
            lock_waits_missed: 0,
        }
    }

    /// Samples until `stop` says so, then once more; returns how many ticks gave no sample.
    pub fn run(mut self, stop: &Receiver<()>) -> Result<u64, SampleError> {
        let interval_ns =
            i64::from(self.parameters.interval_ms).max(1) * NANOSECONDS_PER_MILLISECOND;
        self.tick()?;
        self.say(WatchMessage::First(self.gap.is_none()));
        let mut deadline_ns = monotonic_ns() + interval_ns;
        loop {
            let left_ns = u64::try_from(deadline_ns - monotonic_ns()).unwrap_or_default();
            match stop.recv_timeout(Duration::from_nanos(left_ns)) {
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            let passed = (monotonic_ns() - deadline_ns) / interval_ns; // deadlines that passed meanwhile
            self.missed += u64::try_from(passed).unwrap_or_default();
            deadline_ns += (passed + 1) * interval_ns;
        }
        self.tick()?;
        self.end_gap(monotonic_ns());
        self.table.as_mut().map_or(Ok(()), TelemetryTable::finish)?;
        self.lock_waits.as_mut().map_or(Ok(()), LockWaits::finish)?;
        Ok(self.missed)
    }

    /// Reads once; an error only if a file cannot be written.
    fn tick(&mut self) -> Result<(), SampleError> {
        let time_ns = monotonic_ns();
        match self.read(time_ns) {
            Ok(answer) => {
                self.end_gap(time_ns);
                self.append(time_ns, &answer)?;
                self.sample_lock_waits()
            }
            Err(error) => {
                self.missed += 1;
                if matches!(error, ClientError::Ended) || is_connecting(&error) {
                    self.connection = None;
                }
                self.gap.get_or_insert_with(|| Gap {
                    began_ns: time_ns,
                    missed_before: self.missed - 1,
                    reason: in_full(&error),
                });
                Ok(())
            }
        }
    }

    /// The counters' answer, from a server that is asked what it is first if nobody has.
    fn read(&mut self, time_ns: i64) -> Result<Answer, ClientError> {
        let mut connected = if let Some(connected) = self.connection.take() {
            connected
        } else {
            self.connections += 1;
            let client = Client::open(&self.parameters.endpoint);
            WatchConnection {
                client: client.map_err(|_| ClientError::Ended)?,
                known: None,
                refused: None,
            }
        };
        let deadline_ns = time_ns + i64::try_from(ANSWER_LIMIT.as_nanos()).unwrap_or(i64::MAX);
        let answer = connected.read(&self.counters, deadline_ns);
        if let Some(why) = connected.refused.take() {
            let warning = format!("only status variables of the server are sampled: {why}");
            self.say(WatchMessage::Warning(warning));
        }
        self.connection = Some(connected);
        answer
    }

    fn append(&mut self, time_ns: i64, answer: &Answer) -> Result<(), SampleError> {
        let queries = self
            .connection
            .as_ref()
            .and_then(|each| each.known.as_ref());
        let mut row = vec![None; OWN.len() + self.counters.len()];
        row[0] = u64::try_from(answer.took_ns).ok();
        row[1] = Some(self.missed);
        row[2] = Some(self.connections);
        row[3] = self.parameters.lock_waits.then_some(self.lock_waits_missed);
        if let Some((_, queries)) = queries {
            for rows in &answer.rows {
                queries.fill(&self.counters, rows, &mut row[OWN.len()..]);
            }
        }
        if self.table.is_none() {
            let own = OWN.map(str::to_owned).into_iter();
            let columns: Vec<String> = own
                .chain(self.counters.iter().map(|each| each.column.clone()))
                .collect();
            let path = self.directory.join("telemetry-server.arrows");
            let rows = batch_rows(self.parameters.interval_ms);
            let table = TelemetryTable::create(&path, &columns, rows)?;
            self.table = Some(table.showing("server", &columns, &self.shown));
        }
        self.table.as_mut().map_or(Ok(()), |table| {
            let began_ns = time_ns + answer.waited_ns;
            let ended_ns = began_ns + answer.took_ns;
            table.append(ReadingTime { began_ns, ended_ns }, &row)
        })
    }

    /// Asks for the waiting pairs; without an answer the tick counts as missed.
    fn sample_lock_waits(&mut self) -> Result<(), SampleError> {
        let (true, Some(connected)) = (self.parameters.lock_waits, &mut self.connection) else {
            return Ok(());
        };
        let Some((family, _)) = &connected.known else {
            return Ok(());
        };
        let began_ns = monotonic_ns();
        match connected.client.ask(family.lock_waits(), ANSWER_LIMIT) {
            Ok(pairs) => {
                let ended_ns = monotonic_ns();
                self.lock_waits_failed = false;
                if self.lock_waits.is_none() {
                    let path = self.directory.join("telemetry-lock_waits.arrows");
                    self.lock_waits = Some(LockWaits::create(&path)?);
                }
                self.lock_waits.as_mut().map_or(Ok(()), |table| {
                    table.append(ReadingTime { began_ns, ended_ns }, &pairs)
                })
            }
            Err(error) => {
                self.lock_waits_missed += 1;
                if !self.lock_waits_failed {
                    self.lock_waits_failed = true;
                    let why = in_full(&error);
                    let warning = format!("lock waits could not be asked for: {why}");
                    self.say(WatchMessage::Warning(warning));
                }
                Ok(())
            }
        }
    }

    fn end_gap(&mut self, now_ns: i64) {
        if let Some(gap) = self.gap.take() {
            let milliseconds = (now_ns - gap.began_ns) / NANOSECONDS_PER_MILLISECOND;
            let ticks = self.missed - gap.missed_before;
            self.say(WatchMessage::Warning(format!(
                "the server gave no sample for {milliseconds} ms ({ticks} ticks): {}",
                gap.reason
            )));
        }
    }

    fn say(&self, said: WatchMessage) {
        let _ = self.said.send(said); // nobody listens any more when the sampler ends on an error
    }
}

/// What a server answered.
struct Answer {
    /// Of each statement.
    rows: Vec<Rows>,
    /// From the tick to the question: a first one connects before.
    waited_ns: i64,
    took_ns: i64,
}

impl WatchConnection {
    fn read(&mut self, counters: &[Counter], deadline_ns: i64) -> Result<Answer, ClientError> {
        let began_ns = monotonic_ns();
        let left = || {
            Duration::from_nanos(u64::try_from(deadline_ns - monotonic_ns()).unwrap_or_default())
        };
        if self.known.is_none() {
            let version = self.client.ask(VERSION, left())?;
            let family = Family::of(first_cells(&version).next().unwrap_or_default());
            let mut ask = |sql: &str| self.client.ask(sql, left());
            let queries = match family.queries(counters, &mut ask) {
                Err(error) if is_refused(&error) => {
                    self.refused = Some(in_full(&error));
                    let status: Vec<Counter> = counters
                        .iter()
                        .cloned()
                        .map(Counter::of_status_only)
                        .collect();
                    family.queries(&status, ask)?
                }
                answered => answered?,
            };
            self.known = Some((family, queries));
        }
        let asked_ns = monotonic_ns();
        let mut rows = Vec::new();
        for statement in self.known.iter().flat_map(|(_, each)| &each.statements) {
            rows.push(self.client.ask(statement, left())?);
        }
        Ok(Answer {
            rows,
            waited_ns: asked_ns - began_ns,
            took_ns: monotonic_ns() - asked_ns,
        })
    }
}

fn is_refused(error: &ClientError) -> bool {
    matches!(error, ClientError::Failed(LoadError::Statement { source, .. }) if source.code == ACCESS_DENIED)
}

/// Whether connecting itself failed: that thread has ended.
fn is_connecting(error: &ClientError) -> bool {
    !matches!(
        error,
        ClientError::Late { .. } | ClientError::Failed(LoadError::Statement { .. })
    )
}
