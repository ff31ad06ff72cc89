//! One user of the family: draws a transaction's statements with their values, then sends them.

mod statement;

use std::ops::Range;
use std::sync::Arc;

use fairtrial_protocol::oltp::{Profile, Protocol};

use self::statement::{bulk, write_values};
use super::content::{C_GROUPS, PAD_GROUPS, groups};
use super::keys::Keys;
use super::plan::OltpPlan;
use super::schema;
use super::statements::{Act, TableStatement};
use crate::driver::connection::send;
use crate::driver::dialect::Dialect;
use crate::driver::pipeline::{BoundStatement, Pipeline};
use crate::driver::{AccessMode, Connection, DriverError, Value};
use crate::random::Random;
use crate::workload::{Counts, TransactionEnd, User};

/// A statement of a transaction, its values drawn.
#[derive(Clone, Debug)]
struct StatementCall {
    statement: TableStatement,
    table: u32,
    values: Range<usize>,
}

/// A value: a number, or a piece of the user's text.
#[derive(Clone, Debug)]
enum DrawnValue {
    Integer(i64),
    Text(Range<usize>),
}

/// One virtual user.
pub struct OltpUser {
    plan: Arc<OltpPlan>,
    dialect: Dialect,
    /// Values of the indexed column that are this user's part of the table.
    part: Keys,
    /// The last key this user has inserted in bulk, and its table.
    bulk: (u32, i64),
    /// Rows of the present bulk insert.
    bulk_rows: u64,
    inputs: Random,
    waits: Random,
    steps: Vec<StatementCall>,
    values: Vec<DrawnValue>,
    text: String,
    /// A statement of the profiles that write their own.
    sql: String,
    drawn: UserCounts,
}

impl DrawnValue {
    /// The value, a piece of `text` if it is one.
    fn value<'a>(&self, text: &'a str) -> Value<'a> {
        match self {
            Self::Integer(number) => Value::Integer(*number),
            Self::Text(piece) => Value::Text(&text[piece.clone()]),
        }
    }
}

/// Counts of one user.
#[derive(Debug, Default)]
struct UserCounts {
    transactions: u64,
    sent: [u64; TableStatement::ALL.len()],
    rows_read: u64,
    rows_changed: u64,
    bulk_rows: u64,
    own_inserts: u64,
}

impl OltpUser {
    /// The user with this number, counted from 0.
    pub fn new(plan: Arc<OltpPlan>, number: u32, dialect: Dialect) -> Self {
        let size = i64::from(plan.table_size);
        let users = i64::from(plan.users);
        let user = i64::from(number);
        // Parts share their borders, as sysbench's do; with its fractions cut.
        let (low, high) = (size * user / users, size * (user + 1) / users);
        let table = number % plan.tables + 1;
        let last = plan.last_keys.get(table as usize - 1).copied();
        Self {
            part: Keys::new(&plan.distribution, low, high),
            bulk: (table, last.unwrap_or_default()),
            bulk_rows: 0,
            inputs: Random::derive(plan.seed, "inputs", &[number.into()]),
            waits: Random::derive(plan.seed, "waits", &[number.into()]),
            steps: Vec::new(),
            values: Vec::new(),
            text: String::new(),
            sql: String::new(),
            drawn: UserCounts::default(),
            plan,
            dialect,
        }
    }

    fn draw_groups(&mut self) {
        let plan = Arc::clone(&self.plan);
        for (act, count) in &plan.groups {
            let table = self.table();
            for _ in 0..*count {
                match act {
                    Act::Once(statement) => self.draw(*statement, table),
                    Act::Replace => self.draw_replacement(table),
                }
            }
        }
    }

    fn draw(&mut self, statement: TableStatement, table: u32) {
        let first = self.values.len();
        let mix = self.plan.mix;
        match statement {
            TableStatement::PointSelect | TableStatement::IndexUpdate | TableStatement::Delete => {
                self.draw_key();
            }
            TableStatement::SimpleRange
            | TableStatement::SumRange
            | TableStatement::OrderRange
            | TableStatement::DistinctRange => {
                let key = self.plan.keys.draw(&mut self.inputs);
                self.number(key);
                self.number(key + i64::from(mix.range_size) - 1);
            }
            TableStatement::NonIndexUpdate => {
                self.draw_text(C_GROUPS);
                self.draw_key();
            }
            TableStatement::Insert => {}
            TableStatement::RandomPoints => {
                for _ in 0..mix.random_points {
                    let value = self.part.draw(&mut self.inputs);
                    self.number(value);
                }
            }
            TableStatement::RandomRanges => {
                for _ in 0..mix.random_ranges {
                    let value = self.part.draw(&mut self.inputs);
                    self.number(value);
                    self.number(value + i64::from(mix.random_range_delta));
                }
            }
        }
        self.step(statement, table, first);
    }

    /// A row goes and comes back with its key and other content.
    fn draw_replacement(&mut self, table: u32) {
        let first = self.values.len();
        let key = self.plan.keys.draw(&mut self.inputs);
        self.number(key);
        self.step(TableStatement::Delete, table, first);
        let first = self.values.len();
        self.number(key);
        self.draw_key();
        self.draw_text(C_GROUPS);
        self.draw_text(PAD_GROUPS);
        self.step(TableStatement::Insert, table, first);
    }

    /// A row whose key the system gives. sysbench sends it as text in either protocol, and so does this.
    fn draw_insert(&mut self) {
        let table = self.table();
        let k = self.plan.keys.draw(&mut self.inputs);
        let (columns, key) = schema::new_row(self.dialect);
        self.sql = format!(
            "INSERT INTO {} ({columns}) VALUES ({key}{k}, '",
            schema::name(table)
        );
        groups(&mut self.inputs, C_GROUPS, &mut self.sql);
        self.sql.push_str("', '");
        groups(&mut self.inputs, PAD_GROUPS, &mut self.sql);
        self.sql.push_str("')");
    }

