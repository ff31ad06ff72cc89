//! Every distribution against its closed form, and against sysbench itself where it is installed.

use std::process::Command;

use super::*;
use crate::tests::chance::{assert_fits, assert_share, assert_uniform, tally};
use crate::tests::mariadb::skips::lacks;

const DRAWS: u64 = 200_000;
const KEYS: i64 = 1_000;

const SPECIAL: Distribution = Distribution::Special {
    iterations: 12,
    hot_percent: 1,
    hot_draws_percent: 75,
};

fn drawn(distribution: Distribution) -> Vec<u64> {
    validate(&distribution).expect("valid parameters");
    let keys = Keys::new(&distribution, 1, KEYS);
    let mut random = Random::derive(3, "keys", &[]);
    tally(
        "keys",
        (1, KEYS),
        (0..DRAWS).map(|_| keys.draw(&mut random)),
    )
}

/// Shares from a cumulative distribution over the keys.
#[allow(clippy::cast_precision_loss)]
fn shares(cumulative: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..KEYS)
        .map(|key| cumulative((key + 1) as f64) - cumulative(key as f64))
        .collect()
}

#[test]
fn uniform_keys_and_the_mean_of_one_draw_are_alike() {
    assert_uniform("uniform", &drawn(Distribution::Uniform {}));
    assert_uniform(
        "gaussian of 1",
        &drawn(Distribution::Gaussian { iterations: 1 }),
    );
}

#[test]
fn the_mean_of_two_draws_is_a_triangle() {
    let triangle = |key: f64| {
        let place = key / 1_000.0;
        if place < 0.5 {
            2.0 * place * place
        } else {
            1.0 - 2.0 * (1.0 - place) * (1.0 - place)
        }
    };
    let counts = drawn(Distribution::Gaussian { iterations: 2 });
    assert_fits("gaussian of 2", &counts, &shares(triangle));
}

#[test]
fn three_of_four_special_keys_are_the_hot_ones_in_the_middle() {
    let counts = drawn(SPECIAL);
    // 0.0999 of a draw from [0.25, 1) times 10.99 keys, from offset 494.505 on: keys 498 to 506.
    let hot: u64 = counts[497..506].iter().sum();
    let cold_among_them = 0.25 * 9.0 * 4.786 / 999.0; // the bell's height in its middle
    assert_share("hot", hot, DRAWS, 0.75 + cold_among_them);
    let (left, right) = (
        counts[..497].iter().sum::<u64>(),
        counts[506..].iter().sum::<u64>(),
    );
    // A bell around offset 499.5 with a standard deviation of 999 / 12: 0.4880 below offset 497, 0.4689 from 506 on.
    assert_share("left of it", left, left + right, 0.4880 / (0.4880 + 0.4689));
}

#[test]
fn pareto_gives_the_share_one_minus_h_to_the_first_h_of_the_keys() {
    for h in [0.2, 0.35] {
        let counts = drawn(Distribution::Pareto { h });
        let power = (1.0 - h).ln() / h.ln();
        assert_fits(
            "pareto",
            &counts,
            &shares(|key| (key / 1_000.0).powf(power)),
        );
    }
}

#[test]
fn zipfian_ranks_are_as_frequent_as_their_power_says() {
    for exponent in [0.0, 0.5, 0.8, 1.0, 1.000_001, 2.5] {
        let weights: Vec<f64> = (1..=1_000_u32)
            .map(|key| f64::from(key).powf(-exponent))
            .collect();
        let whole: f64 = weights.iter().sum();
        let probabilities: Vec<f64> = weights.iter().map(|weight| weight / whole).collect();
        let counts = drawn(Distribution::Zipfian { exponent });
        assert_fits(&format!("zipfian {exponent}"), &counts, &probabilities);
    }
}

