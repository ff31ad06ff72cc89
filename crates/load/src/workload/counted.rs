//! A connection that counts the statements sent over it.

use fairtrial_protocol::load::Rows;

use crate::driver::batch::Batch;
use crate::driver::pipeline::Pipeline;
use crate::driver::table::Table;
use crate::driver::{AccessMode, Connection, DriverError, Row, StatementId, StatementShape, Value};

/// Passes everything on to a connection and counts: each call but a bulk insert is one statement, and a
/// pipeline as many as it holds.
pub struct CountingConnection<'a, C> {
    connection: &'a mut C,
    sent: u64,
}

impl<'a, C: Connection> CountingConnection<'a, C> {
    /// Counts from 0.
    pub fn new(connection: &'a mut C) -> Self {
        Self {
            connection,
            sent: 0,
        }
    }

    /// Statements sent, whatever became of them.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl<C: Connection> Connection for CountingConnection<'_, C> {
    const ERROR_ENDS_PIPELINE: bool = C::ERROR_ENDS_PIPELINE;

    async fn begin(&mut self, access: AccessMode) -> Result<(), DriverError> {
        self.sent += 1;
        self.connection.begin(access).await
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        self.sent += 1;
        self.connection.commit().await
    }

    async fn rollback(&mut self) -> Result<(), DriverError> {
        self.sent += 1;
        self.connection.rollback().await
    }

    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.sent += 1;
        self.connection.execute(statement, values).await
    }

    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.sent += 1;
        self.connection.query(statement, values).await
    }

    async fn read(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.sent += 1;
        self.connection.read(statement, values).await
    }

    async fn pipeline(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        self.sent += pipeline.statements();
        self.connection.pipeline(pipeline, rows).await
    }

    async fn shape(&mut self, sql: &str) -> Result<StatementShape, DriverError> {
        self.connection.shape(sql).await
    }

    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError> {
        self.sent += 1;
        self.connection.text(sql).await
    }

    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError> {
        self.connection.insert(table, batch).await
    }
}
