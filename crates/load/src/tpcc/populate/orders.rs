//! Orders, new orders and order lines.

use super::rows::{WarehouseRows, path};
use crate::driver::{Decimal, Value};
use crate::random::Random;
use crate::tpcc::{FIRST_UNDELIVERED, ITEMS, ORDERS};

/// Quantity of every line loaded.
const QUANTITY: i64 = 5;
/// Highest amount of an undelivered line, in cents; delivered ones cost nothing.
const HIGHEST_AMOUNT: i64 = 999_999;

/// Fills `orders` (first batch), `new_order` (second) and `order_line` (third).
pub fn fill(rows: &mut WarehouseRows, seed: u64, (warehouse, district): (i64, i64), time: &str) {
    let mut random = Random::derive(seed, "orders", &path(&[warehouse, district]));
    let mut customers: Vec<i64> = (1..=ORDERS).collect();
    random.shuffle(&mut customers);
    let mut information = String::new();
    let place = [Value::Integer(district), Value::Integer(warehouse)];
    for (order, customer) in (1..).zip(customers) {
        let delivered = order < FIRST_UNDELIVERED;
        let carrier = if delivered {
            Value::Integer(random.uniform(1, 10))
        } else {
            Value::Null
        };
        let lines = random.uniform(5, 15);
        let [d, w] = place;
        let id = Value::Integer(order);
        let (c, count, all_local) = (
            Value::Integer(customer),
            Value::Integer(lines),
            Value::Integer(1),
        );
        rows.push(
            0,
            &[id, d, w, c, Value::Text(time), carrier, count, all_local],
        );
        if !delivered {
            rows.push(1, &[id, d, w]);
        }
        for number in 1..=lines {
            information.clear();
            let item = random.uniform(1, ITEMS);
            random.alphanumeric(24, 24, &mut information);
            let cents = if delivered {
                0
            } else {
                random.uniform(1, HIGHEST_AMOUNT)
            };
            let row = [
                id,
                d,
                w,
                Value::Integer(number),
                Value::Integer(item),
                w,
                if delivered {
                    Value::Text(time)
                } else {
                    Value::Null
                },
                Value::Integer(QUANTITY),
                Value::Decimal(Decimal::money(cents)),
                Value::Text(&information),
            ];
            rows.push(2, &row);
        }
    }
}
