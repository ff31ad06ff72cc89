//! The five transactions (clauses 2.4 to 2.8), written once for all systems.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use super::inputs::{Customer, Inputs};
use super::statements::Statement;
use crate::driver::{Connection, DriverError, Row, StatementId, Value};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Rolled back by the workload's own rule.
    pub rolled_back: bool,
    /// Orders delivered.
    pub delivered: u64,
    /// Districts without an order to deliver.
    pub skipped: u64,
}

/// Runs one transaction from `BEGIN` to `COMMIT`. After an error the caller rolls back.
pub async fn run<C: Connection>(connection: &mut C, inputs: &Inputs, now: &str) -> Result<Ended, DriverError> {
    match inputs {
        Inputs::NewOrder { .. } => new_order::run(connection, inputs, now).await,
        Inputs::Payment { .. } => payment::run(connection, inputs, now).await,
        Inputs::OrderStatus { warehouse, district, customer } => {
            order_status::run(connection, (*warehouse, *district), customer).await
        }
        Inputs::Delivery { warehouse, carrier } => delivery::run(connection, *warehouse, *carrier, now).await,
        Inputs::StockLevel { warehouse, district, threshold } => {
            stock_level::run(connection, (*warehouse, *district), *threshold).await
        }
    }
}

/// Runs a query that must give exactly one row.
async fn one<C: Connection>(connection: &mut C, statement: StatementId, values: &[Value<'_>]) -> Result<Row, DriverError> {
    let mut rows = connection.query(statement, values).await?;
    match (rows.pop(), rows.len()) {
        (Some(row), 0) => Ok(row),
        (last, others) => {
            let found = others + usize::from(last.is_some());
            Err(DriverError::unexpected(format!("statement {} gave {found} rows instead of one", statement.0)))
        }
    }
}

/// Runs a statement that must touch exactly one row.
async fn touch<C: Connection>(connection: &mut C, statement: Statement, values: &[Value<'_>]) -> Result<(), DriverError> {
    match connection.execute(statement.id(), values).await? {
        1 => Ok(()),
        touched => Err(DriverError::unexpected(format!("{statement:?} touched {touched} rows instead of one"))),
    }
}

/// A customer's number. Of those that share a last name it is the one in the middle by first name, rounded up
/// (clause 2.5.2.2).
async fn customer_number<C: Connection>(
    connection: &mut C,
    (warehouse, district): (i64, i64),
    customer: &Customer,
) -> Result<i64, DriverError> {
    match customer {
        Customer::Number(number) => Ok(*number),
        Customer::LastName(name) => {
            let values = [Value::Integer(warehouse), Value::Integer(district), Value::Text(name)];
            let rows = connection.query(Statement::CustomersByName.id(), &values).await?;
            let middle = rows.get(rows.len().div_ceil(2).wrapping_sub(1));
            middle.ok_or_else(|| DriverError::unexpected(format!("no customer is called {name}")))?.integer(0)
        }
    }
}
