//! Checks a database's consistency conditions, one warehouse after the other.

use fairtrial_protocol::load::{Checked, Condition, TpccCheck};

use crate::driver::endpoint::{self, Job};
use crate::driver::{Connection, Driver, DriverError};
use crate::error::LoadError;
use crate::tpcc::conditions::{self, ALL};
use crate::tpcc::screening;

/// Examples of violations kept per condition.
const EXAMPLES_LIMIT: usize = 20;

/// Checks all conditions.
pub fn check(parameters: &TpccCheck) -> Result<Checked, LoadError> {
    endpoint::with(
        &parameters.endpoint,
        TpccCheckJob {
            warehouses: parameters.warehouses,
        },
    )
}

struct TpccCheckJob {
    warehouses: u32,
}

enum CheckError {
    Connect(DriverError),
    Scale(i64),
    Condition(&'static str, DriverError),
}

impl Job for TpccCheckJob {
    type Output = Result<Checked, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let checked = driver.block_on(self.check(&driver));
        checked
            .map_err(LoadError::start("a reactor"))?
            .map_err(|failed| match failed {
                CheckError::Connect(source) => driver.refused(source),
                CheckError::Scale(count) => LoadError::Scale {
                    expected: self.warehouses.into(),
                    count,
                    unit: "warehouses".into(),
                },
                CheckError::Condition(clause, source) => LoadError::Statement {
                    doing: format!("checking condition {clause}"),
                    source,
                },
            })
    }
}

impl TpccCheckJob {
    async fn check<D: Driver>(&self, driver: &D) -> Result<Checked, CheckError> {
        let mut connection = driver.connect(&[]).await.map_err(CheckError::Connect)?;
        let warehouses = count(&mut connection, "SELECT COUNT(*) FROM warehouse")
            .await
            .map_err(CheckError::Connect)?;
        if warehouses != i64::from(self.warehouses) {
            return Err(CheckError::Scale(warehouses));
        }
        let mut suspected = Vec::new();
        for warehouse in 1..=self.warehouses {
            // What cannot be read is said by the condition that needs it.
            let conditions = screening::suspected(&mut connection, warehouse).await;
            suspected.push((warehouse, conditions.unwrap_or([true; ALL.len()])));
        }
        let mut checked = Vec::with_capacity(ALL.len());
        for (index, condition) in ALL.iter().enumerate() {
            let mut violations = 0;
            let mut examples = Vec::new();
            let in_doubt = suspected.iter().filter(|(_, of)| of[index]);
            for warehouse in in_doubt.map(|(warehouse, _)| *warehouse) {
                let answer =
                    violators(&mut connection, &condition.query(warehouse), &mut examples).await;
                let more =
                    answer.map_err(|error| CheckError::Condition(condition.clause, error))?;
                violations = u64::saturating_add(violations, more);
            }
            let (clause, statement) = (condition.clause.into(), condition.statement.into());
            checked.push(Condition {
                clause,
                statement,
                violations,
                examples,
            });
        }
        Ok(Checked {
            conditions: checked,
        })
    }
}

/// Counts the rows that violate a condition, and shows the first of them.
async fn violators<C: Connection>(
    connection: &mut C,
    query: &str,
    examples: &mut Vec<String>,
) -> Result<u64, DriverError> {
    let limit = EXAMPLES_LIMIT + 1;
    let answer = connection.text(&format!("{query} LIMIT {limit}")).await?;
    for row in answer
        .rows
        .iter()
        .take(EXAMPLES_LIMIT.saturating_sub(examples.len()))
    {
        let cell = |(name, value): (&String, &Option<String>)| {
            format!(
                "{name}={}",
                value
                    .as_deref()
                    .map_or("NULL".into(), |text| conditions::shown(name, text))
            )
        };
        examples.push(
            answer
                .columns
                .iter()
                .zip(row)
                .map(cell)
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    if answer.rows.len() < limit {
        return Ok(answer.rows.len() as u64);
    }
    let all = count(
        connection,
        &format!("SELECT COUNT(*) FROM ({query}) AS violators"),
    )
    .await?;
    Ok(u64::try_from(all).unwrap_or_default())
}

async fn count<C: Connection>(connection: &mut C, query: &str) -> Result<i64, DriverError> {
    let count = connection.number(query).await?;
    count.ok_or_else(|| DriverError::unexpected(format!("{query} gave no number")))
}

#[cfg(test)]
mod tests;
