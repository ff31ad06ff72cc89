//! Steps that transactions share, and how they end.

use crate::driver::{Connection, DriverError, Row, StatementId, Value};
use crate::tpcc::inputs::CustomerKey;
use crate::tpcc::statements::Statement;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TpccEnd {
    /// Rolled back by the workload's own rule.
    pub rolled_back: bool,
    /// Orders delivered.
    pub delivered: u64,
    /// Districts without an order to deliver.
    pub skipped: u64,
}

/// Runs a query that must give exactly one row.
pub async fn one<C: Connection>(
    connection: &mut C,
    statement: StatementId,
    values: &[Value<'_>],
) -> Result<Row, DriverError> {
    let mut rows = connection.query(statement, values).await?;
    let count = rows.len();
    rows.pop().filter(|_| count == 1).ok_or_else(|| {
        DriverError::unexpected(format!(
            "statement {} gave {count} rows instead of one",
            statement.0
        ))
    })
}

/// Runs a statement that must touch exactly one row.
pub async fn touch<C: Connection>(
    connection: &mut C,
    statement: Statement,
    values: &[Value<'_>],
) -> Result<(), DriverError> {
    match connection.execute(statement.id(), values).await? {
        1 => Ok(()),
        touched => Err(DriverError::unexpected(format!(
            "{statement:?} touched {touched} rows instead of one"
        ))),
    }
}

/// A customer's number. Of those that share a last name it is the one in the middle by first name, rounded up
/// (clause 2.5.2.2).
pub async fn customer_number<C: Connection>(
    connection: &mut C,
    (warehouse, district): (i64, i64),
    customer: &CustomerKey,
) -> Result<i64, DriverError> {
    match customer {
        CustomerKey::Number(number) => Ok(*number),
        CustomerKey::LastName(name) => {
            let values = [
                Value::Integer(warehouse),
                Value::Integer(district),
                Value::Text(name),
            ];
            let rows = connection
                .query(Statement::CustomersByName.id(), &values)
                .await?;
            let middle = rows.get(rows.len().div_ceil(2).wrapping_sub(1));
            middle
                .ok_or_else(|| DriverError::unexpected(format!("no customer is called {name}")))?
                .integer(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver as _;
    use crate::driver::sqlite::Sqlite;
    use crate::tpcc::{schema, statements};
    use std::time::Duration;

    #[test]
    fn of_customers_that_share_a_name_the_middle_one_by_first_name_is_meant_rounded_up() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("names.db");
        let driver = Sqlite {
            path,
            pragmas: std::collections::BTreeMap::new(),
            busy_timeout: Duration::ZERO,
        };
        let numbers = driver.block_on(async {
            let mut empty = driver.connect(&[]).await?;
            for table in schema::TABLES {
                empty.text(&table.create(driver.dialect())).await?;
            }
            // First names descend with the numbers, so that the order of either is told apart.
            for (last, count) in [("ONE", 1), ("TWO", 2), ("THREE", 3), ("FOUR", 4)] {
                for number in 1..=count {
                    let id = number + 10 * count;
                    let first = char::from(b'Z' - u8::try_from(number).unwrap_or_default());
                    let sql = format!(
                        "INSERT INTO customer VALUES ({id}, 1, 1, '{first}', 'OE', '{last}', '', '', '', '', '', '', '', \
                         'GC', 0, 0, 0, 0, 0, 0, '')"
                    );
                    empty.text(&sql).await?;
                }
            }
            let mut connection = driver.connect(&statements::all(driver.dialect())).await?;
            let mut numbers = Vec::new();
            for name in ["ONE", "TWO", "THREE", "FOUR"] {
                numbers.push(customer_number(&mut connection, (1, 1), &CustomerKey::LastName(name.into())).await?);
            }
            let nobody = customer_number(&mut connection, (1, 1), &CustomerKey::LastName("NOBODY".into())).await;
            assert!(nobody.is_err_and(|error| error.message.contains("NOBODY")));
            Ok::<_, DriverError>(numbers)
        });
        // By first name: TWO is 22, 21; THREE is 33, 32, 31; FOUR is 44, 43, 42, 41.
        assert_eq!(
            numbers.expect("ready").expect("the statements run"),
            [11, 22, 32, 43]
        );
    }
}
