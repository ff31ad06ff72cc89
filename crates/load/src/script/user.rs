//! One user of a script: draws a transaction with all its values, then runs it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::draw::{ValueBuffer, weighted};
use super::plan::{ScriptPlan, StatementPlan, TransactionPlan};
use crate::driver::connection::send;
use crate::driver::pipeline::{BoundStatement, Pipeline};
use crate::driver::{AccessMode, Cell, Connection, DriverError, Row, Value};
use crate::random::Random;
use crate::workload::{Counts, TransactionEnd, User};

/// Code of a statement that gave or touched another number of rows than the script expects.
const ROWS_DIFFER: &str = "rows_differ";

/// One virtual user.
pub struct ScriptUser {
    plan: Arc<ScriptPlan>,
    number: u32,
    inputs: Random,
    waits: Random,
    /// The present transaction's type.
    kind: usize,
    /// Whether it ends with a rollback.
    is_rolled_back: bool,
    /// Its values: drawn ones, then those taken from rows.
    slots: Vec<ValueBuffer>,
    /// Transactions drawn so far, which keeps sequences apart.
    turns: i64,
    /// By type: how many began, and how many of them were drawn to be rolled back.
    begun: Vec<(u64, u64)>,
    rows_read: u64,
    rows_changed: u64,
}

impl ScriptUser {
    /// The user with this number, counted from 0.
    pub fn new(plan: Arc<ScriptPlan>, number: u32) -> Self {
        let most = plan.transactions.iter().map(|each| each.slots).max();
        Self {
            number,
            inputs: Random::derive(plan.seed, "inputs", &[number.into()]),
            waits: Random::derive(plan.seed, "waits", &[number.into()]),
            kind: 0,
            is_rolled_back: false,
            slots: vec![ValueBuffer::default(); most.unwrap_or_default()],
            turns: 0,
            begun: vec![(0, 0); plan.transactions.len()],
            rows_read: 0,
            rows_changed: 0,
            plan,
        }
    }

    /// The first number of a sequence that no user has drawn in its turns so far.
    fn past_numbers(&self) -> i64 {
        self.plan.first_number + self.turns * i64::from(self.plan.users)
    }

    /// Runs one statement and keeps what later ones take from its first row.
    async fn send<C: Connection>(
        &mut self,
        connection: &mut C,
        step: &StatementPlan,
    ) -> Result<(), DriverError> {
        let values = self.values(step);
        let mut first = None;
        let is_taken_from = !step.take.is_empty();
        let rows = if is_taken_from {
            let rows = connection.query(step.id, &values).await?;
            let count = rows.len() as u64;
            first = rows.into_iter().next();
            count
        } else if step.gives_rows {
            connection.read(step.id, &values).await?
        } else {
            connection.execute(step.id, &values).await?
        };
        self.touched(step, rows)?;
        if !is_taken_from {
            return Ok(());
        }
        let Row(cells) = first.ok_or_else(|| differ(step, "no row to take values from"))?;
        for (slot, cell) in step.take.iter().zip(cells) {
            if cell == Cell::Binary {
                let problem =
                    "bytes that are no text cannot be taken: take HEX() of them, and bind UNHEX()";
                return Err(DriverError::unexpected(format!("{problem}: {}", step.sql)));
            }
            self.slots[*slot].set(cell);
        }
        Ok(())
    }

