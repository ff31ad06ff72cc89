//! The life of a virtual user: connect, wait for the start, then key, run, think, until the stop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Arrivals, Drive};

use super::arrivals::{ArrivalQueue, spaced_s};
use super::recorder::{Outcome, Recorder, Run};
use super::schedule::Schedule;
use crate::driver::{Connection, Driver, DriverError, ErrorKind};
use crate::random::Random;
use crate::reactor;
use crate::shared::lock;
use crate::stop::Stop;
use crate::workload::{CountingConnection, Counts, TransactionEnd, User as _, Workload};

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
pub struct DriveState<D: Driver, W: Workload> {
    /// Opens connections.
    pub driver: D,
    /// What users do.
    pub workload: W,
    /// Virtual users.
    pub users: usize,
    /// Where measurements go.
    pub recorder: Recorder,
    /// When transactions should begin, in an open loop.
    pub queue: Option<ArrivalQueue>,
    /// Ends the drive.
    pub stop: Stop,
    /// Users inside a transaction, those that connect again for one included.
    pub busy: AtomicUsize,
    /// Users that are connected.
    pub connected: AtomicUsize,
    /// Users that have left: at the drive's end, or because no transaction will arrive any more.
    pub left: AtomicUsize,
    /// Why a user could not connect at the beginning.
    pub refused: Mutex<Option<DriverError>>,
    /// What was drawn, added by each user at its end.
    pub drawn: Mutex<Counts>,
    statements: Vec<String>,
    parameters: Drive,
}

impl<D: Driver, W: Workload> DriveState<D, W> {
    /// What a drive's threads share.
    pub fn new(
        driver: D,
        workload: W,
        parameters: &Drive,
        queue: Option<ArrivalQueue>,
        threads: usize,
    ) -> Self {
        Self {
            users: parameters.virtual_users as usize,
            recorder: Recorder::new(threads, workload.types()),
            queue,
            stop: Stop::default(),
            busy: 0.into(),
            connected: 0.into(),
            left: 0.into(),
            refused: Mutex::new(None),
            drawn: Mutex::default(),
            statements: workload.statements(driver.dialect()),
            parameters: parameters.clone(),
            workload,
            driver,
        }
    }

    /// The parameters of the drive.
    pub fn parameters(&self) -> &Drive {
        &self.parameters
    }
}

/// One user.
struct UserTask<D: Driver, W: Workload> {
    shared: Arc<DriveState<D, W>>,
    worker: usize,
    state: W::User,
    thinking: Random,
    connection: Option<D::Connection>,
}

/// Lives a user's life. Its counts reach `drawn` even when it is abandoned.
pub async fn live<D: Driver, W: Workload>(
    shared: Arc<DriveState<D, W>>,
    user: usize,
    worker: usize,
) {
    let connection = match shared.driver.connect(&shared.statements).await {
        Ok(connection) => connection,
        Err(error) => {
            lock(&shared.refused).get_or_insert(error);
            return;
        }
    };
    shared.connected.fetch_add(1, Ordering::AcqRel);
    let number = shared.parameters.user_number(user);
    let state = shared.workload.user(number, shared.driver.dialect());
    let thinking = Random::derive(shared.parameters.seed, "thinking", &[number.into()]);
    let mut user = UserTask {
        shared,
        worker,
        state,
        thinking,
        connection: Some(connection),
    };
    if user.wait_for_start().await {
        user.work().await;
    }
    let shared = Arc::clone(&user.shared);
    drop(user);
    shared.left.fetch_add(1, Ordering::AcqRel);
}

/// What a user does next.
enum UserAction {
    /// Begins when it likes.
    Free,
    /// Begins at this time, or as soon as it can.
    Due(i64),
    /// Nothing will arrive any more.
    Over,
}

impl<D: Driver, W: Workload> UserTask<D, W> {
    /// Waits until the set start, the same instant for all; `false` if the drive stops before.
    async fn wait_for_start(&self) -> bool {
        loop {
            if self.shared.stop.stopping() {
                return false;
            }
            if let Some(schedule) = self.shared.recorder.schedule() {
                self.wait_until(schedule.ramp_ns).await;
                return true;
            }
            self.pause(START_POLL).await;
        }
    }

    async fn work(&mut self) {
        while !self.shared.stop.stopping() {
            if let Some(schedule) = self.shared.recorder.schedule() {
                reactor::measures(schedule.window_ns(), schedule.end_ns());
            }
            let kind = self.state.next();
            let (due_ns, (before_s, after_s)) = match self.turn() {
                UserAction::Free => (None, self.waits_s()),
                UserAction::Due(due_ns) => (Some(due_ns), (0.0, 0.0)),
                UserAction::Over => break,
            };
            self.wait_s(before_s).await;
            if let Some(due_ns) = due_ns {
                self.wait_until(due_ns).await;
                if self.too_late(due_ns) {
                    break;
                }
            }
            if self.shared.stop.stopping() {
                break;
            }
            self.shared.busy.fetch_add(1, Ordering::Relaxed);
            self.transaction(kind, due_ns).await;
            self.shared.busy.fetch_sub(1, Ordering::Relaxed);
            self.wait_s(after_s).await;
        }
    }

