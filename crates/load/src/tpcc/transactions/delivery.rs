//! Delivery (clause 2.7), run in the foreground: the specification queues it, and its latency here is that of the work.

use super::steps::{TpccEnd, one, touch};
use crate::driver::{AccessMode, Connection, Decimal, DriverError, Value};
use crate::tpcc::DISTRICTS;
use crate::tpcc::statements::Statement;

/// Runs it: the oldest undelivered order of each district, in one transaction. Districts without one are skipped.
pub async fn run<C: Connection>(
    connection: &mut C,
    warehouse: i64,
    carrier: i64,
    now: &str,
) -> Result<TpccEnd, DriverError> {
    let mut ended = TpccEnd::default();
    connection.begin(AccessMode::ReadWrite).await?;
    for district in 1..=DISTRICTS {
        if deliver(connection, (warehouse, district), carrier, now).await? {
            ended.delivered += 1;
        } else {
            ended.skipped += 1;
        }
    }
    connection.commit().await?;
    Ok(ended)
}

async fn deliver<C: Connection>(
    connection: &mut C,
    (warehouse, district): (i64, i64),
    carrier: i64,
    now: &str,
) -> Result<bool, DriverError> {
    let (w, d) = (Value::Integer(warehouse), Value::Integer(district));
    let oldest = connection
        .query(Statement::OldestNewOrder.id(), &[w, d])
        .await?;
    let Some(row) = oldest.first() else {
        return Ok(false);
    };
    let o = Value::Integer(row.integer(0)?);
    touch(connection, Statement::DeleteNewOrder, &[w, d, o]).await?;
    // Before it is read: MariaDB and MySQL read as of the first read of this transaction, but what it has changed itself;
    // the order may have come since.
    touch(
        connection,
        Statement::CarryOrder,
        &[Value::Integer(carrier), w, d, o],
    )
    .await?;
    let customer = one(connection, Statement::OrderCustomer.id(), &[w, d, o])
        .await?
        .integer(0)?;
    connection
        .execute(Statement::DeliverLines.id(), &[Value::Text(now), w, d, o])
        .await?;
    let cents = one(connection, Statement::SumLines.id(), &[w, d, o])
        .await?
        .integer(0)?;
    let bill = [
        Value::Decimal(Decimal::money(cents)),
        w,
        d,
        Value::Integer(customer),
    ];
    touch(connection, Statement::BillCustomer, &bill).await?;
    Ok(true)
}
