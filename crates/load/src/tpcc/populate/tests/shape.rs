//! How rows belong together: orders and their lines, units and tables.

use super::*;
use crate::driver::dialect::Type;
use crate::tests::chance::{assert_uniform, tally};
use crate::tpcc::schema::TABLES;

fn orders() -> [UnitRows; 3] {
    let tables = generate(UNITS[4], SEED);
    tables.try_into().unwrap_or_else(|_| panic!("three tables"))
}

#[test]
fn each_customer_ordered_once_in_an_order_of_no_pattern() {
    let [orders, ..] = orders();
    assert_eq!(orders.integers("o_id"), (1..=3_000).collect::<Vec<_>>());
    let customers = orders.integers("o_c_id");
    let mut sorted = customers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=3_000).collect::<Vec<_>>(), "a permutation");
    let rising = customers
        .windows(2)
        .filter(|pair| pair[0] < pair[1])
        .count();
    // Of a random permutation's 2,999 neighbours half rise, with a variance of n / 12 = 250.
    assert!(rising.abs_diff(1_500) < 64, "{rising} rise");
    let kept = (1..)
        .zip(&customers)
        .filter(|(order, customer)| order == *customer)
        .count();
    assert!(
        kept < 8,
        "a random permutation keeps about one in its place: {kept}"
    );
}

#[test]
fn the_last_900_orders_are_new_and_only_they() {
    let [orders, new_orders, lines] = orders();
    assert_eq!(
        new_orders.integers("no_o_id"),
        (2_101..=3_000).collect::<Vec<_>>()
    );
    assert!(
        new_orders
            .integers("no_d_id")
            .iter()
            .all(|district| *district == 3)
    );
    assert!(
        new_orders
            .integers("no_w_id")
            .iter()
            .all(|warehouse| *warehouse == 2)
    );
    let undelivered = |id: i64| id >= 2_101;
    for (id, carrier) in orders
        .integers("o_id")
        .into_iter()
        .zip(orders.column("o_carrier_id"))
    {
        assert_eq!(*carrier == OwnedCell::Null, undelivered(id), "order {id}");
    }
    let carriers = orders
        .column("o_carrier_id")
        .filter(|carrier| **carrier != OwnedCell::Null);
    assert_uniform(
        "carriers",
        &tally("carriers", (1, 10), carriers.map(OwnedCell::integer)),
    );
    let entry = orders.texts("o_entry_d")[0];
    let amounts = lines.units("ol_amount", 2);
    let delivered = lines.column("ol_delivery_d");
    for ((id, cents), time) in lines
        .integers("ol_o_id")
        .into_iter()
        .zip(&amounts)
        .zip(delivered)
    {
        if undelivered(id) {
            assert_eq!(*time, OwnedCell::Null);
            assert!((1..=999_999).contains(cents), "{cents}");
        } else {
            assert_eq!(
                (time.text(), *cents),
                (entry, 0),
                "delivered at load, for nothing"
            );
        }
    }
    let tenths = amounts
        .iter()
        .filter(|cents| **cents > 0)
        .map(|cents| (cents - 1) * 10 / 999_999);
    assert_uniform("amounts", &tally("amounts", (0, 9), tenths));
}

#[test]
fn an_order_has_the_lines_it_says_numbered_from_one() {
    let [orders, _, lines] = orders();
    let keys: Vec<(i64, i64)> = lines
        .integers("ol_o_id")
        .into_iter()
        .zip(lines.integers("ol_number"))
        .collect();
    let counts = orders.integers("o_ol_cnt");
    let expected: Vec<(i64, i64)> = (1..)
        .zip(&counts)
        .flat_map(|(order, count)| (1..=*count).map(move |number| (order, number)))
        .collect();
    assert_eq!(keys, expected);
    assert_uniform("o_ol_cnt", &tally("o_ol_cnt", (5, 15), counts));
    assert!(
        orders
            .integers("o_all_local")
            .iter()
            .all(|local| *local == 1)
    );
}

