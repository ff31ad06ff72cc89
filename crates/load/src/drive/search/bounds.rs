//! Which rate to probe next, from the verdicts so far: the logic of a search, without any driving.
//!
//! A probe is a measurement, so its verdict may be wrong, and a bisection never comes back to what a wrong verdict cut
//! away. A bound is therefore believed only once two probes of its rate agree; where the first two do not, the third
//! decides. Up to the first miss a rate that was met is not repeated, because the next one questions it anyway; it is
//! as soon as it is to be the lower bound.

/// Probes of one rate that must agree before it is a bound.
const AGREEING: u32 = 2;

/// Until a rate misses the objective, the next is this much higher: few probes far below the bound, and one at most
/// twice above it, which a system recovers from.
const GROWTH: f64 = 2.0;

/// Verdicts on one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RateVerdicts {
    rate_per_s: f64,
    met: u32,
    missed: u32,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// Probe this rate, per second.
    Probe(f64),
    /// The search is over.
    Done,
}

/// Verdicts so far, and the bounds that follow from them.
#[derive(Clone, Debug)]
pub struct RateBounds {
    lowest_per_s: f64,
    highest_per_s: f64,
    precision: f64,
    /// By rate, ascending.
    tallies: Vec<RateVerdicts>,
}

impl RateBounds {
    /// A search between two rates that ends when its bounds differ by no more than `precision` of the lower one.
    pub fn new((lowest_per_s, highest_per_s): (f64, f64), precision: f64) -> Self {
        Self {
            lowest_per_s,
            highest_per_s,
            precision,
            tallies: Vec::new(),
        }
    }

    /// Says whether a probe of a rate met the objective.
    pub fn tell(&mut self, rate_per_s: f64, met: bool) {
        let position = self
            .tallies
            .binary_search_by(|tally| tally.rate_per_s.total_cmp(&rate_per_s));
        let index = position.unwrap_or_else(|index| {
            let fresh = RateVerdicts {
                rate_per_s,
                met: 0,
                missed: 0,
            };
            self.tallies.insert(index, fresh);
            index
        });
        let tally = &mut self.tallies[index];
        tally.met += u32::from(met);
        tally.missed += u32::from(!met);
    }

    /// The lowest rate that is believed to miss the objective.
    pub fn missed_per_s(&self) -> Option<f64> {
        let missed = self.tallies.iter().find(|tally| tally.missed >= AGREEING);
        missed.map(|tally| tally.rate_per_s)
    }

    /// The highest rate that is believed to meet it, below all that are believed not to.
    pub fn met_per_s(&self) -> Option<f64> {
        let below = self.below();
        let met = below.iter().rfind(|tally| tally.met >= AGREEING);
        met.map(|tally| tally.rate_per_s)
    }

    /// Verdicts on the rates below the lowest that is believed to miss.
    fn below(&self) -> &[RateVerdicts] {
        let end = self
            .tallies
            .iter()
            .position(|tally| tally.missed >= AGREEING)
            .unwrap_or(self.tallies.len());
        &self.tallies[..end]
    }