#[test]
fn one_key_is_always_drawn_and_no_key_lies_outside() {
    let mut random = Random::derive(4, "keys", &[]);
    for distribution in [
        Distribution::Uniform {},
        Distribution::Gaussian { iterations: 12 },
        SPECIAL,
        Distribution::Special {
            iterations: 1,
            hot_percent: 100,
            hot_draws_percent: 99,
        },
        Distribution::Pareto { h: 0.99 },
        Distribution::Zipfian { exponent: 0.8 },
    ] {
        for (low, high) in [(1, 1), (0, 1), (5, 9), (1, 2_147_483_647)] {
            let keys = Keys::new(&distribution, low, high);
            for _ in 0..200 {
                let key = keys.draw(&mut random);
                assert!((low..=high).contains(&key), "{distribution:?}: {key}");
            }
        }
    }
}

#[test]
fn parameters_that_mean_nothing_are_refused_by_name() {
    for (distribution, word) in [
        (Distribution::Gaussian { iterations: 0 }, "iterations"),
        (
            Distribution::Special {
                iterations: 12,
                hot_percent: 0,
                hot_draws_percent: 75,
            },
            "hot_percent",
        ),
        (
            Distribution::Special {
                iterations: 12,
                hot_percent: 1,
                hot_draws_percent: 100,
            },
            "hot_draws_percent",
        ),
        (Distribution::Pareto { h: 1.0 }, "h must"),
        (Distribution::Pareto { h: f64::NAN }, "h must"),
        (Distribution::Zipfian { exponent: -0.1 }, "exponent"),
    ] {
        let refused = validate(&distribution).expect_err("refused").to_string();
        assert!(refused.contains(word), "{refused}");
    }
}

/// How often sysbench draws each key; nothing where it is not installed.
fn sysbench(options: &[&str]) -> Option<Vec<u64>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = directory.path().join("draw.lua");
    let text = format!(
        "function event() local n = {{}} \
         for i = 1, {DRAWS} do local k = sysbench.rand.default(1, {KEYS}); n[k] = (n[k] or 0) + 1 end \
         for k = 1, {KEYS} do print('key ' .. (n[k] or 0)) end end"
    );
    std::fs::write(&script, text).expect("written");
    let ran = Command::new("sysbench")
        .arg(&script)
        .args(["--events=1", "--threads=1", "--rand-seed=7", "run"])
        .args(options)
        .output();
    let Ok(output) = ran else {
        lacks("sysbench");
        return None;
    };
    let counts = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_prefix("key ")?.parse().ok())
        .collect::<Vec<u64>>();
    assert_eq!(counts.len(), 1_000, "{output:?}");
    Some(counts)
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn sysbench_draws_every_key_as_often() {
    for (options, distribution) in [
        (&["--rand-type=uniform"][..], Distribution::Uniform {}),
        (
            &["--rand-type=gaussian"],
            Distribution::Gaussian { iterations: 12 },
        ),
        (&["--rand-type=special"], SPECIAL),
        (
            &[
                "--rand-type=special",
                "--rand-spec-iter=3",
                "--rand-spec-pct=10",
                "--rand-spec-res=40",
            ],
            Distribution::Special {
                iterations: 3,
                hot_percent: 10,
                hot_draws_percent: 40,
            },
        ),
        (&["--rand-type=pareto"], Distribution::Pareto { h: 0.2 }),
        (
            &["--rand-type=pareto", "--rand-pareto-h=0.35"],
            Distribution::Pareto { h: 0.35 },
        ),
    ] {
        let Some(theirs) = sysbench(options) else {
            return;
        };
        let ours = drawn(distribution);
        // Two samples of equal size: (a - b)² / (a + b) over the keys that both together met often enough.
        let (mut chi_square, mut cells, mut thin) = (0.0, 0.0_f64, (0_u64, 0_u64));
        for (a, b) in ours.iter().zip(&theirs) {
            thin = (thin.0 + a, thin.1 + b);
            let (a, b) = (thin.0 as f64, thin.1 as f64);
            if a + b >= 20.0 {
                chi_square += (a - b).powi(2) / (a + b);
                cells += 1.0;
                thin = (0, 0);
            }
        }
        let bound = cells + 5.0 * (2.0 * cells).sqrt();
        assert!(
            cells > 10.0 && chi_square < bound,
            "{options:?}: {chi_square:.1} ≥ {bound:.1}"
        );
    }
}
