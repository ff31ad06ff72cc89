//! Items and stock.

use super::rows::{ROWS_PER_UNIT, WarehouseRows, path};
use crate::driver::{Decimal, Value};
use crate::random::Random;

const ORIGINAL: &str = "ORIGINAL";
const PERCENT_ORIGINAL: i64 = 10;

/// Fills `item`.
pub fn items(rows: &mut WarehouseRows, seed: u64, first: i64) {
    let mut random = Random::derive(seed, "items", &path(&[first]));
    let (mut name, mut data) = (String::new(), String::new());
    for item in first..first + ROWS_PER_UNIT {
        name.clear();
        let image = random.uniform(1, 10_000);
        random.alphanumeric(14, 24, &mut name);
        let price = Decimal::money(random.uniform(100, 10_000));
        draw_data(&mut random, &mut data);
        let row = [
            Value::Integer(item),
            Value::Integer(image),
            Value::Text(&name),
            Value::Decimal(price),
            Value::Text(&data),
        ];
        rows.push(0, &row);
    }
}

/// Fills `stock`.
pub fn stock(rows: &mut WarehouseRows, seed: u64, warehouse: i64, first: i64) {
    const DISTRICT_INFO: usize = 24;
    let mut random = Random::derive(seed, "stock", &path(&[warehouse, first]));
    let (mut districts, mut data) = (String::new(), String::new());
    for item in first..first + ROWS_PER_UNIT {
        let quantity = random.uniform(10, 100);
        districts.clear();
        (0..10).for_each(|_| random.alphanumeric(24, 24, &mut districts));
        draw_data(&mut random, &mut data);
        let mut row = [Value::Integer(0); 17];
        row[0] = Value::Integer(item);
        row[1] = Value::Integer(warehouse);
        row[2] = Value::Integer(quantity);
        for (district, cell) in row[3..13].iter_mut().enumerate() {
            *cell =
                Value::Text(&districts[district * DISTRICT_INFO..(district + 1) * DISTRICT_INFO]);
        }
        row[16] = Value::Text(&data);
        rows.push(0, &row);
    }
}

/// `I_DATA` and `S_DATA`: 26 to 50 letters, with the word ORIGINAL at a random place in one of ten.
fn draw_data(random: &mut Random, data: &mut String) {
    data.clear();
    random.alphanumeric(26, 50, data);
    if random.percent(PERCENT_ORIGINAL) {
        let last = i64::try_from(data.len() - ORIGINAL.len()).unwrap_or_default();
        let start = usize::try_from(random.uniform(0, last)).unwrap_or_default();
        data.replace_range(start..start + ORIGINAL.len(), ORIGINAL);
    }
}
