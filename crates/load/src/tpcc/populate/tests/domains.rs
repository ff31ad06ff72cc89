//! Every column's domain: lengths, letters, ranges, shares.

use super::*;
use crate::tests::chance::{assert_share, assert_uniform, tally};

/// Fails unless all texts are alphanumeric, keep their lengths, and reach the shortest and the longest where the rows
/// are many enough to.
fn assert_strings(generated: &UnitRows, name: &str, (low, high): (usize, usize)) {
    let texts = generated.texts(name);
    for text in &texts {
        assert!((low..=high).contains(&text.len()), "{name}: {text}");
        assert!(
            text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{name}: {text}"
        );
    }
    if texts.len() > 20 * (high - low + 1) {
        let lengths: BTreeSet<usize> = texts.iter().map(|text| text.len()).collect();
        let all: BTreeSet<usize> = (low..=high).collect();
        assert_eq!(lengths, all, "{name}");
    }
}

fn assert_address(generated: &UnitRows, prefix: &str) {
    for part in ["street_1", "street_2", "city"] {
        assert_strings(generated, &format!("{prefix}_{part}"), (10, 20));
    }
    assert_strings(generated, &format!("{prefix}_state"), (2, 2));
    for zip in generated.texts(&format!("{prefix}_zip")) {
        let (number, suffix) = zip.split_at(4);
        assert_eq!(suffix, "11111", "clause 4.3.2.7");
        assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{zip}");
    }
}

fn assert_all<T: PartialEq + std::fmt::Debug>(name: &str, values: &[T], expected: &T) {
    let other = values.iter().find(|value| *value != expected);
    assert!(other.is_none(), "{name}: {other:?} instead of {expected:?}");
}

fn assert_original(generated: &UnitRows, name: &str) {
    let texts = generated.texts(name);
    let places: Vec<(usize, usize)> = texts
        .iter()
        .filter_map(|text| Some((text.find("ORIGINAL")?, text.len() - "ORIGINAL".len())))
        .collect();
    assert_share(name, places.len() as u64, texts.len() as u64, 0.10);
    assert!(
        places.iter().any(|(start, _)| *start == 0),
        "{name}: at the very start"
    );
    assert!(
        places.iter().any(|(start, last)| start == last),
        "{name}: at the very end"
    );
    let halves = places.iter().filter(|(start, last)| start * 2 != *last);
    let halves = halves.map(|(start, last)| i64::from(start * 2 > *last));
    assert_uniform(name, &tally(name, (0, 1), halves));
}

#[test]
fn items_are_those_of_the_specification() {
    let items = &generate(UNITS[0], SEED)[0];
    assert_eq!(
        items.integers("i_id"),
        (20_001..=30_000).collect::<Vec<_>>()
    );
    let images = items
        .integers("i_im_id")
        .into_iter()
        .map(|image| (image - 1) / 500);
    assert_uniform("i_im_id", &tally("i_im_id", (0, 19), images));
    let prices = items
        .units("i_price", 2)
        .into_iter()
        .map(|cents| (cents - 100) * 20 / 9_901);
    assert_uniform("i_price", &tally("i_price", (0, 19), prices));
    assert_strings(items, "i_name", (14, 24));
    assert_strings(items, "i_data", (26, 50));
    assert_original(items, "i_data");
}

#[test]
fn warehouses_and_districts_are_those_of_the_specification() {
    let mut taxes = Vec::new();
    for number in 1..=40 {
        let places = generate(Unit::Places { warehouse: number }, SEED);
        let [warehouse, districts] = &places[..] else {
            panic!("two tables")
        };
        assert_eq!(warehouse.integers("w_id"), [number]);
        assert_eq!(districts.integers("d_id"), (1..=10).collect::<Vec<_>>());
        assert_all("d_w_id", &districts.integers("d_w_id"), &number);
        assert_eq!(warehouse.units("w_ytd", 2), [30_000_000]);
        assert_all("d_ytd", &districts.units("d_ytd", 2), &3_000_000);
        assert_all("d_next_o_id", &districts.integers("d_next_o_id"), &3_001);
        for (table, prefix) in [(warehouse, "w"), (districts, "d")] {
            assert_strings(table, &format!("{prefix}_name"), (6, 10));
            assert_address(table, prefix);
            taxes.extend(table.units(&format!("{prefix}_tax"), 4));
        }
    }
    let fifths = taxes.into_iter().map(|tax| tax * 5 / 2_001);
    assert_uniform("taxes", &tally("taxes", (0, 4), fifths));
}

