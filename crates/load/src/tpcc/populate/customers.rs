//! Customers and their history.

use super::places::Address;
use super::{Rows, path};
use crate::driver::{Decimal, Value};
use crate::random::Random;
use crate::tpcc::constants::{A_LAST_NAME, last_name_load};
use crate::tpcc::{CUSTOMERS, names};

const PERCENT_BAD_CREDIT: i64 = 10;
const CREDIT_LIMIT: Decimal = Decimal::money(5_000_000);
/// Every customer has paid ten and owes nothing yet.
const FIRST_PAYMENT: Decimal = Decimal::money(1_000);
const FIRST_BALANCE: Decimal = Decimal::money(-1_000);
/// Highest discount, in ten-thousandths.
const HIGHEST_DISCOUNT: i64 = 5_000;
/// Last names in all; the first thousand customers of a district have each of them once.
const NAMES: i64 = 1_000;

/// Fills `customer` (first batch) and `history` (second).
pub fn fill(rows: &mut Rows, seed: u64, (warehouse, district): (i64, i64), time: &str) {
    let mut random = Random::derive(seed, "customers", &path(&[warehouse, district]));
    let constant = last_name_load(seed);
    let [mut first, mut last, mut phone, mut data, mut history] = <[String; 5]>::default();
    for customer in 1..=CUSTOMERS {
        [&mut first, &mut last, &mut phone, &mut data, &mut history]
            .into_iter()
            .for_each(String::clear);
        let name = if customer <= NAMES {
            customer - 1
        } else {
            random.nurand(A_LAST_NAME, constant, 0, NAMES - 1)
        };
        names::last_name(name, &mut last);
        random.alphanumeric(8, 16, &mut first);
        let Address(address) = Address::draw(&mut random);
        random.digits(16, 16, &mut phone);
        let credit = if random.percent(PERCENT_BAD_CREDIT) {
            "BC"
        } else {
            "GC"
        };
        let discount = Decimal {
            units: random.uniform(0, HIGHEST_DISCOUNT),
            scale: 4,
        };
        random.alphanumeric(300, 500, &mut data);
        random.alphanumeric(12, 24, &mut history);
        let [street_1, street_2, city, state, zip] =
            address.each_ref().map(|part| Value::Text(part));
        let place = [Value::Integer(district), Value::Integer(warehouse)];
        let row = [
            Value::Integer(customer),
            place[0],
            place[1],
            Value::Text(&first),
            Value::Text("OE"),
            Value::Text(&last),
            street_1,
            street_2,
            city,
            state,
            zip,
            Value::Text(&phone),
            Value::Text(time),
            Value::Text(credit),
            Value::Decimal(CREDIT_LIMIT),
            Value::Decimal(discount),
            Value::Decimal(FIRST_BALANCE),
            Value::Decimal(FIRST_PAYMENT),
            Value::Integer(1),
            Value::Integer(0),
            Value::Text(&data),
        ];
        rows.push(0, &row);
        let (amount, when) = (Value::Decimal(FIRST_PAYMENT), Value::Text(time));
        let [d, w] = place;
        rows.push(
            1,
            &[
                Value::Integer(customer),
                d,
                w,
                d,
                w,
                when,
                amount,
                Value::Text(&history),
            ],
        );
    }
}
