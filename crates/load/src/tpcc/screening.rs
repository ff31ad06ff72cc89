//! Which of the twelve conditions a warehouse may violate, from one pass over each table.
//!
//! The conditions' own queries join the order lines three times, which takes a minute on an emulated processor. Here the
//! system only reads and sums, and what belongs together is compared outside of it. A condition that is not named holds;
//! of one that is, its query says what violates it. Whatever is not as the schema has it (no value, no number) names
//! every condition that looks at it.

use std::collections::HashMap;

use super::FIRST_UNDELIVERED;
use crate::driver::{Connection, Decimal, DriverError};

/// Of `conditions::ALL`, in their order: whether the warehouse may violate it.
pub type Suspicions = [bool; 12];

/// A district and the number of an order or a customer in it.
type Key = (i64, i64);

const WAREHOUSE: &str = "SELECT w_ytd FROM warehouse WHERE w_id = {w}";
const DISTRICTS: &str = "SELECT d_id, d_next_o_id, d_ytd FROM district WHERE d_w_id = {w}";
const ORDERS: &str =
    "SELECT o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = {w}";
const NEW_ORDERS: &str = "SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = {w}";
const LINES: &str = "SELECT ol_d_id, ol_o_id, COUNT(*), COUNT(ol_delivery_d), \
    SUM(CASE WHEN ol_delivery_d IS NOT NULL THEN ol_amount ELSE 0 END), COUNT(ol_amount) \
    FROM order_line WHERE ol_w_id = {w} GROUP BY ol_d_id, ol_o_id";
const CUSTOMERS: &str = "SELECT c_d_id, c_id, c_balance, c_ytd_payment, c_delivery_cnt \
    FROM customer WHERE c_w_id = {w}";
const PAID_IN: &str =
    "SELECT h_d_id, SUM(h_amount) FROM history WHERE h_w_id = {w} GROUP BY h_d_id";
const PAID_BY: &str = "SELECT h_c_d_id, h_c_id, SUM(h_amount) FROM history WHERE h_c_w_id = {w} \
    GROUP BY h_c_d_id, h_c_id";

/// Looks at one warehouse; an error is the system's, of whichever table it cannot read.
pub async fn suspected<C: Connection>(
    connection: &mut C,
    warehouse: u32,
) -> Result<Suspicions, DriverError> {
    let mut totals = WarehouseTotals::default();
    let mut whole = true;
    for (sql, take) in [
        (WAREHOUSE, WarehouseTotals::warehouse as Reader),
        (DISTRICTS, WarehouseTotals::district),
        (ORDERS, WarehouseTotals::order),
        (NEW_ORDERS, WarehouseTotals::new_order),
        (LINES, WarehouseTotals::lines),
        (CUSTOMERS, WarehouseTotals::customer),
        (PAID_IN, WarehouseTotals::paid_in),
        (PAID_BY, WarehouseTotals::paid_by),
    ] {
        let sql = sql.replace("{w}", &warehouse.to_string());
        for row in connection.text(&sql).await?.rows {
            whole &= take(&mut totals, &row).is_some();
        }
    }
    Ok(if whole {
        totals.suspected()
    } else {
        [true; 12]
    })
}

type Cells = [Option<String>];
/// Takes a row in; `None` if a cell is not what the schema has there.
type Reader = fn(&mut WarehouseTotals, &Cells) -> Option<()>;

/// A warehouse as its tables show it; amounts in cents.
#[derive(Default)]
struct WarehouseTotals {
    paid_to: Vec<i64>,
    districts: HashMap<i64, DistrictTotals>,
    orders: HashMap<Key, OrderTotals>,
    customers: HashMap<Key, CustomerTotals>,
}

#[derive(Default)]
struct DistrictTotals {
    known: Option<DistrictRow>,
    largest_order: Option<i64>,
    orders: i64,
    ordered_lines: i64,
    lines: i64,
    /// Least and largest number, and how many.
    new_orders: Option<(i64, i64, i64)>,
    deliveries: i64,
    paid: i64,
}

/// What the district's own row says.
struct DistrictRow {
    next_order: i64,
    paid_to: i64,
}

#[derive(Default)]
struct OrderTotals {
    /// Its customer, whether a carrier has it, and how many lines it asks for.
    known: Option<(i64, bool, i64)>,
    is_new: bool,
    lines: i64,
    delivered_lines: i64,
    delivered: i64,
}

#[derive(Default)]
struct CustomerTotals {
    /// Balance and payments.
    known: Option<(i64, i64)>,
    delivered: i64,
    paid: i64,
}

impl WarehouseTotals {
    fn warehouse(&mut self, row: &Cells) -> Option<()> {
        self.paid_to.push(cents(row, 0)?);
        Some(())
    }

    fn district(&mut self, row: &Cells) -> Option<()> {
        let known = DistrictRow {
            next_order: whole(row, 1)?,
            paid_to: cents(row, 2)?,
        };
        self.districts.entry(whole(row, 0)?).or_default().known = Some(known);
        Some(())
    }

