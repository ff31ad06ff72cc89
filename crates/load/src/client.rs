//! A connection for small questions: one thread holds it, another asks and waits no longer than it wants to.
//!
//! Works with any driver, since it needs only [`Driver::connect`] and [`Connection::text`] inside one `block_on`. A
//! server that hangs keeps its own thread waiting and nobody else; that thread ends with the process at the latest.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Endpoint, Rows};

use crate::driver::endpoint::{self, Job};
use crate::driver::{Connection, Driver, ErrorKind};
use crate::error::LoadError;

/// The thread's name, as `/proc` shows it: 15 bytes at most.
const THREAD: &str = "server-answers";

/// For a thread that nothing holds up but other work on its processor.
const FAREWELL_LIMIT: Duration = Duration::from_secs(2);

/// A connection for small questions.
pub struct Client {
    questions: Sender<String>,
    answers: Receiver<Result<Rows, LoadError>>,
    /// Answers still to come that nobody waits for any more; the first is that of connecting.
    outstanding: usize,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not in time. The connection is kept: the next question waits for this one's answer first, and drops it.
    #[error("no answer within {:.1} s", limit.as_secs_f64())]
    Late {
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server refused the connection or the statement.
    #[error(transparent)]
    Failed(#[from] LoadError),
    /// The connection ended earlier; open another.
    #[error("the connection has ended")]
    Ended,
}

impl Client {
    /// Begins to connect, and does not wait for it: the first question does.
    pub fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let (questions, inbox) = channel();
        let (outbox, answers) = channel();
        let endpoint = endpoint.clone();
        thread::Builder::new().name(THREAD.into()).spawn(move || {
            let job = AnswerJob {
                inbox: &inbox,
                outbox: &outbox,
            };
            if let Err(error) = endpoint::with(&endpoint, job) {
                let _ = outbox.send(Err(error)); // whoever asked may have gone
            }
        })?;
        Ok(Self {
            questions,
            answers,
            outstanding: 1,
        })
    }

    /// Runs one statement as text; waits for `limit` at most, for connecting and late answers too.
    pub fn ask(&mut self, sql: &str, limit: Duration) -> Result<Rows, ClientError> {
        let deadline_ns =
            monotonic_ns().saturating_add(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX));
        while self.outstanding > 0 {
            // What connecting gave is an error or nothing; what a late statement gave is nobody's any more.
            match self.hear(deadline_ns, limit)? {
                Err(error @ LoadError::Statement { .. }) => drop(error),
                other => drop(other?),
            }
        }
        if self.questions.send(sql.to_owned()).is_err() {
            return Err(ClientError::Ended);
        }
        self.outstanding += 1;
        Ok(self.hear(deadline_ns, limit)??)
    }

    fn hear(
        &mut self,
        deadline_ns: i64,
        limit: Duration,
    ) -> Result<Result<Rows, LoadError>, ClientError> {
        let left_ns = u64::try_from(deadline_ns - monotonic_ns()).unwrap_or_default();
        match self.answers.recv_timeout(Duration::from_nanos(left_ns)) {
            Ok(answer) => {
                self.outstanding -= 1;
                Ok(answer)
            }
            Err(RecvTimeoutError::Timeout) => Err(ClientError::Late { limit }),
            Err(RecvTimeoutError::Disconnected) => Err(ClientError::Ended),
        }
    }
}

impl Drop for Client {
    /// Lets the thread say good-bye before the process may end; one that waits for a server is not waited for.
    fn drop(&mut self) {
        self.questions = channel().0; // the thread hears that nobody asks any more
        if self.outstanding == 0 {
            let _ = self.answers.recv_timeout(FAREWELL_LIMIT);
        }
    }
}

struct AnswerJob<'a> {
    inbox: &'a Receiver<String>,
    outbox: &'a Sender<Result<Rows, LoadError>>,
}

impl Job for AnswerJob<'_> {
    type Output = Result<(), LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let answering = driver.block_on(async {
            let mut connection = driver
                .connect(&[])
                .await
                .map_err(|source| driver.refused(source))?;
            let connected = Rows {
                columns: vec![],
                rows: vec![],
            };
            let mut listened_to = self.outbox.send(Ok(connected)).is_ok();
            while listened_to {
                // Nothing else runs on this reactor: waiting here holds nobody up.
                let Ok(sql) = self.inbox.recv() else { break };
                let answer = connection.text(&sql).await;
                let lost = matches!(&answer, Err(error) if error.kind == ErrorKind::Connection);
                let answer = answer.map_err(|source| LoadError::Statement { doing: sql, source });
                listened_to = self.outbox.send(answer).is_ok() && !lost;
            }
            Ok(())
        });
        answering.map_err(LoadError::start("a reactor"))?
    }
}
