//! Keying and thinking times, and the counts of the fidelity report.

use super::*;
use crate::tests::chance::{assert_share, assert_uniform, tally};

/// Minimum keying time and minimum mean of thinking time, seconds, as clause 5.2.5.7 tabulates them.
const TABLE: [(Kind, f64, f64); 5] = [
    (Kind::NewOrder, 18.0, 12.0),
    (Kind::Payment, 3.0, 12.0),
    (Kind::OrderStatus, 2.0, 10.0),
    (Kind::Delivery, 2.0, 5.0),
    (Kind::StockLevel, 2.0, 5.0),
];

#[test]
fn keying_times_are_constant_and_those_of_the_table() {
    let mut terminal = Terminal::new(site(1), 31, 0);
    for (kind, keying_s, _) in TABLE {
        for scale in [1.0, 0.25] {
            let (seconds, _) = terminal.waits_s(kind, scale);
            assert!(
                (seconds - keying_s * scale).abs() < 1e-12,
                "{kind:?}: {seconds}"
            );
        }
    }
}

#[test]
#[allow(clippy::cast_possible_truncation)]
fn thinking_times_are_exponential_in_every_twentieth() {
    for (kind, _, mean_s) in TABLE {
        let mut terminal = Terminal::new(site(1), 32, 7);
        // Its own distribution function makes an exponential uniform over [0, 1).
        let twentieths = (0..20_000).map(|_| {
            let (_, thinking_s) = terminal.waits_s(kind, 1.0);
            (20.0 * (1.0 - (-thinking_s / mean_s).exp())) as i64
        });
        assert_uniform(kind.name(), &tally(kind.name(), (0, 19), twentieths));
    }
}

#[test]
fn thinking_ends_at_ten_times_its_mean_and_only_there() {
    let mut terminal = Terminal::new(site(1), 33, 1);
    let draws = 400_000;
    let cap_s = 10.0 * 5.0;
    let mut capped = 0;
    for _ in 0..draws {
        let (_, thinking_s) = terminal.waits_s(Kind::StockLevel, 1.0);
        assert!((0.0..=cap_s).contains(&thinking_s), "{thinking_s}");
        capped += u64::from(thinking_s >= cap_s);
    }
    assert!(capped > 0, "some are cut");
    assert_share("capped", capped, draws, (-10.0_f64).exp());
}

#[test]
fn waiting_draws_nothing_from_the_inputs() {
    let mut silent = Terminal::new(site(3), 34, 1);
    let mut waiting = Terminal::new(site(3), 34, 1);
    for _ in 0..300 {
        let inputs = waiting.next();
        waiting.waits_s(inputs.kind(), 1.0);
        waiting.spread();
        assert_eq!(silent.next(), inputs);
    }
}

#[test]
fn back_off_is_spread_evenly_from_half_to_one_and_a_half() {
    let mut terminal = Terminal::new(site(1), 35, 0);
    #[allow(clippy::cast_possible_truncation)]
    let tenths = (0..10_000).map(|_| ((terminal.spread() - 0.5) * 10.0).floor() as i64);
    assert_uniform("spread", &tally("spread", (0, 9), tenths));
}

#[test]
fn what_is_counted_is_what_was_drawn() {
    let line = |item, supply| OrderLine {
        item,
        supply,
        quantity: 1,
    };
    let new_order = |lines| Inputs::NewOrder {
        warehouse: 1,
        district: 1,
        customer: 1,
        lines,
    };
    let local = line(1, 1);
    let payment = |place, customer| Inputs::Payment {
        warehouse: 1,
        district: 4,
        customer_place: place,
        customer,
        cents: 100,
    };
    let name = || CustomerKey::LastName("BARBARBAR".into());
    let mut drawn = BTreeMap::new();
    for inputs in [
        new_order(vec![local, local, local, line(2, 2), line(3, 2)]),
        new_order(vec![local, local, local, local, local, line(ITEMS + 1, 1)]),
        payment((1, 4), CustomerKey::Number(1)),
        payment((2, 4), name()),
        Inputs::OrderStatus {
            warehouse: 1,
            district: 1,
            customer: name(),
        },
        Inputs::Delivery {
            warehouse: 1,
            carrier: 1,
        },
    ] {
        inputs.count(&mut drawn);
    }
    let expected = BTreeMap::from([
        ("new_order", 2),
        ("order_lines", 11),
        ("order_lines_remote", 2),
        ("new_order_rollback", 1),
        ("new_order_lines_05", 1),
        ("new_order_lines_06", 1),
        ("nurand_customers", 3),
        ("nurand_customers_odd", 3),
        ("nurand_items", 10),
        ("nurand_items_odd", 9),
        ("nurand_last_names", 2),
        ("nurand_last_names_odd", 0),
        ("payment", 2),
        ("payment_remote", 1),
        ("payment_by_last_name", 1),
        ("order_status", 1),
        ("order_status_by_last_name", 1),
        ("delivery", 1),
    ]);
    assert_eq!(drawn, expected);
}