    /// When the next transaction should begin: in an open loop the user takes it from the queue.
    fn turn(&self) -> UserAction {
        let Some((queue, schedule)) = self.open_loop() else {
            return UserAction::Free;
        };
        // Nobody is given up after the window: it would be neither in its figures nor among those who wait.
        let now_ns = monotonic_ns().min(schedule.end_ns());
        match queue.take_ns(now_ns - schedule.ramp_ns) {
            Some(due_ns) => UserAction::Due(schedule.ramp_ns.saturating_add(due_ns)),
            None => UserAction::Over,
        }
    }

    /// Gives a transaction up if it has waited too long, while the user had no connection.
    fn give_up(&self, due_ns: i64) -> bool {
        let Some((queue, schedule)) = self.open_loop() else {
            return false;
        };
        let over = queue.is_over(due_ns, monotonic_ns().min(schedule.end_ns()));
        if over {
            queue.give_up(due_ns - schedule.ramp_ns);
        }
        over
    }

    /// What an open loop follows, once it has begun.
    fn open_loop(&self) -> Option<(&ArrivalQueue, &Schedule)> {
        let shared = &self.shared;
        Some((shared.queue.as_ref()?, shared.recorder.schedule()?))
    }

    /// Whether the window ends before a transaction should begin; the stop may not have been said yet.
    fn too_late(&self, due_ns: i64) -> bool {
        let schedule = self.shared.recorder.schedule();
        schedule.is_some_and(|schedule| due_ns >= schedule.end_ns())
    }

    /// Waits before and after a transaction in a closed loop: the workload's own, and the drive's thinking time.
    fn waits_s(&mut self) -> (f64, f64) {
        let (before_s, after_s) = self.state.waits_s();
        match self.shared.parameters.arrivals {
            Arrivals::Closed { think_s, spacing } if think_s > 0.0 => {
                let thinking_s = spaced_s(spacing, think_s, &mut self.thinking);
                (before_s, after_s + thinking_s)
            }
            _ => (before_s, after_s),
        }
    }

    /// Runs one transaction to its end, repeating it where the system rolled it back.
    async fn transaction(&mut self, kind: usize, due_ns: Option<i64>) {
        if !self.reconnect(kind).await || due_ns.is_some_and(|due_ns| self.give_up(due_ns)) {
            return;
        }
        self.state.start();
        if let Some(queue) = &self.shared.queue {
            queue.begin();
        }
        let now_ns = monotonic_ns();
        let mut run = Run {
            outcome: Outcome::Failed,
            started_ns: due_ns.unwrap_or(now_ns),
            late_ns: due_ns.map(|due_ns| u64::try_from(now_ns - due_ns).unwrap_or_default()),
            retried: 0,
            statements: 0,
        };
        let mut attempt = 0;
        while let Some(connection) = &mut self.connection {
            let mut counted = CountingConnection::new(connection);
            let ended = self.state.transaction(&mut counted).await;
            run.statements += counted.sent();
            match ended {
                Ok(TransactionEnd::Committed) => run.outcome = Outcome::Committed,
                Ok(TransactionEnd::RolledBack) => run.outcome = Outcome::RolledBack,
                Err(error) => {
                    let again = self.recover(kind, &error).await;
                    // Once the window is over, nobody counts what a repetition would bring.
                    let may_retry = again && !self.shared.stop.stopping();
                    if may_retry && attempt < self.shared.parameters.retries {
                        let factor = self.state.spread();
                        self.pause(back_off(RETRY_FIRST, RETRY_LONGEST, attempt).mul_f64(factor))
                            .await;
                        attempt += 1;
                        continue;
                    }
                }
            }
            break;
        }
        run.retried = attempt.into();
        if self.shared.recorder.ended(self.worker, kind, &run) {
            self.shared.stop.stop();
        } else if let (Some(due_ns), Some((queue, schedule))) = (due_ns, self.open_loop()) {
            queue.settle(due_ns - schedule.ramp_ns);
        }
        if run.outcome == Outcome::Failed {
            self.pause(AFTER_FAILURE).await;
        }
    }

    /// Counts an error and brings the connection back to rest, or drops it; whether the transaction may be repeated.
    async fn recover(&mut self, kind: usize, error: &DriverError) -> bool {
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
    async fn reconnect(&mut self, kind: usize) -> bool {
        let mut attempt = 0;
        while self.connection.is_none() {
            if self.shared.stop.stopping() {
                return false;
            }
            match self.shared.driver.connect(&self.shared.statements).await {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    self.shared.recorder.error(self.worker, kind, &error);
                    let factor = self.state.spread();
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

    async fn wait_until(&self, time_ns: i64) {
        let left_ns = u64::try_from(time_ns - monotonic_ns()).unwrap_or_default();
        self.pause(Duration::from_nanos(left_ns)).await;
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

impl<D: Driver, W: Workload> Drop for UserTask<D, W> {
    fn drop(&mut self) {
        let mut all = lock(&self.shared.drawn);
        for (name, count) in self.state.drawn() {
            let sum = all.entry(name).or_default();
            *sum = sum.saturating_add(count);
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
