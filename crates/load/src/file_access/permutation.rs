//! A permutation of `[0, n)` for any `n`, without a table: neighbours in rank lie anywhere in the file, and every block
//! is some rank's.
//!
//! A Feistel network permutes the next even power of two; what leaves `[0, n)` walks on until it is back (Black and
//! Rogaway, "Ciphers with arbitrary finite domains", 2002). The domain is less than four times `n`, so a walk has fewer
//! than four steps on average.

use crate::random::Random;

const ROUNDS: usize = 4; // Luby and Rackoff: four rounds look random from both ends

/// One permutation.
#[derive(Clone, Debug)]
pub struct Permutation {
    length: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `[0, length)`; `length` must be at least 1 and 2^62 at most.
    pub fn new(length: u64, random: &mut Random) -> Self {
        debug_assert!((1..=1 << 62).contains(&length));
        let bits = u64::BITS - (length - 1).leading_zeros();
        let mut keys = [0; ROUNDS];
        for key in &mut keys {
            *key = random.uniform(0, i64::MAX).cast_unsigned();
        }
        Self {
            length,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// Where a rank lies.
    pub fn at(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.length);
        let mut place = rank;
        loop {
            place = self.once(place);
            if place < self.length {
                return place;
            }
        }
    }

    fn once(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (place >> self.half_bits, place & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mixed(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood, 2014): every input bit changes about half of the output's.
pub fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(length: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::new(length, &mut Random::derive(seed, "test", &[]));
        (0..length).map(|rank| permutation.at(rank)).collect()
    }

    #[test]
    fn every_place_is_met_once_at_any_size() {
        for length in [1, 2, 3, 5, 64, 1000, 4096, 50_021, 51_199, 51_200, 65_536] {
            let mut met = places(length, 7);
            met.sort_unstable();
            assert!(met.into_iter().eq(0..length), "{length}");
        }
    }

    #[test]
    fn the_seed_decides_and_the_hot_ranks_are_spread_over_the_file() {
        assert_eq!(places(1000, 1), places(1000, 1));
        assert_ne!(places(1000, 1), places(1000, 2));
        let hot = &places(51_200, 3)[..512];
        let mut tenths = [0_u32; 10];
        for place in hot {
            tenths[usize::try_from(place * 10 / 51_200).expect("a digit")] += 1;
        }
        // Chi-square with 9 degrees of freedom: 27.9 is its 0.999 quantile.
        let mean = 51.2_f64;
        let chi_square: f64 = tenths
            .iter()
            .map(|count| (f64::from(*count) - mean).powi(2) / mean)
            .sum();
        assert!(chi_square < 27.9, "{tenths:?}");
    }

    #[test]
    fn a_file_of_many_terabytes_has_a_permutation_too() {
        let length = (1 << 40) + 12_345;
        let permutation = Permutation::new(length, &mut Random::derive(1, "test", &[]));
        assert!((0..1000).all(|rank| permutation.at(length - 1 - rank) < length));
    }
}
