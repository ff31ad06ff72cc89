//! One connection: commands out, answers in.
//!
//! Every exchange ends with the server's word that it is ready, also after an error, so no exchange leaves anything of
//! its answer to the next.

mod pipeline;

use std::time::Duration;

use fairtrial_protocol::load::Rows;

use super::answer::{self, BINARY, PostgresColumn, malformed, oid};
use super::channel::Channel;
use super::{Account, PREPARED_AT_ONCE, TextRows, copy, login, lost};
use crate::driver::batch::Batch;
use crate::driver::dialect::numbered;
use crate::driver::pipeline::{BoundStatement, Pipeline};
use crate::driver::table::Table;
use crate::driver::{
    AccessMode, Connection, Decimal, DriverError, ErrorKind, Row, StatementId, StatementShape,
    Value,
};
use crate::reactor::{Address, ByteStream};

/// Longest wait for one answer while a drive lasts; a lock wait has no end by default, a deadlock is found in a second.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);

/// A whole message: its length is that of itself.
const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];

/// The status of a connection without a transaction (protocol 53.7, `ReadyForQuery`).
const IDLE: u8 = b'I';

/// One connection.
pub struct PostgresConnection {
    channel: Channel,
    statements: Vec<PreparedStatement>,
    status: u8,
    /// Where the prepared statements that begin and end a transaction stand, in the order of [`pipeline::FRAME`];
    /// pipelines alone need them.
    frame: Option<usize>,
}

/// A statement that the server has prepared.
#[derive(Default)]
struct PreparedStatement {
    parameters: Vec<u32>,
    columns: Vec<u32>,
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.channel.farewell(&TERMINATE);
    }
}

impl PostgresConnection {
    /// Connects and logs in.
    pub async fn open(address: &Address, account: &Account<'_>) -> Result<Self, DriverError> {
        let stream = ByteStream::connect(address, ANSWER_LIMIT).await;
        Self::over(stream.map_err(lost)?, account).await
    }

    /// Logs in over a stream.
    pub async fn over(stream: ByteStream, account: &Account<'_>) -> Result<Self, DriverError> {
        Ok(Self {
            channel: login::greet(Channel::new(stream), account).await?,
            statements: Vec::new(),
            status: IDLE,
            frame: None,
        })
    }

    /// Waits for answers as long as they take: loading and checking have no length to expect.
    pub fn wait_for_ever(&mut self) {
        self.channel.set_limit(None);
    }

    /// Prepares statements, with their parameters as question marks.
    pub async fn prepare(&mut self, statements: &[String]) -> Result<(), DriverError> {
        for group in statements.chunks(PREPARED_AT_ONCE) {
            let outgoing = self.channel.outgoing();
            for (number, statement) in (self.statements.len()..).zip(group) {
                let parse = outgoing.message(b'P');
                write_name(number, parse);
                parse.extend_from_slice(numbered(statement).as_bytes());
                parse.extend_from_slice(&[0, 0, 0]); // the server infers all types
                let describe = outgoing.message(b'D');
                describe.push(b'S');
                write_name(number, describe);
            }
            outgoing.message(b'S');
            self.channel.send().await.map_err(lost)?;
            let mut prepared = Vec::with_capacity(group.len());
            self.finish(|tag, body| {
                match tag {
                    b'1' if prepared.len() < group.len() => {
                        prepared.push(PreparedStatement::default());
                    }
                    b'1' => return Err(malformed()),
                    b't' | b'T' => {
                        let last = prepared.last_mut().ok_or_else(malformed)?;
                        if tag == b't' {
                            last.parameters = answer::parameters(body)?;
                        } else {
                            let columns = answer::columns(body)?;
                            last.columns = columns.iter().map(|column| column.kind).collect();
                        }
                    }
                    _ => {}
                }
                Ok(())
            })
            .await?;
            if prepared.len() < group.len() {
                return Err(malformed());
            }
            self.statements.append(&mut prepared);
        }
        Ok(())
    }

    /// Runs text that gives no rows; returns what it was called at its end.
    pub async fn run(&mut self, sql: &str) -> Result<String, DriverError> {
        self.send_text(sql).await?;
        self.finish(|_, _| Ok(())).await
    }