    fn values(&self, step: &StatementPlan) -> Vec<Value<'_>> {
        let slots = step.values.iter();
        slots.map(|slot| self.slots[*slot].value()).collect()
    }

    /// Counts the rows of a statement, and says if they are not as many as there should be.
    fn touched(&mut self, step: &StatementPlan, rows: u64) -> Result<(), DriverError> {
        if step.gives_rows {
            self.rows_read = self.rows_read.saturating_add(rows);
        } else {
            self.rows_changed = self.rows_changed.saturating_add(rows);
        }
        match step.rows.filter(|expected| *expected != rows) {
            None => Ok(()),
            Some(expected) => Err(differ(step, &format!("{rows} rows instead of {expected}"))),
        }
    }

    /// Sends statements before it reads the first answer. What comes first is the error: rows that differ, or one of
    /// the system's; but a lost connection is one whatever came before.
    async fn send_together<C: Connection>(
        &mut self,
        connection: &mut C,
        steps: &[StatementPlan],
        (begin, in_transaction, commit): (Option<AccessMode>, bool, bool),
    ) -> Result<(), DriverError> {
        let values: Vec<Vec<Value<'_>>> = steps.iter().map(|step| self.values(step)).collect();
        let requests = steps
            .iter()
            .zip(&values)
            .map(|(step, values)| BoundStatement {
                statement: step.id,
                values,
            });
        let requests: Vec<BoundStatement<'_>> = requests.collect();
        let together = Pipeline {
            begin,
            requests: &requests,
            in_transaction,
            commit,
        };
        let mut rows = Vec::with_capacity(steps.len());
        let ended = send(connection, together, &mut rows).await;
        let mut differs = None;
        for (step, rows) in steps.iter().zip(rows) {
            differs = differs.or(self.touched(step, rows).err());
        }
        match (ended, differs) {
            (Err(lost), _) if lost.is_end() => Err(lost),
            (_, Some(differs)) => Err(differs),
            (ended, None) => ended,
        }
    }

    async fn run<C: Connection>(
        &mut self,
        connection: &mut C,
        planned: &TransactionPlan,
    ) -> Result<TransactionEnd, DriverError> {
        let in_transaction = planned.access.is_some();
        let mut begin = planned.access;
        let mut is_committed = !in_transaction;
        for piece in &planned.pieces {
            let steps = &planned.steps[piece.steps.clone()];
            if piece.is_pipelined {
                let is_last = piece.steps.end == planned.steps.len();
                // A commit waits for rows that are counted.
                let is_sure = steps.iter().all(|step| step.rows.is_none());
                let commit = in_transaction && is_last && is_sure && !self.is_rolled_back;
                let frame = (begin.take(), in_transaction, commit);
                self.send_together(connection, steps, frame).await?;
                is_committed |= commit;
                continue;
            }
            if let Some(access) = begin.take() {
                connection.begin(access).await?;
            }
            for step in steps {
                self.send(connection, step).await?;
            }
        }
        if is_committed {
            return Ok(TransactionEnd::Committed);
        }
        if self.is_rolled_back {
            connection.rollback().await?;
            return Ok(TransactionEnd::RolledBack);
        }
        connection.commit().await?;
        Ok(TransactionEnd::Committed)
    }
}

fn differ(step: &StatementPlan, what: &str) -> DriverError {
    DriverError {
        code: ROWS_DIFFER.into(),
        ..DriverError::unexpected(format!("{what}: {}", step.sql))
    }
}

impl User for ScriptUser {
    fn next(&mut self) -> usize {
        let plan = Arc::clone(&self.plan);
        self.kind = weighted(&mut self.inputs, plan.sums.iter().copied());
        let planned = &plan.transactions[self.kind];
        self.is_rolled_back =
            planned.rollback_share > 0.0 && self.inputs.fraction() < planned.rollback_share;
        let number = self.past_numbers() + i64::from(self.number);
        self.turns += 1;
        for (source, slot) in planned.sources.iter().zip(&mut self.slots) {
            source.draw(&mut self.inputs, number, slot);
        }
        self.kind
    }

    fn waits_s(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }

    fn start(&mut self) {
        let (begun, rolled_back) = &mut self.begun[self.kind];
        *begun += 1;
        *rolled_back += u64::from(self.is_rolled_back);
    }

    async fn transaction<C: Connection>(
        &mut self,
        connection: &mut C,
    ) -> Result<TransactionEnd, DriverError> {
        let plan = Arc::clone(&self.plan);
        self.run(connection, &plan.transactions[self.kind]).await
    }

    fn spread(&mut self) -> f64 {
        0.5 + self.waits.fraction()
    }

    fn drawn(&self) -> Counts {
        let numbers = &self.plan.numbers;
        numbers.fetch_max(self.past_numbers(), Ordering::AcqRel);
        let mut counts = Counts::from([
            ("rows.read", self.rows_read),
            ("rows.changed", self.rows_changed),
        ]);
        for (planned, (begun, rolled_back)) in self.plan.transactions.iter().zip(&self.begun) {
            counts.insert(planned.name, *begun);
            if planned.rollback_share > 0.0 {
                counts.insert(planned.rollbacks, *rolled_back);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests;
