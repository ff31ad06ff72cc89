//! Random draws that are the same on every machine and in every release.
//!
//! Data are compared by their hash between systems, and trials of one block by what they draw, so neither the
//! generator nor the way from its bits to a value may change with a library: the generator is named (xoshiro256++,
//! Blackman and Vigna, 2019) and everything above its 64 bits is here.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Characters taken from one 64-bit draw: 62 to the tenth is just below 2 to the 60th.
const CHARACTERS_PER_DRAW: usize = 10;

/// One stream of draws.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// The stream of a named part of a seed (`("customer", [warehouse, district])`). Streams of different names are
    /// independent, so the order in which threads use them changes nothing.
    pub fn derive(seed: u64, name: &str, path: &[u64]) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(name.as_bytes());
        hash.update([0]);
        for part in path {
            hash.update(part.to_le_bytes());
        }
        Self {
            generator: Xoshiro256PlusPlus::from_seed(hash.finalize().into()),
        }
    }

    /// Uniform over `[low, high]`, both included (the specification's `random(x, y)`).
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high);
        let span = u128::from(high.abs_diff(low)) + 1;
        // Multiplying and taking the high half is unbiased to one part in 2^64 / span (Lemire, 2019): below 10^-13
        // for every range of this crate.
        let offset = (u128::from(self.generator.next_u64()) * span) >> 64;
        low + i64::try_from(offset).expect("the offset lies below the span of two i64")
    }

    /// Uniform over `[0, 1)`, from the 53 bits a double holds.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn fraction(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in `percent` of 100 draws.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// The specification's non-uniform `NURand(A, x, y)` with constant `c` (clause 2.1.6).
    pub fn nurand(&mut self, a: i64, c: i64, low: i64, high: i64) -> i64 {
        ((self.uniform(0, a) | self.uniform(low, high)) + c) % (high - low + 1) + low
    }

    /// Uniform over `[low, high]` without `excluded`, which must lie inside; `None` if nothing else does.
    pub fn uniform_except(&mut self, low: i64, high: i64, excluded: i64) -> Option<i64> {
        if low == high {
            return None;
        }
        let drawn = self.uniform(low, high - 1);
        Some(if drawn >= excluded { drawn + 1 } else { drawn })
    }

    /// Uniform over the positions of a slice of this length, which must not be empty.
    pub fn index(&mut self, length: usize) -> usize {
        let last = i64::try_from(length - 1).expect("no slice is longer than i64::MAX");
        usize::try_from(self.uniform(0, last)).expect("it came from a usize")
    }

    /// Puts a slice in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Appends an a-string (clause 4.3.2.2): alphanumeric, its length uniform over `[low, high]`.
    pub fn alphanumeric(&mut self, low: i64, high: i64, out: &mut String) {
        self.characters(low, high, ALPHANUMERIC, out);
    }

    /// Appends an n-string: digits, its length uniform over `[low, high]`.
    pub fn digits(&mut self, low: i64, high: i64, out: &mut String) {
        self.characters(low, high, &ALPHANUMERIC[52..], out);
    }

    fn characters(&mut self, low: i64, high: i64, alphabet: &[u8], out: &mut String) {
        let length = self.uniform(low, high);
        let mut bits = 0;
        for position in 0..usize::try_from(length).unwrap_or(0) {
            if position % CHARACTERS_PER_DRAW == 0 {
                bits = self.generator.next_u64();
            }
            let wide = u128::from(bits) * alphabet.len() as u128;
            #[allow(clippy::cast_possible_truncation)]
            // the high half is a position, the low half the rest of the draw
            let (position, rest) = ((wide >> 64) as usize, wide as u64);
            out.push(char::from(alphabet[position]));
            bits = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_draws_on_every_machine_and_another_name_gives_others() {
        let draw = |seed, name, path: &[u64]| {
            let mut random = Random::derive(seed, name, path);
            (0..4).map(|_| random.uniform(0, 999)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, "stock", &[3]), draw(7, "stock", &[3]));
        assert_eq!(
            draw(7, "stock", &[3]),
            [4, 995, 674, 808],
            "computed apart, in Python"
        );
        assert_ne!(draw(7, "stock", &[3]), draw(8, "stock", &[3]));
        assert_ne!(draw(7, "stock", &[3]), draw(7, "stock", &[4]));
        assert_ne!(draw(7, "stock", &[3]), draw(7, "items", &[3]));
    }

    #[test]
    fn every_value_of_a_range_is_drawn_about_equally_often() {
        let mut random = Random::derive(1, "uniform", &[]);
        let mut counts = [0_i64; 7];
        for _ in 0..70_000 {
            counts[usize::try_from(random.uniform(-3, 3) + 3).expect("in range")] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.46 is its 0.999 quantile.
        let chi_square: i64 = counts
            .iter()
            .map(|count| (count - 10_000).pow(2))
            .sum::<i64>()
            / 10_000;
        assert!(chi_square < 23, "{counts:?}");
    }

    #[test]
    fn nurand_follows_its_closed_form() {
        // For NURand(7, 0, 15) with c = 0 every (u, v) pair of [0, 7] x [0, 15] is equally likely: P(k) counts pairs.
        let mut expected = [0_f64; 16];
        for u in 0..8_usize {
            for v in 0..16 {
                expected[(u | v) % 16] += 1.0 / 128.0;
            }
        }
        let mut random = Random::derive(2, "nurand", &[]);
        let draws = 100_000;
        let mut counts = [0_u32; 16];
        for _ in 0..draws {
            counts[usize::try_from(random.nurand(7, 5, 0, 15)).expect("in range")] += 1;
        }
        let chi_square: f64 = (0..16)
            .map(|value| {
                let mean = expected[value] * f64::from(draws);
                // The constant shifts the distribution round.
                (f64::from(counts[(value + 5) % 16]) - mean).powi(2) / mean
            })
            .sum();
        assert!(
            chi_square < 37.7,
            "0.999 quantile of 15 degrees of freedom: {chi_square}"
        );
    }

    #[test]
    fn strings_have_the_lengths_and_letters_asked_for() {
        let mut random = Random::derive(3, "strings", &[]);
        let (mut shortest, mut longest) = (usize::MAX, 0);
        for _ in 0..1_000 {
            let mut text = String::new();
            random.alphanumeric(14, 24, &mut text);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            shortest = shortest.min(text.len());
            longest = longest.max(text.len());
        }
        assert_eq!((shortest, longest), (14, 24));
        let mut digits = String::new();
        random.digits(16, 16, &mut digits);
        assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn an_excluded_value_is_never_drawn_and_all_others_are() {
        let mut random = Random::derive(4, "except", &[]);
        let drawn: std::collections::BTreeSet<_> = (0..200)
            .filter_map(|_| random.uniform_except(1, 4, 3))
            .collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(
            random.uniform_except(1, 1, 1),
            None,
            "one warehouse has no remote one"
        );
    }
}
