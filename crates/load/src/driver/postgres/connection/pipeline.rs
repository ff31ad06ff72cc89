//! Statements sent together.

use super::{PostgresConnection, answer, committed, lost};
use crate::driver::pipeline::{BoundStatement, Pipeline};
use crate::driver::{AccessMode, DriverError, StatementId};

/// What begins and ends a transaction in a pipeline: a statement as text would be an exchange of its own.
pub const FRAME: [&str; 3] = ["BEGIN", "BEGIN READ ONLY", "COMMIT"];

impl PostgresConnection {
    /// Sends them and reads their answers.
    pub async fn send_pipeline(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        if pipeline.in_transaction {
            self.send_together(pipeline, rows).await
        } else {
            self.send_apart(pipeline, rows).await
        }
    }

    /// The numbers of the statements that begin, begin to read only, and commit.
    async fn frame(&mut self) -> Result<[StatementId; FRAME.len()], DriverError> {
        let first = self.frame.unwrap_or(self.statements.len());
        if self.frame.is_none() {
            self.prepare(&FRAME.map(String::from)).await?;
            self.frame = Some(first);
        }
        Ok([first, first + 1, first + 2].map(StatementId))
    }

    /// Statements in a transaction, all in one exchange: after an error the server skips the rest, a commit too, and the
    /// transaction has failed.
    async fn send_together(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        let [begin, begin_read_only, commit] = self.frame().await?;
        let bare = |statement| BoundStatement {
            statement,
            values: &[],
        };
        if let Some(access) = pipeline.begin {
            self.write_execute(bare(match access {
                AccessMode::ReadOnly => begin_read_only,
                AccessMode::ReadWrite => begin,
            }))?;
        }
        for request in pipeline.requests {
            self.write_execute(*request)?;
        }
        if pipeline.commit {
            self.write_execute(bare(commit))?;
        }
        self.channel.outgoing().message(b'S');
        self.channel.send().await.map_err(lost)?;
        let mut is_in = pipeline.begin.is_none();
        let last = rows.len() + pipeline.requests.len();
        let ended = self
            .finish(|tag, body| {
                match tag {
                    b'C' if !is_in => is_in = true,
                    b'C' if rows.len() < last => rows.push(answer::affected_by(body)?),
                    _ => {}
                }
                Ok(())
            })
            .await?;
        if pipeline.commit {
            return committed(&ended);
        }
        Ok(())
    }

    /// Statements each for itself: one's failure is no other's, as if they had been sent one by one.
    async fn send_apart(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        for request in pipeline.requests {
            self.write_execute(*request)?;
            self.channel.outgoing().message(b'S');
        }
        self.channel.send().await.map_err(lost)?;
        let mut failed = None;
        for _ in pipeline.requests {
            match self.finish(|_, _| Ok(())).await {
                Ok(tag) if failed.is_none() => rows.push(answer::affected(&tag)),
                Ok(_) => {}
                Err(error) if error.is_end() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
