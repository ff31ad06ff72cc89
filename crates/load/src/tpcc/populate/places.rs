//! Warehouses and districts.

use super::rows::{WarehouseRows, path};
use crate::driver::{Decimal, Value};
use crate::random::Random;
use crate::tpcc::DISTRICTS;

/// Highest tax, in ten-thousandths.
const HIGHEST_TAX: i64 = 2_000;
/// Year-to-date balance of a warehouse, in cents: its districts' together.
const WAREHOUSE_YTD: i64 = 30_000_000;
const DISTRICT_YTD: i64 = 3_000_000;
const FIRST_FREE_ORDER: i64 = crate::tpcc::ORDERS + 1;

/// An address: street, street, city, state, zip (clause 4.3.2.7).
pub struct PostalAddress(pub [String; 5]);

impl PostalAddress {
    /// Draws one.
    pub fn draw(random: &mut Random) -> Self {
        let mut parts: [String; 5] = Default::default();
        for part in &mut parts[..3] {
            random.alphanumeric(10, 20, part);
        }
        random.alphanumeric(2, 2, &mut parts[3]);
        random.digits(4, 4, &mut parts[4]);
        parts[4].push_str("11111");
        Self(parts)
    }
}

/// Fills `warehouse` (first batch) and `district` (second).
pub fn fill(rows: &mut WarehouseRows, seed: u64, warehouse: i64) {
    let mut random = Random::derive(seed, "places", &path(&[warehouse]));
    let named = |random: &mut Random| {
        let mut name = String::new();
        random.alphanumeric(6, 10, &mut name);
        (
            name,
            PostalAddress::draw(random),
            Decimal {
                units: random.uniform(0, HIGHEST_TAX),
                scale: 4,
            },
        )
    };
    let (name, PostalAddress(address), tax) = named(&mut random);
    let [street_1, street_2, city, state, zip] = address.each_ref().map(|part| Value::Text(part));
    let ytd = Value::Decimal(Decimal::money(WAREHOUSE_YTD));
    let tax = Value::Decimal(tax);
    rows.push(
        0,
        &[
            Value::Integer(warehouse),
            Value::Text(&name),
            street_1,
            street_2,
            city,
            state,
            zip,
            tax,
            ytd,
        ],
    );
    for district in 1..=DISTRICTS {
        let (name, PostalAddress(address), tax) = named(&mut random);
        let [street_1, street_2, city, state, zip] =
            address.each_ref().map(|part| Value::Text(part));
        let row = [
            Value::Integer(district),
            Value::Integer(warehouse),
            Value::Text(&name),
            street_1,
            street_2,
            city,
            state,
            zip,
            Value::Decimal(tax),
            Value::Decimal(Decimal::money(DISTRICT_YTD)),
            Value::Integer(FIRST_FREE_ORDER),
        ];
        rows.push(1, &row);
    }
}
