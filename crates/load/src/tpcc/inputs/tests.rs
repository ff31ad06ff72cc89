use super::*;

mod fidelity;
mod times;

fn site(warehouses: i64) -> TerminalConstants {
    TerminalConstants {
        warehouses,
        constants: Constants::draw(1, 2),
        all_warehouses: false,
    }
}

fn draw(seed: u64, transactions: usize) -> (Vec<Inputs>, BTreeMap<&'static str, u64>) {
    let mut terminal = Terminal::new(site(10), seed, 3);
    let inputs: Vec<Inputs> = (0..transactions).map(|_| terminal.next()).collect();
    let mut drawn = BTreeMap::new();
    for one in &inputs {
        one.count(&mut drawn);
    }
    (inputs, drawn)
}

/// Whether a count lies within four standard deviations of a binomial's mean.
#[allow(clippy::cast_precision_loss)]
fn plausible(count: u64, draws: u64, share: f64) -> bool {
    let mean = draws as f64 * share;
    (count as f64 - mean).abs() <= 4.0 * (mean * (1.0 - share)).sqrt()
}

#[test]
fn equal_seeds_draw_equal_inputs_and_users_differ() {
    assert_eq!(draw(5, 500).0, draw(5, 500).0);
    assert_ne!(draw(5, 500).0, draw(6, 500).0);
    let mut other = Terminal::new(site(10), 5, 4);
    assert_ne!(
        draw(5, 20).0,
        (0..20).map(|_| other.next()).collect::<Vec<_>>()
    );
}

#[test]
fn the_mix_is_exact_over_every_hundred() {
    let (inputs, _) = draw(9, 1_000);
    for hundred in inputs.chunks(100) {
        let count = |kind| {
            hundred
                .iter()
                .filter(|inputs| inputs.kind() == kind)
                .count()
        };
        assert_eq!(Kind::ALL.map(count), [45, 43, 4, 4, 4]);
    }
}

#[test]
fn shares_are_those_of_the_specification() {
    let (_, drawn) = draw(3, 100_000);
    let share = |name, of: &str, share| {
        assert!(
            plausible(drawn[name], drawn[of], share),
            "{name}: {} of {}",
            drawn[name],
            drawn[of]
        );
    };
    share("order_lines_remote", "order_lines", 0.01);
    share("new_order_rollback", "new_order", 0.01);
    share("payment_remote", "payment", 0.15);
    share("payment_by_last_name", "payment", 0.60);
    share("order_status_by_last_name", "order_status", 0.60);
    // 1 + C is taken from a number before its bits are looked at; the names' first number is 0.
    let constants = site(10).constants;
    for (name, first, constant) in [
        ("nurand_items", 1, constants.item),
        ("nurand_customers", 1, constants.customer),
        ("nurand_last_names", 0, constants.last_name),
    ] {
        let odd = if (first + constant) % 2 == 0 {
            0.75
        } else {
            0.25
        };
        let (counted, of) = (format!("{name}_odd"), drawn[name]);
        assert!(plausible(drawn[counted.as_str()], of, odd), "{name}");
    }
    for lines in 5..=15 {
        let name = format!("new_order_lines_{lines:02}");
        assert!(
            plausible(drawn[name.as_str()], drawn["new_order"], 1.0 / 11.0),
            "{name}"
        );
    }
}

#[test]
fn inputs_stay_in_their_ranges_and_remote_means_another_warehouse() {
    for inputs in draw(4, 20_000).0 {
        match inputs {
            Inputs::NewOrder {
                district,
                customer,
                lines,
                ..
            } => {
                assert!((1..=10).contains(&district) && (1..=3_000).contains(&customer));
                let (last, others) = lines.split_last().expect("five lines at least");
                assert!(others.iter().all(|line| (1..=ITEMS).contains(&line.item)));
                assert!(
                    (1..=ITEMS + 1).contains(&last.item),
                    "only the last item may be unused"
                );
                assert!(lines.iter().all(
                    |line| (1..=10).contains(&line.supply) && (1..=10).contains(&line.quantity)
                ));
            }
            Inputs::Payment {
                warehouse,
                district,
                customer_place,
                cents,
                ..
            } => {
                assert!((100..=500_000).contains(&cents));
                assert!(customer_place.0 != warehouse || customer_place.1 == district);
            }
            Inputs::StockLevel {
                district,
                threshold,
                ..
            } => {
                assert!(
                    district == 1 && (10..=20).contains(&threshold),
                    "user 3 of 10 warehouses sits in district 1"
                );
            }
            Inputs::Delivery { carrier, .. } => assert!((1..=10).contains(&carrier)),
            Inputs::OrderStatus { district, .. } => assert!((1..=10).contains(&district)),
        }
    }
}

#[test]
fn one_warehouse_has_no_remote_orders_or_payments() {
    let mut terminal = Terminal::new(site(1), 8, 0);
    let mut drawn = BTreeMap::new();
    (0..2_000).for_each(|_| terminal.next().count(&mut drawn));
    assert_eq!(
        (drawn["order_lines_remote"], drawn["payment_remote"]),
        (0, 0)
    );
}

#[test]
fn thinking_is_exponential_with_its_mean_and_bound() {
    let mut terminal = Terminal::new(site(1), 8, 0);
    let waits: Vec<f64> = (0..20_000)
        .map(|_| terminal.waits_s(Kind::Payment, 0.5).1)
        .collect();
    let mean = waits.iter().sum::<f64>() / 20_000.0;
    assert!((mean - 6.0).abs() < 0.2, "mean 12 s, halved: {mean}");
    assert!(waits.iter().all(|wait| (0.0..=60.0).contains(wait)));
    assert!(
        (terminal.waits_s(Kind::NewOrder, 2.0).0 - 36.0).abs() < 1e-9,
        "keying time, doubled"
    );
}