    fn order(&mut self, row: &Cells) -> Option<()> {
        let (district, number, lines) = (whole(row, 0)?, whole(row, 1)?, whole(row, 4)?);
        let order = self.orders.entry((district, number)).or_default();
        order.known = Some((whole(row, 2)?, row.get(3)?.is_some(), lines));
        let district = self.districts.entry(district).or_default();
        district.largest_order = district.largest_order.max(Some(number));
        district.orders += 1;
        district.ordered_lines += lines;
        Some(())
    }

    fn new_order(&mut self, row: &Cells) -> Option<()> {
        let (district, number) = (whole(row, 0)?, whole(row, 1)?);
        self.orders.entry((district, number)).or_default().is_new = true;
        let range = &mut self.districts.entry(district).or_default().new_orders;
        let (least, largest, count) = range.unwrap_or((number, number, 0));
        *range = Some((least.min(number), largest.max(number), count + 1));
        Some(())
    }

    fn lines(&mut self, row: &Cells) -> Option<()> {
        let (district, number, lines) = (whole(row, 0)?, whole(row, 1)?, whole(row, 2)?);
        let order = self.orders.entry((district, number)).or_default();
        order.lines = lines;
        order.delivered_lines = whole(row, 3)?;
        order.delivered = cents(row, 4)?;
        self.districts.entry(district).or_default().lines += lines;
        (whole(row, 5)? == lines).then_some(()) // else some have no amount
    }

    fn customer(&mut self, row: &Cells) -> Option<()> {
        let district = whole(row, 0)?;
        let customer = self
            .customers
            .entry((district, whole(row, 1)?))
            .or_default();
        customer.known = Some((cents(row, 2)?, cents(row, 3)?));
        self.districts.entry(district).or_default().deliveries += whole(row, 4)?;
        Some(())
    }

    fn paid_in(&mut self, row: &Cells) -> Option<()> {
        self.districts.entry(whole(row, 0)?).or_default().paid = cents(row, 1)?;
        Some(())
    }

    fn paid_by(&mut self, row: &Cells) -> Option<()> {
        let key = (whole(row, 0)?, whole(row, 1)?);
        self.customers.entry(key).or_default().paid = cents(row, 2)?;
        Some(())
    }

    fn suspected(mut self) -> Suspicions {
        for ((district, _), order) in &self.orders {
            if let Some((customer, _, _)) = order.known {
                let customer = self.customers.entry((*district, customer)).or_default();
                customer.delivered += order.delivered;
            }
        }
        let mut suspected = [false; 12];
        let districts = || self.districts.values();
        let known = || districts().filter_map(|each| Some((each, each.known.as_ref()?)));
        let sum_of_districts: i64 = known().map(|(_, known)| known.paid_to).sum();
        let paid: i64 = districts().map(|each| each.paid).sum();
        suspected[0] = known().next().is_none() || self.paid_to != [sum_of_districts];
        suspected[1] = known().any(|(each, known)| {
            let last = Some(known.next_order - 1);
            let last_new = each.new_orders.map(|(_, largest, _)| largest);
            each.largest_order != last || (last_new.is_some() && last_new != last)
        });
        suspected[2] = districts().any(|each| {
            each.new_orders
                .is_some_and(|(least, largest, count)| largest - least + 1 != count)
        });
        suspected[3] = districts().any(|each| each.ordered_lines != each.lines);
        for order in self.orders.values() {
            let Some((_, has_carrier, lines)) = order.known else {
                suspected[4] |= order.is_new;
                suspected[6] |= order.lines > 0;
                continue;
            };
            suspected[4] |= has_carrier == order.is_new;
            suspected[5] |= lines != order.lines;
            let delivered = if has_carrier { order.lines } else { 0 };
            suspected[6] |= order.delivered_lines != delivered;
        }
        suspected[7] = self.paid_to != [paid];
        suspected[8] = districts().any(|each| match &each.known {
            Some(known) => known.paid_to != each.paid,
            None => each.paid != 0,
        });
        suspected[10] = districts().any(|each| {
            let old = each.orders - each.new_orders.map_or(0, |(_, _, count)| count);
            old != FIRST_UNDELIVERED - 1 + each.deliveries
        });
        for customer in self.customers.values() {
            let (balance, payments) = customer.known.unwrap_or_default();
            suspected[9] |= balance != customer.delivered - customer.paid;
            suspected[11] |= balance + payments != customer.delivered;
        }
        suspected
    }
}

/// Beyond it a number is no count and no amount, and sums of a million would not fit.
const LARGEST: u64 = 1 << 42;

fn whole(row: &Cells, column: usize) -> Option<i64> {
    let number: i64 = row.get(column)?.as_ref()?.parse().ok()?;
    (number.unsigned_abs() <= LARGEST).then_some(number)
}

/// An amount of money: with two decimals, or in cents where the system has no decimals.
fn cents(row: &Cells, column: usize) -> Option<i64> {
    let amount = Decimal::read(row.get(column)?.as_ref()?.as_bytes())?;
    let plausible = matches!(amount.scale, 0 | 2) && amount.units.unsigned_abs() <= LARGEST;
    plausible.then_some(amount.units)
}

#[cfg(test)]
mod tests;
