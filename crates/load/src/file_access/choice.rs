//! Which block is accessed next, and whether it is written.

use fairtrial_protocol::file::FileDistribution;
use fairtrial_protocol::oltp::Distribution;

use super::permutation::Permutation;
use crate::error::LoadError;
use crate::oltp::keys::Keys;
use crate::random::Random;

/// Wider bells are flat.
const DEVIATION_LIMIT_PERCENT: f64 = 1000.0;

/// One job's stream of accesses.
#[derive(Clone, Debug)]
pub struct Choice {
    blocks: u64,
    ranks: Ranks,
    permutation: Permutation,
    write_share: f64,
    random: Random,
}

#[derive(Clone, Debug)]
enum Ranks {
    Keys(Keys),
    Bell { deviation: f64 },
}

/// Says what is wrong with a distribution's parameters.
pub fn validate(distribution: &FileDistribution) -> Result<(), LoadError> {
    let problem = match *distribution {
        FileDistribution::Zipf { theta } if !(theta.is_finite() && theta > 0.0) => {
            format!("theta must be above 0, not {theta}")
        }
        FileDistribution::Pareto { h } if !(h > 0.0 && h < 1.0) => {
            format!("h must be between 0 and 1, not {h}")
        }
        FileDistribution::Normal {
            deviation_percent: deviation,
        } if !(deviation > 0.0 && deviation <= DEVIATION_LIMIT_PERCENT) => {
            format!(
                "deviation_percent must be above 0 and at most {DEVIATION_LIMIT_PERCENT}, not {deviation}"
            )
        }
        _ => return Ok(()),
    };
    Err(LoadError::parameter("distribution", problem))
}

impl Choice {
    /// The stream of a job over its file, by a distribution that [`validate`] has passed.
    pub fn new(
        distribution: &FileDistribution,
        blocks: u64,
        write_share: f64,
        (seed, job): (u64, u32),
    ) -> Self {
        let part = |name| Random::derive(seed, name, &[job.into()]);
        let keys = |distribution: &Distribution| {
            let last = i64::try_from(blocks - 1).unwrap_or(i64::MAX);
            Ranks::Keys(Keys::new(distribution, 0, last))
        };
        #[allow(clippy::cast_precision_loss)] // a file has fewer than 2^53 blocks
        let ranks = match *distribution {
            FileDistribution::Random {} => keys(&Distribution::Uniform {}),
            FileDistribution::Zipf { theta } => keys(&Distribution::Zipfian { exponent: theta }),
            FileDistribution::Pareto { h } => keys(&Distribution::Pareto { h }),
            FileDistribution::Normal { deviation_percent } => Ranks::Bell {
                deviation: blocks as f64 * deviation_percent / 100.0,
            },
        };
        Self {
            blocks,
            ranks,
            permutation: Permutation::new(blocks, &mut part("permutation")),
            write_share,
            random: part("accesses"),
        }
    }

    /// The next block, and whether it is written.
    pub fn next(&mut self) -> (u64, bool) {
        let writes = self.write_share > 0.0 && self.random.fraction() < self.write_share;
        let rank = self.rank();
        (self.permutation.at(rank), writes)
    }

    fn rank(&mut self) -> u64 {
        match &self.ranks {
            Ranks::Keys(keys) => keys.draw(&mut self.random).unsigned_abs(),
            Ranks::Bell { deviation } => bell(&mut self.random, self.blocks, *deviation),
        }
    }
}

/// A rank of a normal distribution around the middle; what falls outside is drawn again.
fn bell(random: &mut Random, ranks: u64, deviation: f64) -> u64 {
    #[allow(clippy::cast_precision_loss)] // a file has fewer than 2^53 blocks
    let ranks = ranks as f64;
    loop {
        // Box and Muller, 1958; a fraction is below 1, so the logarithm's argument is above 0.
        let length = libm::sqrt(-2.0 * libm::log(1.0 - random.fraction()));
        let turn = libm::cos(2.0 * std::f64::consts::PI * random.fraction());
        let rank = (ranks / 2.0 + length * turn * deviation).floor();
        if (0.0..ranks).contains(&rank) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // just checked
            return rank as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const BLOCKS: u64 = 1000;
    const DRAWS: u32 = 200_000;

    /// Draws by rank, as shares.
    fn shares(distribution: FileDistribution) -> BTreeMap<u64, f64> {
        validate(&distribution).expect("good parameters");
        let mut choice = Choice::new(&distribution, BLOCKS, 0.0, (5, 0));
        let mut counts = BTreeMap::new();
        for _ in 0..DRAWS {
            *counts.entry(choice.rank()).or_insert(0.0) += 1.0 / f64::from(DRAWS);
        }
        counts
    }

    #[test]
    fn zipf_gives_rank_k_its_power_of_k() {
        let theta = 0.8;
        let whole: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
        let shares = shares(FileDistribution::Zipf { theta });
        for rank in [1_u32, 2, 3, 10, 100] {
            let expected = f64::from(rank).powf(-theta) / whole;
            let error = (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
            let share = shares[&u64::from(rank - 1)];
            assert!(
                (share - expected).abs() < 4.5 * error,
                "{rank}: {share} for {expected}"
            );
        }
    }

    #[test]
    fn pareto_gives_a_fifth_of_the_blocks_four_fifths_of_the_accesses() {
        let shares = shares(FileDistribution::Pareto { h: 0.2 });
        let hot: f64 = shares.range(..BLOCKS / 5).map(|(_, share)| share).sum();
        assert!((hot - 0.8).abs() < 0.006, "{hot}");
    }

    #[test]
    fn normal_has_the_deviation_asked_for_around_the_middle() {
        let shares = shares(FileDistribution::Normal {
            deviation_percent: 10.0,
        });
        #[allow(clippy::cast_precision_loss)] // small ranks
        let moment = |power: i32, around: f64| -> f64 {
            shares
                .iter()
                .map(|(rank, share)| (*rank as f64 + 0.5 - around).powi(power) * share)
                .sum()
        };
        let mean = moment(1, 0.0);
        assert!((mean - 500.0).abs() < 1.0, "{mean}");
        assert!(
            (moment(2, mean).sqrt() - 100.0).abs() < 0.8,
            "{}",
            moment(2, mean).sqrt()
        );
    }

    #[test]
    fn a_wide_bell_stays_inside_the_file_and_is_nearly_flat() {
        let shares = shares(FileDistribution::Normal {
            deviation_percent: 1000.0,
        });
        assert_eq!(shares.len(), 1000, "every block is met");
    }

    #[test]
    fn writes_have_their_share_and_jobs_have_streams_of_their_own() {
        let stream = |job| {
            let mut choice = Choice::new(&FileDistribution::Random {}, BLOCKS, 0.25, (5, job));
            (0..10_000).map(|_| choice.next()).collect::<Vec<_>>()
        };
        let writes = stream(0).iter().filter(|(_, writes)| *writes).count();
        assert!((2_300..2_700).contains(&writes), "{writes}");
        assert_ne!(stream(0), stream(1));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for distribution in [
            FileDistribution::Zipf { theta: 0.0 },
            FileDistribution::Zipf { theta: f64::NAN },
            FileDistribution::Pareto { h: 1.0 },
            FileDistribution::Normal {
                deviation_percent: 0.0,
            },
        ] {
            assert!(validate(&distribution).is_err(), "{distribution:?}");
        }
    }
}
