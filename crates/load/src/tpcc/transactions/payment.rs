//! Payment (clause 2.5).

use super::steps::{TpccEnd, customer_number, one, touch};
use crate::driver::{AccessMode, Connection, Decimal, DriverError, Value};
use crate::tpcc::inputs::CustomerKey;
use crate::tpcc::statements::Statement;

/// Longest `C_DATA`.
const DATA_LENGTH: usize = 500;
/// Column of `C_CREDIT` in the paying customer's row.
const CREDIT: usize = 10;
const BAD_CREDIT: &str = "BC";

/// Runs it.
pub async fn run<C: Connection>(
    connection: &mut C,
    (warehouse, district): (i64, i64),
    (customer_place, customer): ((i64, i64), &CustomerKey),
    amount: Decimal,
    now: &str,
) -> Result<TpccEnd, DriverError> {
    let [w, d] = [warehouse, district].map(Value::Integer);
    let money = Value::Decimal(amount);
    connection.begin(AccessMode::ReadWrite).await?;
    touch(connection, Statement::PayWarehouse, &[money, w]).await?;
    let warehouse_row = one(connection, Statement::Warehouse.id(), &[w]).await?;
    touch(connection, Statement::PayDistrict, &[money, w, d]).await?;
    let district_row = one(connection, Statement::District.id(), &[w, d]).await?;
    let number = customer_number(connection, customer_place, customer).await?;
    let key = [
        Value::Integer(customer_place.0),
        Value::Integer(customer_place.1),
        Value::Integer(number),
    ];
    let [cw, cd, c] = key;
    let paying = one(connection, Statement::PayingCustomer.id(), &key).await?;
    if paying.text(CREDIT)? == BAD_CREDIT {
        let old = one(connection, Statement::CustomerData.id(), &key).await?;
        let numbers = [
            number,
            customer_place.1,
            customer_place.0,
            district,
            warehouse,
        ];
        let data = remark(numbers, amount, old.text(0)?);
        touch(
            connection,
            Statement::PayBadCustomer,
            &[money, money, Value::Text(&data), cw, cd, c],
        )
        .await?;
    } else {
        touch(
            connection,
            Statement::PayCustomer,
            &[money, money, cw, cd, c],
        )
        .await?;
    }
    let data = format!("{}    {}", warehouse_row.text(0)?, district_row.text(0)?);
    let row = [c, cd, cw, d, w, Value::Text(now), money, Value::Text(&data)];
    touch(connection, Statement::InsertHistory, &row).await?;
    connection.commit().await?;
    Ok(TpccEnd::default())
}

/// A bad customer's new remarks: the payment, then the old ones, cut at 500 characters (clause 2.5.2.2).
fn remark(numbers: [i64; 5], amount: Decimal, old: &str) -> String {
    use std::fmt::Write as _;
    let mut data = String::with_capacity(DATA_LENGTH);
    for number in numbers {
        // Writing to a String cannot fail.
        let _ = write!(data, "{number} ");
    }
    amount.write(&mut data);
    data.push('|');
    data.extend(old.chars().take(DATA_LENGTH - data.len()));
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_begin_with_the_payment_and_end_at_500_characters() {
        let data = remark([7, 2, 1, 3, 1], Decimal::money(12_345), &"x".repeat(500));
        assert!(data.starts_with("7 2 1 3 1 123.45|xxx"), "{data}");
        assert_eq!(data.len(), 500);
        assert_eq!(
            remark([7, 2, 1, 3, 1], Decimal::money(5), "short"),
            "7 2 1 3 1 0.05|short"
        );
    }
}
