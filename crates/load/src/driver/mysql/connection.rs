//! One connection: commands out, answers in.

mod pipeline;

use std::time::Duration;

use fairtrial_protocol::load::Rows;

use super::answer::{self, CommandEnd, Head, MysqlColumn, Reader};
use super::channel::Channel;
use super::{Account, PREPARED_AT_ONCE, TextRows, bulk, login, lost};
use crate::driver::batch::Batch;
use crate::driver::pipeline::Pipeline;
use crate::driver::table::Table;
use crate::driver::{AccessMode, Connection, DriverError, Row, StatementId, StatementShape, Value};
use crate::reactor::{Address, ByteStream};

/// Longest wait for one answer while a drive lasts: longer than the 50 s a lock wait takes by default.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);

/// A whole packet: its length is one byte.
const QUIT: [u8; 5] = [1, 0, 0, 0, 0x01];
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// The server gives no answer to it.
const CLOSE: u8 = 0x19;

/// What only `LOAD DATA LOCAL` of our own may make it do.
const ASKED_FOR_A_FILE: &str = "the server asks for a file";

/// Parameter types by their numbers in the protocol.
const NULL: u8 = 6;
const LONGLONG: u8 = 8;
const NEWDECIMAL: u8 = 246;
const VAR_STRING: u8 = 253;

/// One connection.
pub struct MysqlConnection {
    channel: Channel,
    has_old_end: bool,
    statements: Vec<PreparedStatement>,
    columns: Vec<MysqlColumn>,
    commits: Commits,
    /// Whether the server has not refused `LOAD DATA LOCAL` yet.
    pub(super) local_infile: bool,
}

/// What a session commits, and when.
struct Commits {
    in_transaction: bool,
    /// Whether a statement outside a transaction commits by itself, as sessions begin.
    by_itself: bool,
}

impl Default for Commits {
    fn default() -> Self {
        Self {
            in_transaction: false,
            by_itself: true,
        }
    }
}

/// A statement that the server has prepared.
struct PreparedStatement {
    id: u32,
    shape: StatementShape,
    /// Types of the parameters as last sent, which the server remembers.
    types: Vec<u8>,
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        self.channel.farewell(&QUIT);
    }
}

impl MysqlConnection {
    /// Connects and logs in.
    pub async fn open(address: &Address, account: &Account<'_>) -> Result<Self, DriverError> {
        let stream = ByteStream::connect(address, ANSWER_LIMIT).await;
        Self::over(stream.map_err(lost)?, account).await
    }

    /// Logs in over a stream.
    pub async fn over(stream: ByteStream, account: &Account<'_>) -> Result<Self, DriverError> {
        let (channel, has_old_end) = login::greet(Channel::new(stream), account).await?;
        Ok(Self {
            channel,
            has_old_end,
            statements: Vec::new(),
            columns: Vec::new(),
            commits: Commits::default(),
            local_infile: true,
        })
    }

    /// Waits for answers as long as they take: loading and checking have no length to expect.
    pub fn wait_for_ever(&mut self) {
        self.channel.set_limit(None);
    }

    /// Prepares statements, many of them in one exchange.
    pub async fn prepare(&mut self, statements: &[String]) -> Result<(), DriverError> {
        for group in statements.chunks(PREPARED_AT_ONCE) {
            for statement in group {
                self.channel
                    .command(PREPARE)
                    .extend_from_slice(statement.as_bytes());
            }
            self.channel.send().await.map_err(lost)?;
            for _ in group {
                let prepared = self.prepared().await?;
                self.statements.push(prepared);
            }
        }
        Ok(())
    }

    async fn prepared(&mut self) -> Result<PreparedStatement, DriverError> {
        let content = self.channel.next().await.map_err(lost)?;
        if content.first() == Some(&0xFF) {
            return Err(answer::error(content));
        }
        let mut reader = Reader::new(content);
        reader.u8()?;
        let id = reader.u32()?;
        let (columns, parameters) = (reader.u16()?, reader.u16()?);
        for count in [parameters, columns] {
            let old_ends = u32::from(self.has_old_end && count > 0);
            for _ in 0..u32::from(count) + old_ends {
                self.channel.next().await.map_err(lost)?;
            }
        }
        Ok(PreparedStatement {
            id,
            shape: StatementShape {
                parameters: parameters.into(),
                integers: Vec::new(),
                columns: columns.into(),
            },
            types: Vec::new(),
        })
    }

