//! What a system says to a script's statements before any of them is run.

use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::script::{Preflighted, Refused, ScriptPreflight};

use super::draw::ValueSource;
use super::plan::{StatementPlan, TransactionPlan, planned};
use crate::driver::endpoint::{self, Job};
use crate::driver::{Connection, Driver, DriverError, ErrorKind, StatementShape};
use crate::error::LoadError;

/// Prepares all statements of a script.
pub fn preflight(parameters: &ScriptPreflight) -> Result<Preflighted, LoadError> {
    let transactions = planned(&parameters.transactions)?;
    let endpoint: &Endpoint = &parameters.endpoint;
    endpoint::with(endpoint, PreflightJob { transactions })
}

struct PreflightJob {
    transactions: Vec<TransactionPlan>,
}

impl Job for PreflightJob {
    type Output = Result<Preflighted, LoadError>;

    fn run<D: Driver>(mut self, driver: D) -> Self::Output {
        let outcome = driver.block_on(async {
            let mut connection = driver.connect(&[]).await?;
            self.refused(&mut connection).await
        });
        let refused = outcome
            .map_err(LoadError::start("a reactor"))?
            .map_err(|source| driver.refused(source))?;
        Ok(Preflighted { refused })
    }
}

impl PreflightJob {
    async fn refused<C: Connection>(
        &mut self,
        connection: &mut C,
    ) -> Result<Vec<Refused>, DriverError> {
        let mut refused = Vec::new();
        for transaction in &mut self.transactions {
            for (statement, step) in (1..).zip(&mut transaction.steps) {
                match look(connection, &transaction.sources, step).await {
                    Ok(()) => {}
                    Err(error) if error.kind == ErrorKind::Connection => return Err(error),
                    Err(error) => refused.push(Refused {
                        transaction: transaction.name.into(),
                        statement,
                        code: error.code,
                        message: error.message,
                    }),
                }
            }
        }
        Ok(refused)
    }
}

/// Looks at one statement, whose values are drawn from `sources` or taken from rows.
pub async fn look<C: Connection>(
    connection: &mut C,
    sources: &[ValueSource],
    step: &mut StatementPlan,
) -> Result<(), DriverError> {
    let StatementShape {
        parameters,
        integers,
        columns,
    } = connection.shape(&step.sql).await?;
    if parameters != step.values.len() {
        let values = step.values.len();
        return Err(DriverError::unexpected(format!(
            "the system finds {parameters} parameters where the script has {values}"
        )));
    }
    let drawn = |place: &usize| sources.get(step.values[*place]);
    let is_unfit = |place: &&usize| drawn(place).is_some_and(|source| !source.is_whole());
    if let Some(place) = integers.iter().find(is_unfit) {
        let number = place + 1;
        return Err(DriverError::unexpected(format!(
            "the system expects an integer for parameter {number}, but the script draws another type; CAST it"
        )));
    }
    if columns < step.take.len() {
        let taken = step.take.len();
        return Err(DriverError::unexpected(format!(
            "{taken} columns are to be taken from rows of {columns}"
        )));
    }
    step.gives_rows = columns > 0;
    Ok(())
}