    /// What to do next.
    pub fn next(&self) -> SearchStep {
        let missed_per_s = self.missed_per_s();
        let Some(top) = self.below().last() else {
            return match missed_per_s {
                None => SearchStep::Probe(self.lowest_per_s),
                Some(_) => SearchStep::Done, // not even the lowest
            };
        };
        let believed = top.met >= AGREEING;
        match missed_per_s {
            None if top.missed > 0 && !believed => SearchStep::Probe(top.rate_per_s),
            None if top.rate_per_s < self.highest_per_s => {
                SearchStep::Probe((top.rate_per_s * GROWTH).min(self.highest_per_s))
            }
            None if believed => SearchStep::Done, // even the highest
            None => SearchStep::Probe(top.rate_per_s),
            Some(_) if !believed => SearchStep::Probe(top.rate_per_s),
            Some(missed_per_s) if missed_per_s <= top.rate_per_s * (1.0 + self.precision) => {
                SearchStep::Done
            }
            Some(missed_per_s) => SearchStep::Probe((top.rate_per_s * missed_per_s).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const RANGE: (f64, f64) = (100.0, 20_000.0);
    const PRECISION: f64 = 0.05;

    /// Searches a system whose verdicts a function gives; returns the bounds and the rates probed.
    fn search(mut meets: impl FnMut(f64) -> bool) -> (RateBounds, Vec<f64>) {
        let mut bounds = RateBounds::new(RANGE, PRECISION);
        let mut probed = Vec::new();
        while let SearchStep::Probe(rate_per_s) = bounds.next() {
            probed.push(rate_per_s);
            bounds.tell(rate_per_s, meets(rate_per_s));
            assert!(probed.len() < 100, "it ends: {probed:?}");
        }
        (bounds, probed)
    }

    #[test]
    fn bounds_enclose_a_known_capacity_within_the_precision_and_in_few_probes() {
        for capacity in [100.0, 100.1, 777.0, 1_600.0, 12_345.6, 19_999.0] {
            let (bounds, probed) = search(|rate_per_s| rate_per_s <= capacity);
            let (met, missed) = (bounds.met_per_s(), bounds.missed_per_s());
            let (met, missed) = (met.expect("met"), missed.expect("missed"));
            assert!(
                met <= capacity && capacity < missed,
                "{met} {capacity} {missed}"
            );
            assert!(missed / met <= 1.0 + PRECISION);
            assert!(probed.len() <= 21, "{}: {probed:?}", probed.len());
        }
    }

    #[test]
    fn the_way_of_a_search_is_as_documented() {
        let (_, probed) = search(|rate_per_s| rate_per_s <= 350.0);
        assert_eq!(
            probed[..6],
            [
                100.0,
                200.0,
                400.0,
                400.0,
                200.0,
                (200.0_f64 * 400.0).sqrt()
            ]
        );
        assert_eq!(
            probed[5].to_bits(),
            probed[6].to_bits(),
            "each bound is probed twice"
        );
    }

    #[test]
    fn a_capacity_outside_the_range_is_said_to_be_outside() {
        let (bounds, probed) = search(|_| false);
        assert_eq!(
            (bounds.met_per_s(), bounds.missed_per_s()),
            (None, Some(100.0))
        );
        assert_eq!(probed, [100.0, 100.0]);
        let (bounds, probed) = search(|_| true);
        assert_eq!(
            (bounds.met_per_s(), bounds.missed_per_s()),
            (Some(20_000.0), None)
        );
        assert_eq!(probed[probed.len() - 2..], [20_000.0, 20_000.0]);
    }

    #[test]
    fn one_wrong_verdict_anywhere_changes_nothing() {
        let capacity = 3_000.0;
        let (right, probed) = search(|rate_per_s| rate_per_s <= capacity);
        for wrong in 0..probed.len() {
            let mut probe = 0;
            let (bounds, _) = search(|rate_per_s| {
                probe += 1;
                (rate_per_s <= capacity) != (probe - 1 == wrong)
            });
            let (met, missed) = (bounds.met_per_s(), bounds.missed_per_s());
            let enclosed = met.is_some_and(|met| met <= capacity)
                && missed.is_some_and(|missed| capacity < missed);
            assert!(
                enclosed,
                "probe {wrong} wrong: {met:?} {missed:?}, not {right:?}"
            );
        }
    }

    #[test]
    fn noise_near_the_bound_leaves_the_result_near_it() {
        // A probe errs with 40 % at the capacity, and half as often for each 5 % away from it.
        let capacity = 3_000.0_f64;
        let mut random = Random::derive(1, "noise", &[]);
        let mut off = Vec::new();
        for _ in 0..400 {
            let (bounds, _) = search(|rate_per_s| {
                let away = (rate_per_s / capacity).ln().abs() / 0.05;
                (rate_per_s <= capacity) != (random.fraction() < 0.4 * (-away).exp2())
            });
            off.push((bounds.met_per_s().expect("found") / capacity).ln().abs());
        }
        off.sort_by(f64::total_cmp);
        assert!(
            off[200] < 0.06 && off[380] < 0.2,
            "{} {}",
            off[200],
            off[380]
        );
    }

    #[test]
    fn a_range_of_one_rate_is_a_test_of_it() {
        for met in [true, false] {
            let mut bounds = RateBounds::new((500.0, 500.0), PRECISION);
            for _ in 0..2 {
                assert_eq!(bounds.next(), SearchStep::Probe(500.0));
                bounds.tell(500.0, met);
            }
            assert_eq!(bounds.next(), SearchStep::Done);
            assert_eq!(bounds.met_per_s().is_some(), met);
        }
    }
}
