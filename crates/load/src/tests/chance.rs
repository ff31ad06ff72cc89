//! Bounds for statistics on what the engine draws.
//!
//! Seeds are fixed, so a test holds always or never; the bounds say how small a fault may be to stay hidden.

/// Fails unless `count` of `draws` lies within four binomial standard deviations of `share` (a right engine misses
/// that with one seed in 16,000).
#[allow(clippy::cast_precision_loss)] // counts of a test stay far below 2^53
pub fn assert_share(name: &str, count: u64, draws: u64, share: f64) {
    let mean = draws as f64 * share;
    let bound = 4.0 * (mean * (1.0 - share)).sqrt();
    assert!(
        (count as f64 - mean).abs() <= bound,
        "{name}: {count} of {draws}, not within {mean:.1} ± {bound:.1}"
    );
}

/// Fewest draws to be expected of a cell, below which chi-square's distribution is not Pearson's.
const THINNEST: f64 = 5.0;

/// Fails unless counts fit their probabilities: Pearson's chi-square stays below its mean plus five of its standard
/// deviations, `df + 5 √(2 df)` (beyond its 0.998 quantile for every `df`). Neighbouring cells that are too thin count
/// as one.
#[allow(clippy::cast_precision_loss)]
pub fn assert_fits(name: &str, counts: &[u64], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len(), "{name}");
    let whole: f64 = probabilities.iter().sum();
    assert!(
        (whole - 1.0).abs() < 1e-9,
        "{name}: probabilities of {whole}"
    );
    let draws = counts.iter().sum::<u64>() as f64;
    let (mut chi_square, mut cells) = (0.0_f64, 0.0_f64);
    let (mut count_here, mut mean_here) = (0.0, 0.0);
    for (count, probability) in counts.iter().zip(probabilities) {
        count_here += *count as f64;
        mean_here += draws * probability;
        if mean_here >= THINNEST {
            chi_square += (count_here - mean_here).powi(2) / mean_here;
            cells += 1.0;
            (count_here, mean_here) = (0.0, 0.0);
        }
    }
    assert!(cells > 1.0, "{name}: too few draws");
    let bound = cells - 1.0 + 5.0 * (2.0 * (cells - 1.0)).sqrt();
    assert!(
        chi_square < bound,
        "{name}: {chi_square:.1} ≥ {bound:.1}, {counts:?}"
    );
}

/// Fails unless counts fit equal probabilities.
#[allow(clippy::cast_precision_loss)]
pub fn assert_uniform(name: &str, counts: &[u64]) {
    assert_fits(name, counts, &vec![1.0 / counts.len() as f64; counts.len()]);
}

/// How often each number of `[low, high]` occurs; a number outside fails.
pub fn tally(
    name: &str,
    (low, high): (i64, i64),
    values: impl IntoIterator<Item = i64>,
) -> Vec<u64> {
    let mut counts = vec![0; usize::try_from(high - low + 1).expect("a range")];
    for value in values {
        assert!(
            (low..=high).contains(&value),
            "{name}: {value} outside {low}..={high}"
        );
        counts[usize::try_from(value - low).expect("inside")] += 1;
    }
    counts
}

#[test]
#[should_panic(expected = "biased")]
fn a_share_that_is_off_by_a_tenth_fails() {
    assert_share("biased", 1_100, 100_000, 0.01);
    assert_share("biased", 11_000, 100_000, 0.1);
}

#[test]
#[should_panic(expected = "missing one value")]
fn a_value_that_is_never_drawn_fails() {
    assert_uniform(
        "missing one value",
        &[110, 110, 110, 110, 110, 110, 110, 110, 110, 0],
    );
}

#[test]
fn counts_of_a_fair_draw_pass() {
    assert_uniform("fair", &[1_010, 985, 1_004, 1_001]);
    assert_eq!(tally("letters", (-1, 1), [0, 1, 1, -1, 1]), [1, 1, 3]);
}