    /// Runs a `COPY … FROM STDIN`, and sends its file.
    async fn run_with_file(&mut self, sql: &str, file: &[u8]) -> Result<String, DriverError> {
        self.send_text(sql).await?;
        loop {
            match self.channel.next().await.map_err(lost)? {
                (b'G', _) => break,
                (b'N' | b'S', _) => {}
                (b'E', body) => {
                    let error = answer::error(body);
                    if error.kind != ErrorKind::Connection {
                        self.finish(|_, _| Ok(())).await?;
                    }
                    return Err(error);
                }
                _ => return Err(malformed()),
            }
        }
        for piece in file.chunks(copy::PIECE_BYTES) {
            let message = self.channel.outgoing().message(b'd');
            message.extend_from_slice(piece);
            self.channel.send().await.map_err(lost)?;
        }
        self.channel.outgoing().message(b'c');
        self.channel.send().await.map_err(lost)?;
        self.finish(|_, _| Ok(())).await
    }

    async fn send_text(&mut self, sql: &str) -> Result<(), DriverError> {
        let message = self.channel.outgoing().message(b'Q');
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.channel.send().await.map_err(lost)
    }

    async fn send_execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(), DriverError> {
        self.write_execute(BoundStatement { statement, values })?;
        self.channel.outgoing().message(b'S');
        self.channel.send().await.map_err(lost)
    }

    /// Writes what runs a prepared statement; after an error nothing is left of what was written.
    fn write_execute(&mut self, request: BoundStatement<'_>) -> Result<(), DriverError> {
        let StatementId(number) = request.statement;
        let outgoing = self.channel.outgoing();
        let bind = outgoing.message(b'B');
        let prepared = (number, &self.statements[number]);
        if let Err(error) = write_bind(prepared, request.values, bind) {
            outgoing.clear();
            return Err(error);
        }
        // All rows of the unnamed portal.
        outgoing.message(b'E').extend_from_slice(&[0; 5]);
        Ok(())
    }

    /// Reads an answer to its end, giving its messages to `take`; returns the last command's tag (`UPDATE 3`).
    async fn finish(
        &mut self,
        mut take: impl FnMut(u8, &[u8]) -> Result<(), DriverError>,
    ) -> Result<String, DriverError> {
        let mut problem = None;
        let mut ended = String::new();
        loop {
            let (tag, body) = self.channel.next().await.map_err(lost)?;
            match tag {
                b'Z' => {
                    self.status = *body.first().ok_or_else(malformed)?;
                    return problem.map_or(Ok(ended), Err);
                }
                b'E' => {
                    let error = answer::error(body);
                    if error.kind == ErrorKind::Connection {
                        return Err(error); // the server says nothing after it
                    }
                    problem.get_or_insert(error);
                }
                b'N' => {
                    if let Some(error) = answer::farewell(body) {
                        return Err(error);
                    }
                }
                b'C' => {
                    ended = answer::Reader::new(body).text()?;
                    if problem.is_none() {
                        problem = take(tag, body).err();
                    }
                }
                b'G' | b'W' | b'H' => {
                    return Err(DriverError {
                        kind: ErrorKind::Connection, // it waits for a file that nobody sends
                        ..DriverError::unexpected("COPY is not run as a statement")
                    });
                }
                _ if problem.is_some() => {}
                _ => problem = take(tag, body).err(),
            }
        }
    }
}

/// Whether a commit did so, by its tag: the server rolls a transaction back that has failed, and calls that no error.
fn committed(tag: &str) -> Result<(), DriverError> {
    match tag {
        "COMMIT" => Ok(()),
        other => Err(DriverError::unexpected(format!(
            "the server answered COMMIT with {other}"
        ))),
    }
}

/// A prepared statement's name is its number.
fn write_name(number: usize, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a vector cannot fail.
    let _ = write!(out, "{number}\0");
}

