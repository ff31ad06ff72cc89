//! New-Order (clause 2.4).

use super::steps::{TpccEnd, one, touch};
use crate::driver::{AccessMode, Connection, Decimal, DriverError, Value};
use crate::tpcc::inputs::OrderLine;
use crate::tpcc::statements::{Statement, stock_of};

/// Below this distance from the quantity ordered, stock is filled up.
const LEAST_LEFT: i64 = 10;
const FILLED_UP: i64 = 91;

/// Where an order belongs.
#[derive(Clone, Copy)]
struct Order {
    warehouse: i64,
    district: i64,
    number: i64,
}

/// Runs it. An unused item rolls it back, after the work on the items before.
pub async fn run<C: Connection>(
    connection: &mut C,
    (warehouse, district, customer): (i64, i64, i64),
    lines: &[OrderLine],
    now: &str,
) -> Result<TpccEnd, DriverError> {
    let [w, d, c] = [warehouse, district, customer].map(Value::Integer);
    connection.begin(AccessMode::ReadWrite).await?;
    one(connection, Statement::WarehouseTax.id(), &[w])
        .await?
        .integer(0)?;
    let row = one(connection, Statement::NextOrder.id(), &[w, d]).await?;
    row.integer(0)?;
    let order = Order {
        warehouse,
        district,
        number: row.integer(1)?,
    };
    touch(connection, Statement::TakeOrder, &[w, d]).await?;
    one(connection, Statement::Discount.id(), &[w, d, c])
        .await?
        .integer(0)?;
    let o = Value::Integer(order.number);
    let all_local = lines.iter().all(|line| line.supply == order.warehouse);
    let count = Value::Integer(i64::try_from(lines.len()).unwrap_or_default());
    let row = [
        w,
        d,
        o,
        c,
        Value::Text(now),
        count,
        Value::Integer(all_local.into()),
    ];
    touch(connection, Statement::InsertOrder, &row).await?;
    touch(connection, Statement::InsertNewOrder, &[w, d, o]).await?;
    for (number, line) in (1..).zip(lines) {
        if !add_line(connection, order, number, line).await? {
            connection.rollback().await?;
            return Ok(TpccEnd {
                rolled_back: true,
                ..TpccEnd::default()
            });
        }
    }
    connection.commit().await?;
    Ok(TpccEnd::default())
}

/// Adds one line; `false` if the item is not used.
async fn add_line<C: Connection>(
    connection: &mut C,
    order: Order,
    number: i64,
    line: &OrderLine,
) -> Result<bool, DriverError> {
    let item = Value::Integer(line.item);
    let Some(row_of_item) = connection
        .query(Statement::Item.id(), &[item])
        .await?
        .into_iter()
        .next()
    else {
        return Ok(false);
    };
    let price = row_of_item.integer(0)?;
    let supply = Value::Integer(line.supply);
    let stock = one(connection, stock_of(order.district), &[supply, item]).await?;
    let quantity = left(stock.integer(0)?, line.quantity);
    let remote = i64::from(line.supply != order.warehouse);
    let ordered = Value::Integer(line.quantity);
    let update = [
        Value::Integer(quantity),
        ordered,
        Value::Integer(remote),
        supply,
        item,
    ];
    touch(connection, Statement::UpdateStock, &update).await?;
    let row = [
        Value::Integer(order.warehouse),
        Value::Integer(order.district),
        Value::Integer(order.number),
        Value::Integer(number),
        item,
        supply,
        ordered,
        Value::Decimal(Decimal::money(price.saturating_mul(line.quantity))),
        Value::Text(stock.text(2)?),
    ];
    touch(connection, Statement::InsertOrderLine, &row).await?;
    Ok(true)
}

/// What is left in stock: filled up by 91 when fewer than ten would be (clause 2.4.2.2).
fn left(stock: i64, ordered: i64) -> i64 {
    if stock >= ordered + LEAST_LEFT {
        stock - ordered
    } else {
        stock.saturating_sub(ordered) + FILLED_UP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_when_fewer_than_ten_would_be_left() {
        assert_eq!(left(20, 10), 10);
        assert_eq!(left(19, 10), 100);
        assert_eq!(left(10, 10), 91);
        assert!(left(i64::MIN, 10) < 0, "whatever a server says");
        for (stock, ordered) in
            (10..=100).flat_map(|stock| (1..=10).map(move |ordered| (stock, ordered)))
        {
            assert!(
                (10..=100).contains(&left(stock, ordered)),
                "it stays within its first range"
            );
        }
    }
}