#[test]
fn stock_is_that_of_the_specification() {
    let stock = &generate(UNITS[2], SEED)[0];
    assert_eq!(stock.integers("s_i_id"), (1..=10_000).collect::<Vec<_>>());
    assert_all("s_w_id", &stock.integers("s_w_id"), &2);
    let quantities = stock.integers("s_quantity");
    assert_uniform("s_quantity", &tally("s_quantity", (10, 100), quantities));
    for name in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
        assert_all(name, &stock.integers(name), &0);
    }
    let mut information = BTreeSet::new();
    for district in 1..=10 {
        let name = format!("s_dist_{district:02}");
        assert_strings(stock, &name, (24, 24));
        information.extend(stock.texts(&name));
    }
    assert_eq!(
        information.len(),
        100_000,
        "no two districts or items share theirs"
    );
    assert_strings(stock, "s_data", (26, 50));
    assert_original(stock, "s_data");
}

#[test]
fn customers_are_those_of_the_specification() {
    let customers = &generate(UNITS[3], SEED)[0];
    assert_eq!(customers.integers("c_id"), (1..=3_000).collect::<Vec<_>>());
    assert_all("c_d_id", &customers.integers("c_d_id"), &3);
    assert_all("c_w_id", &customers.integers("c_w_id"), &2);
    assert_all("c_middle", &customers.texts("c_middle"), &"OE");
    assert_strings(customers, "c_first", (8, 16));
    assert_address(customers, "c");
    for phone in customers.texts("c_phone") {
        assert!(
            phone.len() == 16 && phone.bytes().all(|byte| byte.is_ascii_digit()),
            "{phone}"
        );
    }
    let credits = customers.texts("c_credit");
    let bad = credits.iter().filter(|credit| **credit == "BC").count();
    assert_share("bad credit", bad as u64, 3_000, 0.10);
    assert!(credits.iter().all(|credit| ["GC", "BC"].contains(credit)));
    let discounts = customers
        .units("c_discount", 4)
        .into_iter()
        .map(|discount| discount * 10 / 5_001);
    assert_uniform("c_discount", &tally("c_discount", (0, 9), discounts));
    assert_all(
        "c_credit_lim",
        &customers.units("c_credit_lim", 2),
        &5_000_000,
    );
    assert_all("c_balance", &customers.units("c_balance", 2), &-1_000);
    assert_all(
        "c_ytd_payment",
        &customers.units("c_ytd_payment", 2),
        &1_000,
    );
    assert_all("c_payment_cnt", &customers.integers("c_payment_cnt"), &1);
    assert_all("c_delivery_cnt", &customers.integers("c_delivery_cnt"), &0);
    assert_strings(customers, "c_data", (300, 500));
}

#[test]
fn last_names_are_all_thousand_and_then_nurand_with_the_loads_constant() {
    use crate::tpcc::constants::{A_LAST_NAME, last_name_load};
    use crate::tpcc::names::last_name;
    let constant = last_name_load(SEED);
    let name = |number| {
        let mut out = String::new();
        last_name(number, &mut out);
        out
    };
    // A name's number less the constant is NURand with C = 0; of that, bits 0 to 7 are set three times of four.
    let mut set = [0_u64; 8];
    let mut drawn = 0;
    for district in 1..=10 {
        let generated = generate(
            Unit::Customers {
                warehouse: 1,
                district,
            },
            SEED,
        );
        let names = generated[0].texts("c_last");
        let expected: Vec<String> = (0..1_000).map(name).collect();
        assert_eq!(
            names[..1_000],
            expected,
            "the first thousand customers have each name once"
        );
        let numbers: std::collections::BTreeMap<&str, i64> =
            expected.iter().map(String::as_str).zip(0..).collect();
        for name in &names[1_000..] {
            let number = (numbers[name] - constant).rem_euclid(1_000);
            // Numbers above 999 came round: 1,000 to 1,023 are 0 to 23, told apart from the small by nobody.
            if number > 23 {
                drawn += 1;
                (0..8).for_each(|bit| set[bit] += u64::from(number >> bit & 1 == 1));
            }
        }
    }
    let pairs = (0..=A_LAST_NAME).flat_map(|u| (0..1_000).map(move |v| u | v));
    let pairs: Vec<i64> = pairs
        .filter(|number| (24..1_000).contains(number))
        .collect();
    for (bit, count) in set.into_iter().enumerate() {
        let expected = pairs
            .iter()
            .filter(|number| *number >> bit & 1 == 1)
            .count();
        #[allow(clippy::cast_precision_loss)]
        let share = expected as f64 / pairs.len() as f64;
        assert_share(&format!("bit {bit}"), count, drawn, share);
    }
}

#[test]
fn history_is_one_payment_of_ten_per_customer() {
    let generated = generate(UNITS[3], SEED);
    let history = &generated[1];
    assert_eq!(history.integers("h_c_id"), (1..=3_000).collect::<Vec<_>>());
    for (name, place) in [
        ("h_c_d_id", 3),
        ("h_d_id", 3),
        ("h_c_w_id", 2),
        ("h_w_id", 2),
    ] {
        assert_all(name, &history.integers(name), &place);
    }
    assert_all("h_amount", &history.units("h_amount", 2), &1_000);
    assert_strings(history, "h_data", (12, 24));
    assert_eq!(
        history.texts("h_date"),
        generated[0].texts("c_since"),
        "one time of loading"
    );
}