    async fn send_text(&mut self, sql: &str) -> Result<(), DriverError> {
        self.channel
            .command(QUERY)
            .extend_from_slice(sql.as_bytes());
        self.channel.send().await.map_err(lost)
    }

    /// Runs a statement that gives no rows.
    pub async fn run(&mut self, sql: &str) -> Result<CommandEnd, DriverError> {
        self.send_text(sql).await?;
        self.finish(|_, _| Ok(())).await
    }

    /// Runs a statement that asks for a file, and sends it.
    async fn run_with_file(&mut self, sql: &str, file: &[u8]) -> Result<CommandEnd, DriverError> {
        self.send_text(sql).await?;
        let content = self.channel.next().await.map_err(lost)?;
        match answer::head(content)? {
            Head::File => {}
            other => {
                return Err(answer::abandoned(format!(
                    "instead of asking for a file: {other:?}"
                )));
            }
        }
        for piece in file.chunks(bulk::PACKET_BYTES) {
            self.channel.reply().extend_from_slice(piece);
            self.channel.send().await.map_err(lost)?;
        }
        self.channel.reply();
        self.channel.send().await.map_err(lost)?;
        self.finish(|_, _| Ok(())).await
    }

    /// Sends rows as a file. `LOCAL` turns errors in data into warnings, so a warning is an error here.
    async fn load_data(&mut self, table: &Table, batch: &Batch) -> Result<(), DriverError> {
        let Some((sql, text)) = bulk::file(table, batch) else {
            return Ok(());
        };
        match self.run_with_file(&sql, text.as_bytes()).await?.warnings {
            0 => Ok(()),
            warnings => Err(DriverError::unexpected(format!(
                "{warnings} rows of {} did not arrive as sent",
                table.name
            ))),
        }
    }

    async fn send_execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(), DriverError> {
        self.check_values(statement, values)?;
        self.leave_pipelines().await?;
        self.write_execute(statement, values);
        self.channel.send().await.map_err(lost)
    }

