//! The life of a virtual user: connect, wait for the start, then key, run, think, until the stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairtrial_protocol::clock::{Reading, monotonic_ns};
use fairtrial_protocol::load::TpccDrive;

use super::recorder::{Outcome, Recorder};
use super::{lock, site, statements};
use crate::calendar;
use crate::driver::{Connection, Driver, DriverError, ErrorKind, Stop};
use crate::tpcc::inputs::{Inputs, Kind, Site, Terminal};
use crate::tpcc::transactions::{self, Ended};

/// How often a connected user looks whether the start is set; the start itself lies later than that.
pub const START_POLL: Duration = Duration::from_millis(20);

/// First and longest back-off before a transaction is repeated: deadlocks dissolve in about a round trip, and longer
/// waits would idle the user.
const RETRY_FIRST: Duration = Duration::from_millis(1);
const RETRY_LONGEST: Duration = Duration::from_millis(100);

/// First and longest back-off before a connection is tried again.
const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_LONGEST: Duration = Duration::from_secs(1);

/// Pause after a transaction was given up, so that a broken database is not asked a million times a second.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// What users, collector and controller share.
pub struct Shared<D: Driver> {
    /// Opens connections.
    pub driver: D,
    /// Virtual users.
    pub users: usize,
    /// Where measurements go.
    pub recorder: Recorder,
    /// Ends the drive.
    pub stop: Stop,
    /// Users that are connected.
    pub connected: AtomicUsize,
    /// Why a user could not connect at the beginning.
    pub refused: Mutex<Option<DriverError>>,
    /// What was drawn, added by each user at its end.
    pub drawn: Mutex<BTreeMap<&'static str, u64>>,
    /// Constants and scale.
    pub site: Site,
    statements: Vec<String>,
    parameters: TpccDrive,
}

impl<D: Driver> Shared<D> {
    /// What a drive's threads share.
    pub fn new(driver: D, parameters: &TpccDrive, threads: usize) -> Self {
        Self {
            users: parameters.virtual_users as usize,
            recorder: Recorder::new(threads),
            stop: Stop::default(),
            connected: 0.into(),
            refused: Mutex::new(None),
            drawn: Mutex::default(),
            site: site(parameters),
            statements: statements::all(driver.dialect()),
            parameters: parameters.clone(),
            driver,
        }
    }

    /// The parameters of the drive.
    pub fn parameters(&self) -> &TpccDrive {
        &self.parameters
    }
}

/// One user.
struct User<D: Driver> {
    shared: Arc<Shared<D>>,
    worker: usize,
    terminal: Terminal,
    connection: Option<D::Connection>,
    drawn: BTreeMap<&'static str, u64>,
}

/// Lives a user's life. Its counts reach `drawn` even when it is abandoned.
pub async fn live<D: Driver>(shared: Arc<Shared<D>>, user: usize, worker: usize) {
    let connection = match shared.driver.connect(&shared.statements).await {
        Ok(connection) => connection,
        Err(error) => {
            lock(&shared.refused).get_or_insert(error);
            return;
        }
    };
    shared.connected.fetch_add(1, Ordering::AcqRel);
    let number = u32::try_from(user).unwrap_or(u32::MAX);
    let terminal = Terminal::new(shared.site, shared.parameters.seed, number);
    let mut user = User {
        shared,
        worker,
        terminal,
        connection: Some(connection),
        drawn: BTreeMap::new(),
    };
    if user.wait_for_start().await {
        user.work().await;
    }
}

impl<D: Driver> User<D> {
    /// Waits until the set start, the same instant for all; `false` if the drive stops before.
    async fn wait_for_start(&self) -> bool {
        loop {
            if self.shared.stop.stopping() {
                return false;
            }
            if let Some(schedule) = self.shared.recorder.schedule() {
                let left_ns = u64::try_from(schedule.ramp_ns - monotonic_ns()).unwrap_or_default();
                self.pause(Duration::from_nanos(left_ns)).await;
                return true;
            }
            self.pause(START_POLL).await;
        }
    }

