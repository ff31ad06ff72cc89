//! The constants of `NURand` (clause 2.1.6) for the load and for a run.

use crate::random::Random;

/// A of `NURand` for last names.
pub const A_LAST_NAME: i64 = 255;
/// A of `NURand` for customer numbers.
pub const A_CUSTOMER: i64 = 1_023;
/// A of `NURand` for item numbers.
pub const A_ITEM: i64 = 8_191;

/// The constants of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// C for last names while loading.
    pub last_name_load: i64,
    /// C for last names in the run.
    pub last_name: i64,
    /// C for customer numbers.
    pub customer: i64,
    /// C for items.
    pub item: i64,
}

/// C for last names while loading.
pub fn last_name_load(load_seed: u64) -> i64 {
    Random::derive(load_seed, "nurand_load", &[]).uniform(0, A_LAST_NAME)
}

/// Whether clause 2.1.6.1 allows a run with C `run` on data loaded with C `load`.
pub fn allowed(load: i64, run: i64) -> bool {
    let delta = (run - load).abs();
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

impl Constants {
    /// Drawn once per run, the same for all its users.
    pub fn draw(seed: u64, load_seed: u64) -> Self {
        let mut random = Random::derive(seed, "nurand_run", &[]);
        let last_name_load = last_name_load(load_seed);
        let candidates: Vec<i64> = (0..=A_LAST_NAME)
            .filter(|run| allowed(last_name_load, *run))
            .collect();
        // From every load constant at least 53 run constants are in reach, upwards or downwards.
        let last_name = candidates[random.index(candidates.len())];
        Self {
            last_name_load,
            last_name,
            customer: random.uniform(0, A_CUSTOMER),
            item: random.uniform(0, A_ITEM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_constant_obeys_the_rule_whatever_the_seeds() {
        for seed in 0..300 {
            let constants = Constants::draw(seed, seed / 7);
            let delta = (constants.last_name - constants.last_name_load).abs();
            assert!(
                (65..=119).contains(&delta) && delta != 96 && delta != 112,
                "{constants:?}"
            );
            assert!((0..=A_LAST_NAME).contains(&constants.last_name));
        }
    }

    #[test]
    fn every_load_constant_leaves_a_choice() {
        for load in 0..=A_LAST_NAME {
            assert!(
                (0..=A_LAST_NAME).filter(|run| allowed(load, *run)).count() >= 53,
                "{load}"
            );
        }
    }
}