    fn check_values(
        &self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(), DriverError> {
        let parameters = self.statements[statement.0].shape.parameters;
        if parameters == values.len() {
            return Ok(());
        }
        Err(DriverError::unexpected(format!(
            "statement {} takes {parameters} values and got {}",
            statement.0,
            values.len()
        )))
    }

    fn write_execute(&mut self, statement: StatementId, values: &[Value<'_>]) {
        let prepared = &mut self.statements[statement.0];
        write_execute(prepared, values, self.channel.command(EXECUTE));
    }

    /// Reads an answer to its end, whatever it holds: rows of all its results go to `take`.
    async fn finish(
        &mut self,
        mut take: impl FnMut(&[u8], &[MysqlColumn]) -> Result<(), DriverError>,
    ) -> Result<CommandEnd, DriverError> {
        let mut problem = None;
        loop {
            let columns = match answer::head(self.channel.next().await.map_err(lost)?)? {
                Head::End(end) if end.has_more() => continue,
                Head::End(end) => return problem.map_or(Ok(end), Err),
                Head::File => return Err(answer::abandoned(ASKED_FOR_A_FILE)),
                Head::Rows(columns) => columns,
            };
            self.read_columns(columns).await?;
            let end = loop {
                let content = self.channel.next().await.map_err(lost)?;
                match answer::rows_end(content, self.has_old_end) {
                    Some(end) => break end?,
                    None if problem.is_some() => {}
                    None => problem = take(content, &self.columns).err(),
                }
            };
            if !end.has_more() {
                return problem.map_or(Ok(end), Err);
            }
        }
    }

    async fn read_columns(&mut self, count: usize) -> Result<(), DriverError> {
        self.columns.clear();
        for _ in 0..count {
            let content = self.channel.next().await.map_err(lost)?;
            self.columns.push(MysqlColumn::read(content)?);
        }
        if self.has_old_end {
            self.channel.next().await.map_err(lost)?;
        }
        Ok(())
    }

    async fn read_names(
        &mut self,
        count: usize,
        names: &mut Vec<String>,
    ) -> Result<(), DriverError> {
        for _ in 0..count {
            let content = self.channel.next().await.map_err(lost)?;
            names.push(MysqlColumn::name(content)?);
        }
        if self.has_old_end {
            self.channel.next().await.map_err(lost)?;
        }
        Ok(())
    }
}

/// Writes what runs a prepared statement. Types go along only when they differ from those sent before.
fn write_execute(prepared: &mut PreparedStatement, values: &[Value<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(&prepared.id.to_le_bytes());
    out.push(0); // no cursor
    out.extend_from_slice(&1_u32.to_le_bytes()); // always once
    if values.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + values.len().div_ceil(8), 0);
    let types = values.iter().map(|value| match value {
        Value::Null => NULL,
        Value::Integer(_) => LONGLONG,
        Value::Decimal(_) => NEWDECIMAL,
        Value::Text(_) => VAR_STRING,
    });
    if types.clone().eq(prepared.types.iter().copied()) {
        out.push(0);
    } else {
        out.push(1);
        prepared.types.clear();
        prepared.types.extend(types);
        out.extend(prepared.types.iter().flat_map(|kind| [*kind, 0]));
    }
    for (index, value) in values.iter().enumerate() {
        match value {
            Value::Null => out[nulls + index / 8] |= 1 << (index % 8),
            Value::Integer(integer) => out.extend_from_slice(&integer.to_le_bytes()),
            Value::Decimal(decimal) => {
                let mut text = String::new();
                decimal.write(&mut text);
                write_text(text.as_bytes(), out);
            }
            Value::Text(text) => write_text(text.as_bytes(), out),
        }
    }
}

fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    match bytes.len() {
        short @ 0..=250 => out.push(u8::try_from(short).unwrap_or_default()),
        length => {
            out.push(0xFE);
            out.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

fn start(access: AccessMode) -> &'static str {
    match access {
        AccessMode::ReadOnly => "START TRANSACTION READ ONLY",
        AccessMode::ReadWrite => "START TRANSACTION",
    }
}

impl Connection for MysqlConnection {
    /// The server answers each command of its own, whatever became of those before.
    const ERROR_ENDS_PIPELINE: bool = false;

    async fn begin(&mut self, access: AccessMode) -> Result<(), DriverError> {
        self.commits.in_transaction = true;
        self.run(start(access)).await.map(drop)
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        self.run("COMMIT").await?;
        self.commits.in_transaction = false;
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), DriverError> {
        self.run("ROLLBACK").await?;
        self.commits.in_transaction = false;
        Ok(())
    }

    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.send_execute(statement, values).await?;
        self.finish(|_, _| Ok(())).await.map(|end| end.affected)
    }

    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.send_execute(statement, values).await?;
        let mut rows = Vec::new();
        self.finish(|content, columns| {
            rows.push(answer::row(content, columns)?);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    async fn read(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.send_execute(statement, values).await?;
        let mut rows = 0;
        self.finish(|_, _| {
            rows += 1;
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    async fn pipeline(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        self.send_pipeline(pipeline, rows).await
    }

    async fn shape(&mut self, sql: &str) -> Result<StatementShape, DriverError> {
        self.channel
            .command(PREPARE)
            .extend_from_slice(sql.as_bytes());
        self.channel.send().await.map_err(lost)?;
        let PreparedStatement { id, shape, .. } = self.prepared().await?;
        let close = self.channel.command(CLOSE);
        close.extend_from_slice(&id.to_le_bytes());
        self.channel.send().await.map_err(lost)?;
        Ok(shape)
    }

    /// Of several results, as a procedure's, it gives the first.
    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError> {
        self.leave_pipelines().await?;
        self.send_text(sql).await?;
        let mut columns = Vec::new();
        let mut rows = TextRows::default();
        let end = match answer::head(self.channel.next().await.map_err(lost)?)? {
            Head::End(end) => end,
            Head::File => return Err(answer::abandoned(ASKED_FOR_A_FILE)),
            Head::Rows(count) => {
                self.read_names(count, &mut columns).await?;
                loop {
                    let content = self.channel.next().await.map_err(lost)?;
                    match answer::rows_end(content, self.has_old_end) {
                        Some(end) => break end?,
                        None => rows.push(|| text_row(content, count))?,
                    }
                }
            }
        };
        if end.has_more() {
            self.finish(|_, _| Ok(())).await?;
        }
        rows.finish(columns)
    }

    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError> {
        if self.local_infile {
            match self.load_data(table, batch).await {
                Err(error) if bulk::REFUSED.contains(&error.code.as_str()) => {
                    self.local_infile = false;
                }
                end => return end,
            }
        }
        for sql in bulk::statements(table, batch) {
            self.run(&sql).await?;
        }
        Ok(())
    }
}

fn text_row(content: &[u8], count: usize) -> Result<Vec<Option<String>>, DriverError> {
    let mut reader = Reader::new(content);
    (0..count)
        .map(|_| {
            Ok(reader
                .text()?
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        })
        .collect()
}
