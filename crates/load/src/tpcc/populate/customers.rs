//! Customers and their history.

use super::places::PostalAddress;
use super::rows::{WarehouseRows, path};
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

/// What is drawn of one customer; the texts are reused from one to the next.
#[derive(Default)]
struct Customer {
    first: String,
    last: String,
    phone: String,
    data: String,
    history: String,
    credit: &'static str,
    discount: i64,
}

impl Customer {
    /// Draws the next customer, number `number` of the district; the order of draws is part of the data's definition.
    fn draw(&mut self, random: &mut Random, number: i64, constant: i64) -> PostalAddress {
        for text in [
            &mut self.first,
            &mut self.last,
            &mut self.phone,
            &mut self.data,
            &mut self.history,
        ] {
            text.clear();
        }
        let name = if number <= NAMES {
            number - 1
        } else {
            random.nurand(A_LAST_NAME, constant, 0, NAMES - 1)
        };
        names::last_name(name, &mut self.last);
        random.alphanumeric(8, 16, &mut self.first);
        let address = PostalAddress::draw(random);
        random.digits(16, 16, &mut self.phone);
        self.credit = if random.percent(PERCENT_BAD_CREDIT) {
            "BC"
        } else {
            "GC"
        };
        self.discount = random.uniform(0, HIGHEST_DISCOUNT);
        random.alphanumeric(300, 500, &mut self.data);
        random.alphanumeric(12, 24, &mut self.history);
        address
    }
}

/// Fills `customer` (first batch) and `history` (second).
pub fn fill(rows: &mut WarehouseRows, seed: u64, (warehouse, district): (i64, i64), time: &str) {
    let mut random = Random::derive(seed, "customers", &path(&[warehouse, district]));
    let constant = last_name_load(seed);
    let mut drawn = Customer::default();
    let (d, w) = (Value::Integer(district), Value::Integer(warehouse));
    for number in 1..=CUSTOMERS {
        let PostalAddress(address) = drawn.draw(&mut random, number, constant);
        let [street_1, street_2, city, state, zip] =
            address.each_ref().map(|part| Value::Text(part));
        let row = [
            Value::Integer(number),
            d,
            w,
            Value::Text(&drawn.first),
            Value::Text("OE"),
            Value::Text(&drawn.last),
            street_1,
            street_2,
            city,
            state,
            zip,
            Value::Text(&drawn.phone),
            Value::Text(time),
            Value::Text(drawn.credit),
            Value::Decimal(CREDIT_LIMIT),
            Value::Decimal(Decimal {
                units: drawn.discount,
                scale: 4,
            }),
            Value::Decimal(FIRST_BALANCE),
            Value::Decimal(FIRST_PAYMENT),
            Value::Integer(1),
            Value::Integer(0),
            Value::Text(&drawn.data),
        ];
        rows.push(0, &row);
        let paid = [
            Value::Text(time),
            Value::Decimal(FIRST_PAYMENT),
            Value::Text(&drawn.history),
        ];
        let [when, amount, text] = paid;
        rows.push(1, &[Value::Integer(number), d, w, d, w, when, amount, text]);
    }
}
