//! Plain statements on one connection, for whoever needs to ask a server something.

use std::thread;
use std::time::{Duration, Instant};

use fairtrial_protocol::load::{Rows, Sql};

use crate::driver::endpoint::{self, Job};
use crate::driver::{Connection, Driver, DriverError};
use crate::error::LoadError;

/// Between two tries to connect: a server's start takes tenths of a second.
const RETRY: Duration = Duration::from_millis(50);

/// Runs the statements in order; a failing one ends the list.
pub fn sql(parameters: &Sql) -> Result<Vec<Rows>, LoadError> {
    endpoint::with(&parameters.endpoint, SqlJob { parameters })
}

struct SqlJob<'a> {
    parameters: &'a Sql,
}

enum SqlError {
    Connect(DriverError),
    Statement(usize, DriverError),
}

impl Job for SqlJob<'_> {
    type Output = Result<Vec<Rows>, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let answers = driver.block_on(async {
            let mut connection = self.connect(&driver).await.map_err(SqlError::Connect)?;
            let mut answers = Vec::with_capacity(self.parameters.statements.len());
            for (position, statement) in self.parameters.statements.iter().enumerate() {
                let answer = connection.text(statement).await;
                answers.push(answer.map_err(|error| SqlError::Statement(position, error))?);
            }
            Ok(answers)
        });
        answers
            .map_err(LoadError::start("a reactor"))?
            .map_err(|failed| match failed {
                SqlError::Connect(source) => driver.refused(source),
                SqlError::Statement(position, source) => LoadError::Statement {
                    doing: self.parameters.statements[position].clone(),
                    source,
                },
            })
    }
}

impl SqlJob<'_> {
    /// Connects, trying again while a server may still be starting. A refused setting does not get better by waiting.
    async fn connect<D: Driver>(&self, driver: &D) -> Result<D::Connection, DriverError> {
        let limit = Duration::from_millis(self.parameters.connect_timeout_ms.into());
        let began = Instant::now();
        loop {
            match driver.connect(&[]).await {
                Err(error)
                    if began.elapsed() < limit && error.code != crate::driver::SETTING_REFUSED =>
                {
                    thread::sleep(RETRY);
                }
                end => return end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use fairtrial_protocol::load::Endpoint;

    use super::*;

    #[test]
    fn a_server_that_lets_each_connection_wait_is_not_waited_for_beyond_the_limit() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let came = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&came);
        thread::spawn(move || {
            for client in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                thread::sleep(3 * RETRY);
                drop(client);
            }
        });
        let refused = sql(&Sql {
            endpoint: Endpoint::mysql_at(&socket, "root", "none"),
            statements: vec!["SELECT 1".into()],
            connect_timeout_ms: 200,
        });
        assert!(matches!(refused, Err(LoadError::Connect { .. })));
        let came = came.load(Ordering::Relaxed);
        assert!((1..=3).contains(&came), "{came} times");
    }
}