/// Writes what binds values to a prepared statement.
fn write_bind(
    (number, prepared): (usize, &PreparedStatement),
    values: &[Value<'_>],
    out: &mut Vec<u8>,
) -> Result<(), DriverError> {
    if prepared.parameters.len() != values.len() {
        let (expected, count) = (prepared.parameters.len(), values.len());
        return Err(DriverError::unexpected(format!(
            "statement {number} takes {expected} values and was given {count}"
        )));
    }
    out.push(0); // the unnamed portal
    write_name(number, out);
    write_formats(&prepared.parameters, out);
    write_count(values.len(), out);
    for (value, kind) in values.iter().zip(&prepared.parameters) {
        write_value(*value, *kind, out)?;
    }
    write_formats(&prepared.columns, out);
    Ok(())
}

fn write_formats(kinds: &[u32], out: &mut Vec<u8>) {
    write_count(kinds.len(), out);
    for kind in kinds {
        out.extend_from_slice(&answer::format(*kind).to_be_bytes());
    }
}

fn write_count(count: usize, out: &mut Vec<u8>) {
    // The server prepares no statement with more.
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
}

/// Writes a value in its type's format, its length before it.
fn write_value(value: Value<'_>, kind: u32, out: &mut Vec<u8>) -> Result<(), DriverError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mismatch = || DriverError::unexpected(format!("{value:?} does not fit type {kind}"));
    match value {
        Value::Null => {
            out[start..].copy_from_slice(&(-1_i32).to_be_bytes());
            return Ok(());
        }
        // What a sum of integers gives, say, bound to an integer again.
        Value::Decimal(Decimal { units, scale: 0 }) if answer::format(kind) == BINARY => {
            return write_value(Value::Integer(units), kind, {
                out.truncate(start);
                out
            });
        }
        Value::Integer(integer) => match kind {
            oid::INT8 => out.extend_from_slice(&integer.to_be_bytes()),
            oid::INT4 => {
                let small = i32::try_from(integer).map_err(|_| mismatch())?;
                out.extend_from_slice(&small.to_be_bytes());
            }
            oid::INT2 => {
                let small = i16::try_from(integer).map_err(|_| mismatch())?;
                out.extend_from_slice(&small.to_be_bytes());
            }
            _ => out.extend_from_slice(integer.to_string().as_bytes()),
        },
        _ if answer::format(kind) == BINARY => return Err(mismatch()),
        Value::Decimal(decimal) => {
            let mut text = String::new();
            decimal.write(&mut text);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
    }
    let length = i32::try_from(out.len() - start - 4).map_err(|_| mismatch())?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

impl Connection for PostgresConnection {
    async fn begin(&mut self, access: AccessMode) -> Result<(), DriverError> {
        let sql = match access {
            AccessMode::ReadOnly => "BEGIN READ ONLY",
            AccessMode::ReadWrite => "BEGIN",
        };
        self.run(sql).await.map(drop)
    }

    async fn commit(&mut self) -> Result<(), DriverError> {
        committed(&self.run("COMMIT").await?)
    }

    async fn rollback(&mut self) -> Result<(), DriverError> {
        if self.status == IDLE {
            return Ok(());
        }
        self.run("ROLLBACK").await.map(drop)
    }

    async fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.send_execute(statement, values).await?;
        let tag = self.finish(|_, _| Ok(())).await?;
        Ok(answer::affected(&tag))
    }

    async fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        self.send_execute(statement, values).await?;
        let mut rows = Vec::new();
        // Taken out while the answer is read, which needs the connection.
        let columns = std::mem::take(&mut self.statements[statement.0].columns);
        let end = self
            .finish(|tag, body| {
                if tag == b'D' {
                    rows.push(answer::row(body, &columns)?);
                }
                Ok(())
            })
            .await;
        self.statements[statement.0].columns = columns;
        end.map(|_| rows)
    }

    async fn read(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, DriverError> {
        self.send_execute(statement, values).await?;
        let mut rows = 0;
        self.finish(|tag, _| {
            rows += u64::from(tag == b'D');
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
        self.prepare(&[sql.to_owned()]).await?;
        let Some(PreparedStatement {
            parameters,
            columns,
        }) = self.statements.last()
        else {
            return Err(malformed());
        };
        let kinds = parameters.iter().enumerate();
        Ok(StatementShape {
            parameters: parameters.len(),
            integers: kinds
                .filter(|(_, kind)| answer::format(**kind) == BINARY)
                .map(|(place, _)| place)
                .collect(),
            columns: columns.len(),
        })
    }

    async fn text(&mut self, sql: &str) -> Result<Rows, DriverError> {
        self.send_text(sql).await?;
        let mut columns = Vec::new();
        let mut rows = TextRows::default();
        self.finish(|tag, body| {
            match tag {
                b'T' if columns.is_empty() => {
                    let described = answer::columns(body)?.into_iter();
                    columns = described.map(|PostgresColumn { name, .. }| name).collect();
                }
                b'T' => return Err(DriverError::unexpected("several results in one answer")),
                b'D' => rows.push(|| answer::text_row(body))?,
                _ => {}
            }
            Ok(())
        })
        .await?;
        rows.finish(columns)
    }

    async fn insert(&mut self, table: &'static Table, batch: &Batch) -> Result<(), DriverError> {
        let (sql, text, rows) = copy::file(table, batch);
        if rows == 0 {
            return Ok(());
        }
        let tag = self.run_with_file(&sql, text.as_bytes()).await?;
        if answer::affected(&tag) == rows {
            return Ok(());
        }
        Err(DriverError::unexpected(format!(
            "{rows} rows of {} were sent, and the server says {tag}",
            table.name
        )))
    }
}

#[cfg(test)]
mod tests;