    fn table(&mut self) -> u32 {
        let drawn = self.inputs.uniform(1, self.plan.tables.into());
        u32::try_from(drawn).unwrap_or(1)
    }

    fn draw_key(&mut self) {
        let key = self.plan.keys.draw(&mut self.inputs);
        self.number(key);
    }

    fn number(&mut self, number: i64) {
        self.values.push(DrawnValue::Integer(number));
    }

    fn draw_text(&mut self, count: usize) {
        let start = self.text.len();
        groups(&mut self.inputs, count, &mut self.text);
        self.values.push(DrawnValue::Text(start..self.text.len()));
    }

    fn step(&mut self, statement: TableStatement, table: u32, first: usize) {
        let values = first..self.values.len();
        self.steps.push(StatementCall {
            statement,
            table,
            values,
        });
    }

    /// Sends one statement and counts the rows it read or changed.
    async fn send<C: Connection>(
        &mut self,
        connection: &mut C,
        position: usize,
    ) -> Result<(), DriverError> {
        let step = &self.steps[position];
        let (statement, values) = (step.statement, &self.values[step.values.clone()]);
        let values = values.iter().map(|drawn| drawn.value(&self.text));
        let rows = match self.plan.protocol {
            Protocol::Text => {
                let template = statement.template(step.table, &self.plan.mix);
                let sql = write_values(&template, values);
                connection.text(&sql).await?.rows.len() as u64
            }
            Protocol::Prepared => {
                let id = self.plan.statement(statement, step.table);
                let values: Vec<Value<'_>> = values.collect();
                if statement.reads() {
                    connection.read(id, &values).await?
                } else {
                    connection.execute(id, &values).await?
                }
            }
        };
        self.drawn.touched(statement, rows);
        Ok(())
    }

    /// Sends all statements before it reads the first answer; counts the rows of those before an error.
    async fn send_together<C: Connection>(
        &mut self,
        connection: &mut C,
        begin: Option<AccessMode>,
    ) -> Result<(), DriverError> {
        let values = self.values.iter().map(|drawn| drawn.value(&self.text));
        let values: Vec<Value<'_>> = values.collect();
        let request = |step: &StatementCall| BoundStatement {
            statement: self.plan.statement(step.statement, step.table),
            values: &values[step.values.clone()],
        };
        let requests: Vec<BoundStatement<'_>> = self.steps.iter().map(request).collect();
        let together = Pipeline {
            begin,
            requests: &requests,
            in_transaction: begin.is_some(),
            commit: begin.is_some(),
        };
        let mut rows = Vec::with_capacity(requests.len());
        let ended = send(connection, together, &mut rows).await;
        for (step, rows) in self.steps.iter().zip(rows) {
            self.drawn.touched(step.statement, rows);
        }
        ended
    }
}

impl UserCounts {
    fn touched(&mut self, statement: TableStatement, rows: u64) {
        if statement.reads() {
            self.rows_read = self.rows_read.saturating_add(rows);
        } else {
            self.rows_changed = self.rows_changed.saturating_add(rows);
        }
    }
}

impl User for OltpUser {
    fn next(&mut self) -> usize {
        self.steps.clear();
        self.values.clear();
        self.text.clear();
        match self.plan.profile {
            Profile::Insert => self.draw_insert(),
            Profile::BulkInsert => {
                let (table, last) = self.bulk;
                self.bulk.1 = bulk(table, last, &mut self.sql);
                self.bulk_rows = u64::try_from(self.bulk.1 - last).unwrap_or_default();
            }
            _ => self.draw_groups(),
        }
        0
    }

    fn waits_s(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }

    fn start(&mut self) {
        self.drawn.transactions += 1;
        for step in &self.steps {
            self.drawn.sent[step.statement as usize] += 1;
        }
        self.drawn.own_inserts += u64::from(self.steps.is_empty());
        self.drawn.bulk_rows += self.bulk_rows;
    }

    async fn transaction<C: Connection>(
        &mut self,
        connection: &mut C,
    ) -> Result<TransactionEnd, DriverError> {
        if self.steps.is_empty() {
            connection.text(&self.sql).await?;
            return Ok(TransactionEnd::Committed);
        }
        let begin = self.plan.in_transaction.then(|| match self.plan.profile {
            Profile::ReadOnly => schema::reading(self.dialect),
            _ => AccessMode::ReadWrite,
        });
        if self.plan.pipelining {
            self.send_together(connection, begin).await?;
            return Ok(TransactionEnd::Committed);
        }
        if let Some(access) = begin {
            connection.begin(access).await?;
        }
        for position in 0..self.steps.len() {
            self.send(connection, position).await?;
        }
        if self.plan.in_transaction {
            connection.commit().await?;
        }
        Ok(TransactionEnd::Committed)
    }

    fn spread(&mut self) -> f64 {
        0.5 + self.waits.fraction()
    }

    fn drawn(&self) -> Counts {
        let mut counts = Counts::from([
            (self.plan.profile.name(), self.drawn.transactions),
            ("rows_read", self.drawn.rows_read),
            ("rows_changed", self.drawn.rows_changed),
        ]);
        for (statement, sent) in TableStatement::ALL.iter().zip(self.drawn.sent) {
            if sent > 0 {
                counts.insert(statement.name(), sent);
            }
        }
        if self.drawn.own_inserts > 0 {
            counts.insert(TableStatement::Insert.name(), self.drawn.own_inserts);
        }
        if self.drawn.bulk_rows > 0 {
            counts.insert("bulk_rows", self.drawn.bulk_rows);
        }
        counts
    }
}
