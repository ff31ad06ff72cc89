//! Readers of foreign bytes as functions of bytes: for the fuzzers in `fuzz/`, and for the tests that read their corpora.

use std::future::Future;
use std::io::Cursor;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::driver::batch::Batch;
use crate::driver::dialect::Type;
use crate::driver::mysql::MysqlConnection;
use crate::driver::pipeline::{BoundStatement, Pipeline};
use crate::driver::postgres::{self, PostgresConnection};
use crate::driver::remote::Account;
use crate::driver::table::{Column, Table};
use crate::driver::{AccessMode, Cell, Connection, DriverError, Row, StatementId, Value};
use crate::file_access::counters;
use crate::noop::answers;
use crate::reactor::ByteStream;

/// What sessions write to.
static RECORDED: Table = Table {
    name: "recorded",
    columns: &[
        column("number", Type::Integer),
        column("words", Type::Variable(20)),
    ],
    primary_key: &["number"],
    indexes: &[],
};

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: true,
    }
}

/// Statements of a session on MariaDB or MySQL: rows of every type, one with a parameter, one that changes rows.
const MYSQL: [&str; 3] = [
    "SELECT 1, CAST(3 AS UNSIGNED), -12.50, 1.5E0, 'text', NULL, CAST('2026-01-31 23:59:59' AS DATETIME) UNION ALL \
     SELECT 2, 4, 0.05, 2.5E0, '', 'x', NULL",
    "SELECT ? + 1",
    "UPDATE recorded SET words = ? WHERE number = ?",
];

/// The same on PostgreSQL.
const POSTGRES: [&str; 3] = [
    "SELECT 1, 2::int2, 3::int8, -12.50::numeric, true, ' a '::char(5), 'text'::text, timestamp '2026-01-31 23:59:59' \
     UNION ALL SELECT 2, 3, 4, 0.05, NULL, '', '', NULL",
    "SELECT ?::int4 + 1",
    "UPDATE recorded SET words = ? WHERE number = ?",
];

/// Kinds of exchanges.
const EXCHANGES: usize = 11;

/// What a MariaDB or MySQL server says to a session. The first byte says whether others can read the connection.
pub fn mysql(bytes: &[u8]) {
    let _ = now(replay_mysql(bytes));
}

/// The same of a PostgreSQL server.
pub fn postgres(bytes: &[u8]) {
    let _ = now(replay_postgres(bytes));
}

async fn replay_mysql(bytes: &[u8]) -> Result<Vec<String>, DriverError> {
    let Some((stream, account)) = recorded(bytes) else {
        return Ok(Vec::new());
    };
    let mut connection = MysqlConnection::over(stream, &account).await?;
    connection.prepare(&MYSQL.map(String::from)).await?;
    Ok(session(&mut connection).await)
}

async fn replay_postgres(bytes: &[u8]) -> Result<Vec<String>, DriverError> {
    let Some((stream, account)) = recorded(bytes) else {
        return Ok(Vec::new());
    };
    let mut connection = PostgresConnection::over(stream, &account).await?;
    connection.prepare(&POSTGRES.map(String::from)).await?;
    Ok(session(&mut connection).await)
}

/// What a PostgreSQL server asks for at a login: bodies of its requests, a 0xFF between them. `NONCE` stands for the
/// client's own, which is another one at each login.
pub fn postgres_login(bytes: &[u8]) {
    let mut scram = None;
    let mut nonce = String::new();
    for body in bytes.split(|byte| *byte == 0xFF) {
        let text = String::from_utf8_lossy(body);
        let with_nonce = text.replacen("NONCE", &nonce, 1);
        let body = if text.contains("NONCE") {
            with_nonce.as_bytes()
        } else {
            body
        };
        match postgres::login::reply(body, &account(body.first() != Some(&1)), &mut scram) {
            Err(_) => return,
            Ok(None) => {}
            Ok(Some(reply)) => {
                let reply = String::from_utf8_lossy(&reply).into_owned();
                if let Some((_, own)) = reply.split_once("n,,n=,r=") {
                    own.clone_into(&mut nonce);
                }
            }
        }
    }
}

