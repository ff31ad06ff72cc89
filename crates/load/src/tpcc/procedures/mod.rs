//! The five transactions as stored procedures: one call each, the same work and the same inputs as statement by
//! statement.

mod install;

pub use self::install::install;

use super::inputs::{CustomerKey, Inputs, OrderLine};
use super::transactions::steps::{TpccEnd, one};
use crate::driver::dialect::Dialect;
use crate::driver::{Connection, Decimal, DriverError, StatementId, Value};

/// Separates the statements of a file.
const MARK: &str = "-- statement\n";

/// The largest number that a line's fields of six digits hold.
pub const LARGEST_WAREHOUSE: u32 = 999_999;

/// The calls, in the order of their numbers.
#[derive(Clone, Copy)]
enum Call {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Call {
    fn id(self) -> StatementId {
        StatementId(self as usize)
    }
}

/// The file of the procedures; `None` where there are none.
fn text(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Mysql => Some(include_str!("mysql.sql")),
        Dialect::Postgres => Some(include_str!("postgres.sql")),
        Dialect::Sqlite => None,
    }
}

/// The statements that create the procedures; `None` where there are none.
pub fn create(dialect: Dialect) -> Option<impl Iterator<Item = &'static str>> {
    Some(text(dialect)?.split(MARK).skip(1).map(str::trim))
}

/// The calls to prepare. They take the same values and answer with the same first columns everywhere.
pub fn calls(dialect: Dialect) -> Vec<String> {
    let calls = match dialect {
        // What a procedure gives back are parameters here, and need something in their places.
        Dialect::Postgres => [
            "CALL tpcc_new_order(?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            "CALL tpcc_payment(?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            "SELECT * FROM tpcc_order_status(?, ?, ?, ?)",
            "CALL tpcc_delivery(?, ?, ?, NULL, NULL)",
            "SELECT tpcc_stock_level(?, ?, ?)",
        ],
        Dialect::Mysql | Dialect::Sqlite => [
            "CALL tpcc_new_order(?, ?, ?, ?, ?)",
            "CALL tpcc_payment(?, ?, ?, ?, ?, ?, ?, ?)",
            "CALL tpcc_order_status(?, ?, ?, ?)",
            "CALL tpcc_delivery(?, ?, ?)",
            "CALL tpcc_stock_level(?, ?, ?)",
        ],
    };
    calls.map(Into::into).to_vec()
}

/// Runs one transaction: a call that begins and ends it. After an error the caller rolls back.
pub async fn run<C: Connection>(
    connection: &mut C,
    inputs: &Inputs,
    now: &str,
) -> Result<TpccEnd, DriverError> {
    match inputs {
        Inputs::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        } => {
            let [w, d, c] = [*warehouse, *district, *customer].map(integer);
            let lines = written(lines);
            let values = [w, d, c, Value::Text(&lines), Value::Text(now)];
            let row = one(connection, Call::NewOrder.id(), &values).await?;
            Ok(TpccEnd {
                rolled_back: row.integer(0)? != 0,
                ..TpccEnd::default()
            })
        }
        Inputs::Payment {
            warehouse,
            district,
            customer_place: (cw, cd),
            customer,
            cents,
        } => {
            let (number, name) = called(customer);
            let [w, d, cw, cd] = [*warehouse, *district, *cw, *cd].map(integer);
            let amount = Value::Decimal(Decimal::money(*cents));
            let values = [w, d, cw, cd, number, name, amount, Value::Text(now)];
            let paid = one(connection, Call::Payment.id(), &values).await;
            paid.map(|_| TpccEnd::default())
        }
        Inputs::OrderStatus {
            warehouse,
            district,
            customer,
        } => {
            let (number, name) = called(customer);
            let values = [integer(*warehouse), integer(*district), number, name];
            if connection.read(Call::OrderStatus.id(), &values).await? == 0 {
                return Err(DriverError::unexpected(format!(
                    "the last order of a customer of {warehouse}, {district} has no lines"
                )));
            }
            Ok(TpccEnd::default())
        }
        Inputs::Delivery { warehouse, carrier } => {
            let values = [integer(*warehouse), integer(*carrier), Value::Text(now)];
            let row = one(connection, Call::Delivery.id(), &values).await?;
            let count = |column| Ok(u64::try_from(row.integer(column)?).unwrap_or_default());
            Ok(TpccEnd {
                rolled_back: false,
                delivered: count(0)?,
                skipped: count(1)?,
            })
        }
        Inputs::StockLevel {
            warehouse,
            district,
            threshold,
        } => {
            let values = [*warehouse, *district, *threshold].map(integer);
            let row = one(connection, Call::StockLevel.id(), &values).await?;
            row.integer(0).map(|_| TpccEnd::default())
        }
    }
}

fn integer(value: i64) -> Value<'static> {
    Value::Integer(value)
}

/// Order lines as text of fixed width: item, supplying warehouse, quantity.
fn written(lines: &[OrderLine]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(lines.len() * 14);
    for line in lines {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{:06}{:06}{:02}",
            line.item, line.supply, line.quantity
        );
    }
    text
}

/// A customer's number or name; the other is NULL.
fn called(customer: &CustomerKey) -> (Value<'static>, Value<'_>) {
    match customer {
        CustomerKey::Number(number) => (Value::Integer(*number), Value::Null),
        CustomerKey::LastName(name) => (Value::Null, Value::Text(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_procedure_is_dropped_before_it_is_created_and_has_a_call() {
        for dialect in [Dialect::Mysql, Dialect::Postgres] {
            let statements: Vec<_> = create(dialect).expect("it has them").collect();
            let calls = calls(dialect);
            assert_eq!(statements.len(), 2 * calls.len());
            for (pair, call) in statements.chunks(2).zip(calls) {
                let name = call
                    .split('(')
                    .next()
                    .and_then(|head| head.rsplit(' ').next());
                let name = name.expect("a name");
                let (_, kind_and_name) = pair[1].split_once(' ').expect("a head");
                let (kind_and_name, _) = kind_and_name.split_once('(').expect("parameters");
                assert!(kind_and_name.ends_with(&format!(" {name}")), "{call}");
                let dropped = kind_and_name.replace(' ', " IF EXISTS ");
                assert_eq!(pair[0], format!("DROP {dropped}"));
                let head = pair[1].split("BEGIN").next().expect("a head");
                let head = head.split("LANGUAGE").next().expect("parameters");
                let parameters = head.matches(" p_").count() + head.matches("(p_").count();
                assert_eq!(parameters, call.matches('?').count(), "{head}");
                let given_back = head.matches("INOUT").count();
                assert_eq!(given_back, call.matches("NULL").count(), "{head}");
            }
        }
        assert!(create(Dialect::Sqlite).is_none());
    }

    #[test]
    fn lines_have_a_fixed_width() {
        let line = |item, supply, quantity| OrderLine {
            item,
            supply,
            quantity,
        };
        assert_eq!(
            written(&[line(7, 12, 5), line(100_001, 1, 10)]),
            "0000070000120510000100000110"
        );
    }
}