#[test]
fn lines_take_any_item_from_the_own_warehouse_five_at_a_time() {
    let [_, _, lines] = orders();
    assert!(
        lines
            .integers("ol_supply_w_id")
            .iter()
            .all(|supply| *supply == 2)
    );
    assert!(
        lines
            .integers("ol_quantity")
            .iter()
            .all(|quantity| *quantity == 5)
    );
    let items = lines
        .integers("ol_i_id")
        .into_iter()
        .map(|item| (item - 1) / 5_000);
    assert_uniform("ol_i_id", &tally("ol_i_id", (0, 19), items));
    let information = lines.texts("ol_dist_info");
    assert!(information.iter().all(|text| text.len() == 24));
    let distinct: BTreeSet<&str> = information.iter().copied().collect();
    assert_eq!(distinct.len(), information.len());
}

#[test]
fn every_value_fits_the_column_it_is_meant_for() {
    for unit in UNITS {
        for generated in generate(unit, SEED) {
            for (position, column) in generated.table.columns.iter().enumerate() {
                for row in &generated.rows {
                    assert_fits_column(column.name, column.kind, column.nullable, &row[position]);
                }
            }
        }
    }
}

fn assert_fits_column(name: &str, kind: Type, nullable: bool, value: &OwnedCell) {
    let fits = match (kind, value) {
        (_, OwnedCell::Null) => nullable,
        (Type::Integer, OwnedCell::Integer(integer)) => i32::try_from(*integer).is_ok(),
        (Type::Long, OwnedCell::Integer(_)) => true,
        (Type::Decimal { digits, scale }, OwnedCell::Decimal(units, places)) => {
            *places == scale && units.abs() < 10_i64.pow(digits.into())
        }
        (Type::Fixed(length), OwnedCell::Text(text)) => text.len() == usize::from(length),
        (Type::Variable(length), OwnedCell::Text(text)) => text.len() <= usize::from(length),
        (Type::Time, OwnedCell::Text(text)) => text.len() == "2026-01-31 23:59:59".len(),
        _ => false,
    };
    assert!(fits, "{name}: {value:?} is no {kind:?}");
}

#[test]
fn units_fill_every_table_in_the_order_of_its_primary_key() {
    let units = Unit::all(2);
    let mut tables = BTreeSet::new();
    for table in TABLES {
        let mut of_table: Vec<String> = Vec::new();
        for unit in &units {
            let selections = unit.selections();
            of_table.extend(
                selections
                    .into_iter()
                    .filter(|(one, _)| one.name == table.name)
                    .map(|(_, sql)| sql),
            );
        }
        assert!(!of_table.is_empty(), "{} is never filled", table.name);
        let distinct: BTreeSet<&String> = of_table.iter().collect();
        assert_eq!(
            distinct.len(),
            of_table.len(),
            "{}: two units fill the same rows",
            table.name
        );
        tables.insert((table.name, of_table.len()));
    }
    let expected = [
        ("customer", 20),
        ("district", 2),
        ("history", 20),
        ("item", 10),
        ("new_order", 20),
        ("order_line", 20),
        ("orders", 20),
        ("stock", 20),
        ("warehouse", 2),
    ];
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), expected);
    let weight: f64 = units.iter().map(|unit| unit.weight()).sum();
    assert!(
        (weight - 2.0).abs() < 1e-9,
        "progress counts in warehouses: {weight}"
    );
}

#[test]
fn the_time_of_loading_comes_from_the_seed() {
    assert_eq!(load_time(0), "2026-01-01 00:00:00");
    assert_eq!(load_time(86_399), "2026-01-01 23:59:59");
    assert_eq!(load_time(31 * 86_400), "2026-02-01 00:00:00");
    assert_eq!(load_time(365 * 86_400), load_time(0), "within one year");
    assert_eq!(load_time(u64::MAX).len(), 19);
}
