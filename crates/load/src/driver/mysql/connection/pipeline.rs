//! Statements sent together.

use super::{MysqlConnection, QUERY, lost, start};
use crate::driver::DriverError;
use crate::driver::pipeline::Pipeline;

impl MysqlConnection {
    /// Sends statements together and reads their answers.
    ///
    /// In a transaction the session commits nothing by itself: a deadlock rolls the transaction back, and what was sent
    /// after it would be kept, statement by statement. So it begins another, which nobody commits.
    pub async fn send_pipeline(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        for request in pipeline.requests {
            self.check_values(request.statement, request.values)?;
        }
        self.set_autocommit(!pipeline.in_transaction).await?;
        if let Some(access) = pipeline.begin {
            self.commits.in_transaction = true;
            let command = self.channel.command(QUERY);
            command.extend_from_slice(start(access).as_bytes());
        }
        for request in pipeline.requests {
            self.write_execute(request.statement, request.values);
        }
        self.channel.send().await.map_err(lost)?;
        self.finish_all(pipeline, rows).await
    }

    /// Has a statement that is in no transaction commit by itself again, if a pipeline has changed that.
    pub async fn leave_pipelines(&mut self) -> Result<(), DriverError> {
        let autocommit = self.commits.by_itself || !self.commits.in_transaction;
        self.set_autocommit(autocommit).await
    }

    /// Has the session commit each statement that is in no transaction, or none. Nothing may be under way.
    async fn set_autocommit(&mut self, autocommit: bool) -> Result<(), DriverError> {
        if self.commits.by_itself != autocommit {
            let sql = format!("SET autocommit = {}", u8::from(autocommit));
            self.run(&sql).await?;
            self.commits.by_itself = autocommit;
        }
        Ok(())
    }

    /// Reads the answers of a pipeline, all of them unless the connection is lost; the first error is what it comes to.
    async fn finish_all(
        &mut self,
        pipeline: Pipeline<'_>,
        rows: &mut Vec<u64>,
    ) -> Result<(), DriverError> {
        let mut failed = None;
        if pipeline.begin.is_some() {
            failed = self.finish(|_, _| Ok(())).await.err();
        }
        for request in pipeline.requests {
            if failed.as_ref().is_some_and(DriverError::is_end) {
                break;
            }
            let gives_rows = self.statements[request.statement.0].shape.columns > 0;
            let mut count = 0;
            let ended = self
                .finish(|_, _| {
                    count += 1;
                    Ok(())
                })
                .await;
            match ended {
                Ok(_) if failed.is_some() => {}
                Ok(end) => rows.push(if gives_rows { count } else { end.affected }),
                // Nothing comes after it, whatever came before.
                Err(error) if error.is_end() => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
