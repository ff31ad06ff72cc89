//! What is drawn follows the specification's distributions, exactly those, as far as a million draws can tell.

use super::*;
use crate::tests::chance::{assert_fits, assert_share, assert_uniform, tally};
use crate::tpcc::constants::allowed;

const WAREHOUSES: i64 = 5;
const DECKS: usize = 300;

/// Inputs of whole decks, all from one terminal.
fn inputs(seed: u64, decks: usize, all_warehouses: bool) -> Vec<Inputs> {
    let site = TerminalConstants {
        all_warehouses,
        ..site(WAREHOUSES)
    };
    let mut terminal = Terminal::new(site, seed, 2);
    (0..decks * 100).map(|_| terminal.next()).collect()
}

/// Warehouse, customer and lines of every New-Order.
fn orders(inputs: &[Inputs]) -> Vec<(i64, i64, &[OrderLine])> {
    let mut orders = Vec::new();
    for one in inputs {
        if let Inputs::NewOrder {
            warehouse,
            customer,
            lines,
            ..
        } = one
        {
            orders.push((*warehouse, *customer, lines.as_slice()));
        }
    }
    orders
}

/// The closed form of NURand(A, x, y) for A = 2^k - 1: OR with a uniform number of k bits sets each clear one of the
/// low k bits with probability one half.
#[allow(clippy::cast_precision_loss)]
fn nurand(a: i64, c: i64, low: i64, high: i64) -> Vec<f64> {
    let index = |value: i64| usize::try_from(value).expect("not negative");
    let values = high - low + 1;
    let mut of_or = vec![0.0; (index(high.max(a)) + 1).next_power_of_two()];
    (low..=high).for_each(|value| of_or[index(value)] = 1.0 / values as f64);
    for bit in 0..(a + 1).ilog2() {
        for number in (0..of_or.len()).filter(|number| number >> bit & 1 == 0) {
            let half = of_or[number] / 2.0;
            of_or[number] = half;
            of_or[number | 1 << bit] += half;
        }
    }
    let mut shifted = vec![0.0; index(values)];
    for (number, probability) in (0..).zip(of_or) {
        shifted[index((number + c) % values)] += probability;
    }
    shifted
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn the_closed_form_is_what_counting_every_pair_gives() {
    for (a, c, low, high) in [(7, 3, 0, 20), (255, 91, 0, 999), (15, 0, 1, 12)] {
        let values = high - low + 1;
        let mut pairs = vec![0_u64; usize::try_from(values).expect("positive")];
        for u in 0..=a {
            for v in low..=high {
                pairs[usize::try_from(((u | v) + c) % values).expect("positive")] += 1;
            }
        }
        let all = ((a + 1) * values) as f64;
        for (closed, counted) in nurand(a, c, low, high).iter().zip(pairs) {
            assert!(
                (closed - counted as f64 / all).abs() < 1e-12,
                "NURand({a}, {low}, {high})"
            );
        }
    }
}

#[test]
fn customers_items_and_last_names_are_nurand_with_the_runs_constants() {
    let drawn = inputs(21, 2 * DECKS, false);
    let constants = site(WAREHOUSES).constants;
    let orders = orders(&drawn);
    let bins = |probabilities: &[f64], width: usize| -> Vec<f64> {
        probabilities
            .chunks(width)
            .map(|bin| bin.iter().sum())
            .collect()
    };
    let counted = |counts: &[u64], width: usize| -> Vec<u64> {
        counts.chunks(width).map(|bin| bin.iter().sum()).collect()
    };
    let customers = tally(
        "customers",
        (1, CUSTOMERS),
        orders.iter().map(|order| order.1),
    );
    let expected = nurand(A_CUSTOMER, constants.customer, 1, CUSTOMERS);
    assert_fits("customers", &counted(&customers, 20), &bins(&expected, 20));

    let lines = orders
        .iter()
        .flat_map(|order| order.2)
        .map(|line| line.item);
    let items = tally("items", (1, ITEMS), lines.filter(|item| *item <= ITEMS));
    let expected = nurand(A_ITEM, constants.item, 1, ITEMS);
    assert_fits("items", &counted(&items, 250), &bins(&expected, 250));

    let number_of: BTreeMap<String, i64> = (0..1_000)
        .map(|number| {
            let mut name = String::new();
            last_name(number, &mut name);
            (name, number)
        })
        .collect();
    let names = drawn.iter().filter_map(|inputs| match inputs {
        Inputs::Payment {
            customer: CustomerKey::LastName(name),
            ..
        }
        | Inputs::OrderStatus {
            customer: CustomerKey::LastName(name),
            ..
        } => Some(number_of[name]),
        _ => None,
    });
    let expected = nurand(A_LAST_NAME, constants.last_name, 0, 999);
    assert_fits(
        "names",
        &counted(&tally("names", (0, 999), names), 8),
        &bins(&expected, 8),
    );
}

#[test]
fn customers_by_number_are_nurand_in_payments_too() {
    let drawn = inputs(22, DECKS, false);
    let numbers = drawn.iter().filter_map(|inputs| match inputs {
        Inputs::Payment {
            customer: CustomerKey::Number(number),
            ..
        } => Some(*number),
        _ => None,
    });
    let counts = tally("customers", (1, CUSTOMERS), numbers);
    let expected = nurand(
        A_CUSTOMER,
        site(WAREHOUSES).constants.customer,
        1,
        CUSTOMERS,
    );
    let bin = |position: usize| position * 100..(position + 1) * 100;
    let counted: Vec<u64> = (0..30)
        .map(|position| counts[bin(position)].iter().sum())
        .collect();
    let expected: Vec<f64> = (0..30)
        .map(|position| expected[bin(position)].iter().sum())
        .collect();
    assert_fits("customers", &counted, &expected);
}

#[test]
fn every_deck_is_whole_and_well_shuffled() {
    let drawn = inputs(23, DECKS, false);
    let mut at_position = [0_u64; 100];
    for deck in drawn.chunks(100) {
        let cards = |kind| deck.iter().filter(|inputs| inputs.kind() == kind).count();
        assert_eq!(Kind::ALL.map(cards), [45, 43, 4, 4, 4]);
        for (count, inputs) in at_position.iter_mut().zip(deck) {
            *count += u64::from(inputs.kind() == Kind::NewOrder);
        }
    }
    for (position, count) in at_position.into_iter().enumerate() {
        assert_share(
            &format!("New-Order at {position}"),
            count,
            DECKS as u64,
            0.45,
        );
    }
}

#[test]
fn lines_are_five_to_fifteen_and_quantities_one_to_ten_all_alike() {
    let drawn = inputs(24, DECKS, false);
    let orders = orders(&drawn);
    let lines = |order: &(i64, i64, &[OrderLine])| i64::try_from(order.2.len()).expect("few");
    assert_uniform("lines", &tally("lines", (5, 15), orders.iter().map(lines)));
    let quantities = orders
        .iter()
        .flat_map(|order| order.2)
        .map(|line| line.quantity);
    assert_uniform("quantities", &tally("quantities", (1, 10), quantities));
}

#[test]
fn one_line_of_a_hundred_is_remote_from_any_other_warehouse_alike() {
    let drawn = inputs(25, 2 * DECKS, true);
    let orders = orders(&drawn);
    let lines: Vec<(i64, i64)> = orders
        .iter()
        .flat_map(|order| order.2.iter().map(|line| (order.0, line.supply)))
        .collect();
    let remote: Vec<i64> = lines
        .iter()
        .filter(|(home, supply)| home != supply)
        .map(|(home, supply)| (supply - home).rem_euclid(WAREHOUSES))
        .collect();
    assert_share(
        "remote lines",
        remote.len() as u64,
        lines.len() as u64,
        0.01,
    );
    assert_uniform("distance", &tally("distance", (1, WAREHOUSES - 1), remote));
}

#[test]
fn one_order_of_a_hundred_is_to_be_rolled_back_by_its_last_item() {
    let drawn = inputs(26, DECKS, false);
    let orders = orders(&drawn);
    let unused = |line: &OrderLine| line.item == ITEMS + 1;
    let rolled_back = orders
        .iter()
        .filter(|order| order.2.iter().any(unused))
        .count();
    assert_share("rollbacks", rolled_back as u64, orders.len() as u64, 0.01);
    assert!(
        orders.iter().all(|order| order
            .2
            .iter()
            .rev()
            .skip(1)
            .all(|line| (1..=ITEMS).contains(&line.item))),
        "only the last item is ever unused (clause 2.4.1.5)"
    );
}

#[test]
fn payments_are_15_percent_remote_60_percent_by_name_and_1_to_5000_in_amount() {
    let drawn = inputs(27, DECKS, true);
    let (mut remote, mut named, mut cents_bins) = (Vec::new(), 0, Vec::new());
    let mut payments = 0;
    for inputs in &drawn {
        let Inputs::Payment {
            warehouse,
            district,
            customer_place,
            customer,
            cents,
        } = inputs
        else {
            continue;
        };
        payments += 1;
        named += u64::from(matches!(customer, CustomerKey::LastName(_)));
        assert!((1..=DISTRICTS).contains(district));
        cents_bins.push((cents - 100) * 20 / 499_901);
        if customer_place.0 == *warehouse {
            assert_eq!(
                customer_place.1, *district,
                "a home customer pays in the own district"
            );
        } else {
            remote.push(*customer_place);
        }
    }
    assert_share("remote payments", remote.len() as u64, payments, 0.15);
    assert_share("payments by name", named, payments, 0.60);
    assert_uniform("amounts", &tally("amounts", (0, 19), cents_bins));
    let districts = remote.iter().map(|place| place.1);
    assert_uniform(
        "remote districts",
        &tally("remote districts", (1, DISTRICTS), districts),
    );
    let warehouses = remote.iter().map(|place| place.0);
    assert_uniform(
        "remote warehouses",
        &tally("remote warehouses", (1, WAREHOUSES), warehouses),
    );
}

#[test]
fn the_rarer_types_draw_their_districts_carriers_and_thresholds_alike() {
    let drawn = inputs(28, 10 * DECKS, false);
    let (mut districts, mut carriers, mut thresholds) = (Vec::new(), Vec::new(), Vec::new());
    let (mut named, mut count) = (0, 0);
    for inputs in &drawn {
        match inputs {
            Inputs::OrderStatus {
                district, customer, ..
            } => {
                districts.push(*district);
                count += 1;
                named += u64::from(matches!(customer, CustomerKey::LastName(_)));
            }
            Inputs::Delivery { carrier, .. } => carriers.push(*carrier),
            Inputs::StockLevel { threshold, .. } => thresholds.push(*threshold),
            Inputs::NewOrder { .. } | Inputs::Payment { .. } => {}
        }
    }
    assert_share("order status by name", named, count, 0.60);
    assert_uniform("districts", &tally("districts", (1, 10), districts));
    assert_uniform("carriers", &tally("carriers", (1, 10), carriers));
    assert_uniform("thresholds", &tally("thresholds", (10, 20), thresholds));
}

fn warehouse(inputs: &Inputs) -> i64 {
    match inputs {
        Inputs::NewOrder { warehouse, .. }
        | Inputs::Payment { warehouse, .. }
        | Inputs::OrderStatus { warehouse, .. }
        | Inputs::Delivery { warehouse, .. }
        | Inputs::StockLevel { warehouse, .. } => *warehouse,
    }
}

#[test]
fn the_home_warehouse_is_fixed_or_drawn_anew_as_asked() {
    let fixed = inputs(29, 3, false);
    assert!(
        fixed.iter().all(|inputs| warehouse(inputs) == 3),
        "user 2, counted from 0"
    );
    let drawn = inputs(29, DECKS, true);
    let homes = drawn.iter().map(warehouse);
    assert_uniform("homes", &tally("homes", (1, WAREHOUSES), homes));
}

#[test]
fn the_district_of_stock_levels_is_drawn_anew_where_the_home_warehouse_is() {
    let districts = |drawn: &[Inputs]| -> Vec<i64> {
        let district = |inputs: &Inputs| match inputs {
            Inputs::StockLevel { district, .. } => Some(*district),
            _ => None,
        };
        drawn.iter().filter_map(district).collect()
    };
    let fixed = inputs(30, 3, false);
    assert_eq!(districts(&fixed), [1; 12], "user 2 of 5 warehouses");
    let mut drawn = inputs(30, 5 * DECKS, true);
    let all = districts(&drawn);
    assert_uniform("districts", &tally("districts", (1, DISTRICTS), all));
    // Nothing else is drawn differently for it.
    drawn.retain(|inputs| inputs.kind() != Kind::StockLevel);
    let mut digest = 0_i64;
    for inputs in &drawn[..300] {
        digest = (digest * 31 + warehouse(inputs)) % 1_000_003;
    }
    assert_eq!(digest, 62_405, "as before");
}

#[test]
fn ten_users_per_warehouse_sit_at_ten_districts_each() {
    let terminals: Vec<(i64, i64)> = (0..50)
        .map(|user| Terminal::new(site(WAREHOUSES), 1, user))
        .map(|terminal| (terminal.home, terminal.district))
        .collect();
    let all: std::collections::BTreeSet<_> = terminals.iter().copied().collect();
    assert_eq!(all.len(), 50, "no two share a warehouse and a district");
    assert_eq!(terminals[..3], [(1, 1), (2, 1), (3, 1)], "warehouses first");
    let next = Terminal::new(site(WAREHOUSES), 1, 50);
    assert_eq!((next.home, next.district), (1, 1), "then round again");
}

#[test]
fn a_run_constant_keeps_its_distance_from_the_load_constant() {
    let cases = [
        (0, false),
        (64, false),
        (65, true),
        (95, true),
        (96, false),
        (97, true),
        (111, true),
        (112, false),
        (113, true),
        (119, true),
        (120, false),
    ];
    for (delta, expected) in cases {
        assert_eq!(allowed(100, 100 + delta), expected, "{delta} up");
        assert_eq!(allowed(200, 200 - delta), expected, "{delta} down");
    }
    let seeds = 0..4_000;
    let constants: Vec<Constants> = seeds.map(|seed| Constants::draw(seed, 5)).collect();
    let drawn: std::collections::BTreeSet<i64> =
        constants.iter().map(|all| all.last_name).collect();
    let load = constants[0].last_name_load;
    let possible = (0..=A_LAST_NAME).filter(|run| allowed(load, *run)).count();
    assert_eq!(
        drawn.len(),
        possible,
        "every allowed constant is drawn some time"
    );
    let customers = constants.iter().map(|all| all.customer / 64);
    assert_uniform(
        "C of customers",
        &tally("C of customers", (0, 15), customers),
    );
    let items = constants.iter().map(|all| all.item / 512);
    assert_uniform("C of items", &tally("C of items", (0, 15), items));
}
