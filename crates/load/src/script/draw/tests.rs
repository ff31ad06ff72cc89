use fairtrial_protocol::oltp::Distribution;

use super::*;
use crate::driver::Row;
use crate::random::Random;

fn drawn(draw: &Draw, count: usize) -> Vec<Cell> {
    let source = ValueSource::new(draw).expect("it fits");
    let mut random = Random::derive(3, "draw", &[]);
    let mut slot = ValueBuffer::default();
    (0..)
        .take(count)
        .map(|number| {
            source.draw(&mut random, number, &mut slot);
            slot.cell.clone()
        })
        .collect()
}

fn text(value: &str) -> Constant {
    Constant::Text {
        value: value.into(),
    }
}

#[test]
fn numbers_come_from_their_whole_range_and_no_other() {
    let draw = Draw::Integer {
        low: -2,
        high: 2,
        distribution: Distribution::Uniform {},
    };
    let mut cells: Vec<i64> = drawn(&draw, 200)
        .iter()
        .map(|cell| Row(vec![cell.clone()]).integer(0).expect("an integer"))
        .collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells, [-2, -1, 0, 1, 2]);
}

#[test]
fn a_distribution_shapes_decimals_too() {
    let draw = Draw::Decimal {
        low_units: 50,
        high_units: 1_049,
        scale: 2,
        distribution: Distribution::Zipfian { exponent: 1.2 },
    };
    let lowest = Cell::Decimal(Decimal {
        units: 50,
        scale: 2,
    });
    let cells = drawn(&draw, 1_000);
    let lowest_count = cells.iter().filter(|cell| **cell == lowest).count();
    assert!(lowest_count > 150, "rank 1 of 1,000: {lowest_count}");
    let source = ValueSource::new(&draw).expect("it fits").without_decimals();
    let mut slot = ValueBuffer::default();
    source.draw(&mut Random::derive(3, "draw", &[]), 0, &mut slot);
    let mut digits = String::new();
    match cells[0] {
        Cell::Decimal(decimal) => decimal.write(&mut digits),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(slot.value(), Value::Text(&digits), "the same as text");
}

#[test]
fn text_has_the_lengths_and_letters_asked_for() {
    let draw = Draw::Text {
        shortest: 3,
        longest: 5,
        letters: Letters::Digits,
    };
    let mut lengths = Vec::new();
    for cell in drawn(&draw, 100) {
        let Cell::Text(text) = cell else {
            panic!("{cell:?}")
        };
        assert!(text.bytes().all(|letter| letter.is_ascii_digit()));
        lengths.push(text.len());
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [3, 4, 5]);
}

#[test]
fn choices_follow_their_weights() {
    let draw = Draw::Choice {
        values: vec![
            text("paid"),
            Constant::Null {},
            Constant::Integer { value: 7 },
        ],
        weights: vec![6.0, 3.0, 1.0],
    };
    let cells = drawn(&draw, 10_000);
    let count = |cell: &Cell| cells.iter().filter(|cells| *cells == cell).count();
    // Six standard deviations of a share of 10,000 draws are below 0.03.
    assert!(count(&Cell::Text("paid".into())).abs_diff(6_000) < 300);
    assert!(count(&Cell::Null).abs_diff(3_000) < 300);
    assert!(count(&Cell::Integer(7)).abs_diff(1_000) < 300);
}

#[test]
fn sequences_go_on_from_their_first() {
    let cells = drawn(&Draw::Sequence { first: 40 }, 3);
    assert_eq!(cells, [40, 41, 42].map(Cell::Integer));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let refused = |draw: &Draw| {
        ValueSource::new(draw)
            .err()
            .unwrap_or_else(|| panic!("{draw:?} is drawn from"))
            .to_string()
    };
    let integer = |low, high| Draw::Integer {
        low,
        high,
        distribution: Distribution::Uniform {},
    };
    assert!(refused(&integer(2, 1)).contains("a range from 2 to 1"));
    assert!(refused(&integer(i64::MIN, i64::MAX)).contains("2^53"));
    let pareto = Draw::Integer {
        low: 1,
        high: 2,
        distribution: Distribution::Pareto { h: 1.0 },
    };
    assert!(refused(&pareto).contains("distribution"));
    let choice = |weights| Draw::Choice {
        values: vec![text("a")],
        weights,
    };
    assert!(refused(&choice(vec![1.0, 2.0])).contains("1 values with 2 weights"));
    assert!(refused(&choice(vec![0.0])).contains("weight 0"));
    assert!(refused(&choice(vec![f64::NAN])).contains("weight NaN"));
    let long = Draw::Text {
        shortest: 2,
        longest: 1,
        letters: Letters::Digits,
    };
    assert!(refused(&long).contains("text of 2 to 1"));
}
