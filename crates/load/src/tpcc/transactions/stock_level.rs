//! Stock-Level (clause 2.8).

use super::steps::{TpccEnd, one};
use crate::driver::{AccessMode, Connection, DriverError, Value};
use crate::tpcc::statements::Statement;

/// Orders whose items are looked at.
const LAST_ORDERS: i64 = 20;

/// Runs it.
pub async fn run<C: Connection>(
    connection: &mut C,
    (warehouse, district): (i64, i64),
    threshold: i64,
) -> Result<TpccEnd, DriverError> {
    let (w, d) = (Value::Integer(warehouse), Value::Integer(district));
    connection.begin(AccessMode::ReadOnly).await?;
    let next = one(connection, Statement::PeekOrder.id(), &[w, d])
        .await?
        .integer(0)?;
    let range = [
        Value::Integer(next.saturating_sub(LAST_ORDERS)),
        Value::Integer(next),
    ];
    let values = [w, d, range[0], range[1], Value::Integer(threshold)];
    one(connection, Statement::LowStock.id(), &values)
        .await?
        .integer(0)?;
    connection.commit().await?;
    Ok(TpccEnd::default())
}
