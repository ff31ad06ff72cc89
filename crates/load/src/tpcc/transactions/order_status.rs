//! Order-Status (clause 2.6).

use super::steps::{TpccEnd, customer_number, one};
use crate::driver::{AccessMode, Connection, DriverError, Value};
use crate::tpcc::inputs::CustomerKey;
use crate::tpcc::statements::Statement;

/// Runs it.
pub async fn run<C: Connection>(
    connection: &mut C,
    place: (i64, i64),
    customer: &CustomerKey,
) -> Result<TpccEnd, DriverError> {
    connection.begin(AccessMode::ReadOnly).await?;
    let number = customer_number(connection, place, customer).await?;
    let (w, d) = (Value::Integer(place.0), Value::Integer(place.1));
    let key = [w, d, Value::Integer(number)];
    one(connection, Statement::Customer.id(), &key)
        .await?
        .integer(3)?;
    let order = one(connection, Statement::LastOrder.id(), &key)
        .await?
        .integer(0)?;
    let lines = connection
        .query(Statement::OrderLines.id(), &[w, d, Value::Integer(order)])
        .await?;
    if lines.is_empty() {
        return Err(DriverError::unexpected(format!(
            "order {order} of {place:?} has no lines"
        )));
    }
    connection.commit().await?;
    Ok(TpccEnd::default())
}
