//! Keys drawn from a range by one of sysbench's distributions.
//!
//! Transcendental functions come from `libm` and not from the machine, so that equal seeds give equal data everywhere.

use fairtrial_protocol::oltp::Distribution;

use crate::error::LoadError;
use crate::random::Random;

/// More uniform draws per key cost time and change a bell curve by nothing visible.
const ITERATIONS_LIMIT: u32 = 1_000;

/// A range of keys and how often each is drawn.
#[derive(Clone, Debug)]
pub struct Keys {
    low: i64,
    high: i64,
    shape: KeyDistribution,
}

#[derive(Clone, Debug)]
enum KeyDistribution {
    Uniform,
    Gaussian {
        iterations: u32,
    },
    Special {
        iterations: u32,
        /// Share of draws that go to the hot part.
        hot_draws: f64,
        /// The hot part's share of the keys.
        hot: f64,
    },
    Pareto {
        power: f64,
    },
    Zipfian(Zipfian),
}

/// Says what is wrong with a distribution's parameters.
pub fn validate(distribution: &Distribution) -> Result<(), LoadError> {
    let iterations = |count: &u32| (1..=ITERATIONS_LIMIT).contains(count);
    let problem = match distribution {
        Distribution::Gaussian { iterations: count }
        | Distribution::Special {
            iterations: count, ..
        } if !iterations(count) => {
            format!("iterations must be between 1 and {ITERATIONS_LIMIT}, not {count}")
        }
        Distribution::Special { hot_percent, .. } if !(1..=100).contains(hot_percent) => {
            format!("hot_percent must be between 1 and 100, not {hot_percent}")
        }
        Distribution::Special {
            hot_draws_percent, ..
        } if *hot_draws_percent >= 100 => {
            format!("hot_draws_percent must be below 100, not {hot_draws_percent}")
        }
        Distribution::Pareto { h } if !(*h > 0.0 && *h < 1.0) => {
            format!("h must be between 0 and 1, not {h}")
        }
        Distribution::Zipfian { exponent } if !(exponent.is_finite() && *exponent >= 0.0) => {
            format!("exponent must be at least 0, not {exponent}")
        }
        _ => return Ok(()),
    };
    Err(LoadError::parameter("distribution", problem))
}

impl Keys {
    /// Keys from `low` to `high`, both included, by a distribution that [`validate`] has passed.
    pub fn new(distribution: &Distribution, low: i64, high: i64) -> Self {
        debug_assert!(low <= high);
        let shape = match *distribution {
            Distribution::Uniform {} => KeyDistribution::Uniform,
            Distribution::Gaussian { iterations } => KeyDistribution::Gaussian { iterations },
            Distribution::Special {
                iterations,
                hot_percent,
                hot_draws_percent,
            } => KeyDistribution::Special {
                iterations,
                hot_draws: f64::from(hot_draws_percent) / 100.0,
                hot: f64::from(hot_percent) / 100.0,
            },
            Distribution::Pareto { h } => KeyDistribution::Pareto {
                power: libm::log(h) / libm::log(1.0 - h),
            },
            Distribution::Zipfian { exponent } => {
                KeyDistribution::Zipfian(Zipfian::new(width(low, high), exponent))
            }
        };
        Self { low, high, shape }
    }

    /// Draws a key.
    pub fn draw(&self, random: &mut Random) -> i64 {
        let keys = width(self.low, self.high);
        let offset = match &self.shape {
            KeyDistribution::Uniform => return random.uniform(self.low, self.high),
            KeyDistribution::Gaussian { iterations } => mean(random, *iterations) * keys,
            KeyDistribution::Special {
                iterations,
                hot_draws,
                hot,
            } => special(random, keys - 1.0, *iterations, (*hot_draws, *hot)),
            KeyDistribution::Pareto { power } => libm::pow(random.fraction(), *power) * keys,
            KeyDistribution::Zipfian(zipfian) => zipfian.rank(random) - 1.0,
        };
        #[allow(clippy::cast_possible_truncation)]
        // a key's offset is below 2^32, and cut like sysbench's
        let offset = offset as i64;
        (self.low + offset).min(self.high)
    }
}

/// Number of keys.
#[allow(clippy::cast_precision_loss)] // keys are 32 bits wide
fn width(low: i64, high: i64) -> f64 {
    (high - low + 1) as f64
}

/// Mean of uniform draws.
fn mean(random: &mut Random, draws: u32) -> f64 {
    let sum: f64 = (0..draws).map(|_| random.fraction()).sum();
    sum / f64::from(draws)
}

/// sysbench's `special`: one draw decides between the bell over all keys and the hot part in the middle, and is also
/// the place in the hot part. As it decided for it, it is large: the hot part's first quarter (of 75 % hot draws) is
/// never met, in sysbench and here alike.
fn special(random: &mut Random, last: f64, iterations: u32, (hot_draws, hot): (f64, f64)) -> f64 {
    let draw = random.fraction();
    if draw < 1.0 - hot_draws {
        return mean(random, iterations) * last;
    }
    draw * (last * hot + 1.0) + last / 2.0 - last * hot / 2.0
}

/// Ranks by Zipf's law: rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996), with the integral of the hat written so that an exponent of 1 needs no
/// other formula but its limit.
#[derive(Clone, Debug)]
struct Zipfian {
    ranks: f64,
    exponent: f64,
    /// The hat's integral at the lower and upper end.
    ends: (f64, f64),
    /// Candidates this close above the draw need no second look.
    shortcut: f64,
}

impl Zipfian {
    fn new(ranks: f64, exponent: f64) -> Self {
        let mut zipfian = Self {
            ranks,
            exponent,
            ends: (0.0, 0.0),
            shortcut: 0.0,
        };
        zipfian.ends = (zipfian.integral(1.5) - 1.0, zipfian.integral(ranks + 0.5));
        let second = zipfian.integral(2.5) - zipfian.weight(2.0);
        zipfian.shortcut = 2.0 - zipfian.inverse(second);
        zipfian
    }

    fn rank(&self, random: &mut Random) -> f64 {
        let (low, high) = self.ends;
        loop {
            let area = high + random.fraction() * (low - high);
            let place = self.inverse(area);
            let rank = libm::round(place).clamp(1.0, self.ranks);
            if rank - place <= self.shortcut
                || area >= self.integral(rank + 0.5) - self.weight(rank)
            {
                return rank;
            }
        }
    }

    fn weight(&self, rank: f64) -> f64 {
        libm::pow(rank, -self.exponent)
    }

    fn integral(&self, place: f64) -> f64 {
        let (rest, logarithm) = (1.0 - self.exponent, libm::log(place));
        if rest == 0.0 {
            logarithm
        } else {
            libm::expm1(rest * logarithm) / rest
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 {
            libm::exp(area)
        } else {
            // Rounding may push the argument below the logarithm's domain, where the place is the range's end anyway.
            libm::exp(libm::log1p((rest * area).max(-1.0 + f64::EPSILON)) / rest)
        }
    }
}

#[cfg(test)]
mod tests;