/// What a client says to the server that does nothing: packets' contents, a 0xFF between them.
pub fn noop(bytes: &[u8]) {
    let (mut out, mut statements) = (Vec::new(), 0);
    for payload in bytes.split(|byte| *byte == 0xFF) {
        out.clear();
        if !answers::command(&mut out, payload, &mut statements) {
            return;
        }
    }
}

/// What the kernel says of its counters and mounts, as files below `root`, the place's `/proc`.
pub fn file_counters(root: &Path) {
    let _ = counters::read_below(root, root, root);
}

fn recorded(bytes: &[u8]) -> Option<(ByteStream, Account<'static>)> {
    let (first, said) = bytes.split_first()?;
    let stream = ByteStream::Recorded(Cursor::new(said.to_vec()));
    Some((stream, account(*first == b'L')))
}

fn account(is_local: bool) -> Account<'static> {
    Account {
        user: "driver",
        password: "right",
        database: Some("recorded"),
        host: "localhost",
        tls: None,
        is_local,
    }
}

/// Runs a future that never waits: all that it reads is there.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("what was recorded is there at once"),
    }
}

/// Every kind of exchange once, whatever became of those before, unless the connection was lost; what each gave.
async fn session<C: Connection>(connection: &mut C) -> Vec<String> {
    let mut gave = Vec::new();
    for number in 0..EXCHANGES {
        let outcome = exchange(connection, number).await;
        let is_end = outcome.as_ref().is_err_and(DriverError::is_end);
        gave.push(format!("{outcome:?}"));
        if is_end {
            break;
        }
    }
    gave
}

async fn exchange<C: Connection>(connection: &mut C, number: usize) -> Result<String, DriverError> {
    let (text, seven) = (Value::Text("x"), Value::Integer(7));
    let [rows, one, update] = [0, 1, 2].map(StatementId);
    Ok(match number {
        0 => {
            let mut batch = Batch::default();
            batch.push(&[seven, text]);
            connection.insert(&RECORDED, &batch).await?;
            "inserted".into()
        }
        1 => {
            connection.begin(AccessMode::ReadWrite).await?;
            "begun".into()
        }
        2 => shown(&connection.query(rows, &[]).await?),
        3 => shown(&connection.query(one, &[seven]).await?),
        4 => connection.read(rows, &[]).await?.to_string(),
        5 => {
            let touched = connection.execute(update, &[text, seven]).await?;
            touched.to_string()
        }
        6 => {
            connection.commit().await?;
            "committed".into()
        }
        7 => {
            let mut touched = Vec::new();
            let (of_one, of_update) = ([seven], [text, seven]);
            let requests = [(one, &of_one[..]), (update, &of_update[..])]
                .map(|(statement, values)| BoundStatement { statement, values });
            let pipeline = Pipeline {
                begin: Some(AccessMode::ReadWrite),
                requests: &requests,
                in_transaction: true,
                commit: C::ERROR_ENDS_PIPELINE,
            };
            connection.pipeline(pipeline, &mut touched).await?;
            format!("{touched:?}")
        }
        8 => {
            connection.rollback().await?;
            "rolled back".into()
        }
        9 => {
            let answer = connection.text("SELECT 'a' AS b, NULL AS c").await?;
            format!("{answer:?}")
        }
        _ => {
            let shape = connection.shape("SELECT nothing FROM nowhere").await?;
            format!("{shape:?}")
        }
    })
}

/// Rows as they are, and their cells as values to be bound again.
fn shown(rows: &[Row]) -> String {
    let mut text = format!("{rows:?}");
    for cell in rows.iter().flat_map(|Row(cells)| cells) {
        if let Cell::Decimal(decimal) = cell {
            decimal.write(&mut text);
        }
    }
    text
}

#[cfg(test)]
mod tests;