    async fn work(&mut self) {
        let scale = self.shared.parameters.think_time_scale;
        while !self.shared.stop.stopping() {
            let inputs = self.terminal.next();
            let kind = inputs.kind();
            let (keying_s, thinking_s) = if scale > 0.0 {
                self.terminal.waits_s(kind, scale)
            } else {
                (0.0, 0.0)
            };
            self.wait_s(keying_s).await;
            if self.shared.stop.stopping() {
                break;
            }
            inputs.count(&mut self.drawn);
            self.transaction(&inputs).await;
            self.wait_s(thinking_s).await;
        }
    }

    /// Runs one transaction to its end, repeating it where the system rolled it back.
    async fn transaction(&mut self, inputs: &Inputs) {
        let kind = inputs.kind();
        if !self.reconnect(kind).await {
            return;
        }
        let started_ns = monotonic_ns();
        let now = calendar::date_time(Reading::now().realtime_ns / 1_000_000_000);
        let mut retried = 0;
        let outcome = loop {
            let Some(connection) = &mut self.connection else {
                break Outcome::Failed;
            };
            match transactions::run(connection, inputs, &now).await {
                Ok(ended) => break self.completed(ended),
                Err(error) => {
                    let again = self.recover(kind, &error).await
                        && retried < self.shared.parameters.retries;
                    if !again {
                        break Outcome::Failed;
                    }
                }
            }
            let factor = self.terminal.spread();
            self.pause(back_off(RETRY_FIRST, RETRY_LONGEST, retried).mul_f64(factor))
                .await;
            retried += 1;
        };
        if self
            .shared
            .recorder
            .ended(self.worker, kind, outcome, started_ns, retried.into())
        {
            self.shared.stop.stop();
        }
        if outcome == Outcome::Failed {
            self.pause(AFTER_FAILURE).await;
        }
    }

    fn completed(&mut self, ended: Ended) -> Outcome {
        for (name, count) in [
            ("delivered_orders", ended.delivered),
            ("delivery_skipped_districts", ended.skipped),
        ] {
            *self.drawn.entry(name).or_default() += count;
        }
        if ended.rolled_back {
            Outcome::RolledBack
        } else {
            Outcome::Committed
        }
    }

    /// Counts an error and brings the connection back to rest, or drops it; whether the transaction may be repeated.
    async fn recover(&mut self, kind: Kind, error: &DriverError) -> bool {
        self.shared.recorder.error(self.worker, kind, error);
        let Some(connection) = &mut self.connection else {
            return false;
        };
        if error.kind == ErrorKind::Connection {
            self.connection = None;
            return false;
        }
        if let Err(second) = connection.rollback().await {
            self.shared.recorder.error(self.worker, kind, &second);
            self.connection = None;
            return false;
        }
        error.retryable
    }

    /// Connects again if the connection was lost, for as long as the drive lasts; `false` once it stops.
    async fn reconnect(&mut self, kind: Kind) -> bool {
        let mut attempt = 0;
        while self.connection.is_none() {
            if self.shared.stop.stopping() {
                return false;
            }
            match self.shared.driver.connect(&self.shared.statements).await {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    self.shared.recorder.error(self.worker, kind, &error);
                    let factor = self.terminal.spread();
                    self.pause(
                        back_off(RECONNECT_FIRST, RECONNECT_LONGEST, attempt).mul_f64(factor),
                    )
                    .await;
                    attempt += 1;
                }
            }
        }
        true
    }

    async fn wait_s(&self, seconds: f64) {
        if seconds > 0.0 {
            self.pause(Duration::from_secs_f64(seconds)).await;
        }
    }

    async fn pause(&self, duration: Duration) {
        if !duration.is_zero() {
            self.shared.driver.pause(duration, &self.shared.stop).await;
        }
    }
}

impl<D: Driver> Drop for User<D> {
    fn drop(&mut self) {
        let mut all = lock(&self.shared.drawn);
        for (name, count) in &self.drawn {
            *all.entry(name).or_default() += count;
        }
    }
}

fn back_off(first: Duration, longest: Duration, attempt: u32) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(attempt))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_bound() {
        let waits: Vec<_> = (0..9)
            .map(|attempt| back_off(RETRY_FIRST, RETRY_LONGEST, attempt).as_millis())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
        assert_eq!(
            back_off(RETRY_FIRST, RETRY_LONGEST, u32::MAX),
            RETRY_LONGEST
        );
    }
}
