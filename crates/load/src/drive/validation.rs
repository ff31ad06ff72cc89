//! Arrivals that mean nothing are refused before anything starts.

use fairtrial_protocol::load::{Arrivals, RateStep, Search};

use crate::error::LoadError;

/// Rates beyond what any server here can be asked.
const RATE_LIMIT_PER_S: f64 = 1e8;

/// Longest thinking time: a day.
const THINK_LIMIT_S: f64 = 86_400.0;

/// Longest step, ramp, wave or probe: a year.
const LENGTH_LIMIT_S: f64 = 31_536_000.0;

/// A rate's and a time's smallest part: below half of it both are nothing.
const SMALLEST: f64 = 1e-9;

/// More steps are a replay.
const STEPS_LIMIT: usize = 1_000;

/// Closest bounds that a search can tell apart, and farthest that are a result.
const PRECISIONS: std::ops::RangeInclusive<f64> = 0.001..=1.0;

/// Refuses rates and times that mean nothing.
pub fn validate(arrivals: &Arrivals) -> Result<(), LoadError> {
    check(arrivals).map_err(|problem| LoadError::parameter("arrivals", problem))
}

fn check(arrivals: &Arrivals) -> Result<(), String> {
    match arrivals {
        Arrivals::Closed { think_s, .. } => within("think_s", *think_s, 0.0, THINK_LIMIT_S),
        Arrivals::Open { rate_per_s, .. } => rate("rate_per_s", *rate_per_s),
        Arrivals::Steps { steps, .. } => check_steps(steps),
        Arrivals::Ramp {
            from_per_s,
            to_per_s,
            over_s,
            ..
        } => {
            within("from_per_s", *from_per_s, 0.0, RATE_LIMIT_PER_S)?;
            within("to_per_s", *to_per_s, 0.0, RATE_LIMIT_PER_S)?;
            rate(
                "the larger of from_per_s and to_per_s",
                from_per_s.max(*to_per_s),
            )?;
            length("over_s", *over_s)
        }
        Arrivals::Sine {
            mean_per_s,
            amplitude_per_s,
            period_s,
            ..
        } => {
            rate("mean_per_s", *mean_per_s)?;
            within("amplitude_per_s", *amplitude_per_s, 0.0, *mean_per_s)?;
            length("period_s", *period_s)
        }
        Arrivals::Replay { .. } => Ok(()),
        Arrivals::Search { search } => check_search(search),
    }
}

fn check_steps(steps: &[RateStep]) -> Result<(), String> {
    if steps.is_empty() || steps.len() > STEPS_LIMIT {
        return Err(format!(
            "steps must be 1 to {STEPS_LIMIT}, not {}",
            steps.len()
        ));
    }
    for step in steps {
        within("rate_per_s", step.rate_per_s, 0.0, RATE_LIMIT_PER_S)?;
        length("length_s", step.length_s)?;
    }
    let fastest = steps.iter().map(|step| step.rate_per_s).fold(0.0, f64::max);
    rate("the largest rate_per_s of the steps", fastest)
}

fn check_search(search: &Search) -> Result<(), String> {
    rate("lowest_per_s", search.lowest_per_s)?;
    rate("highest_per_s", search.highest_per_s)?;
    within(
        "lowest_per_s",
        search.lowest_per_s,
        0.0,
        search.highest_per_s,
    )?;
    length("limit_s", search.limit_s)?;
    length("window_s", search.window_s)?;
    within("settle_s", search.settle_s, 0.0, LENGTH_LIMIT_S)?;
    within(
        "precision",
        search.precision,
        *PRECISIONS.start(),
        *PRECISIONS.end(),
    )
}

fn rate(name: &str, value: f64) -> Result<(), String> {
    within(name, value, SMALLEST, RATE_LIMIT_PER_S)
}

fn length(name: &str, value: f64) -> Result<(), String> {
    within(name, value, SMALLEST, LENGTH_LIMIT_S)
}

fn within(name: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "{name} must be between {low} and {high}, not {value}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::load::{Percentile, Spacing};

    use super::*;

    const SPACING: Spacing = Spacing::Constant;

    fn refused(arrivals: &Arrivals, about: &str) {
        let error = validate(arrivals).expect_err("refused").to_string();
        assert!(error.contains(about), "{error}");
    }

    fn steps(steps: &[(f64, f64)]) -> Arrivals {
        let step = |&(rate_per_s, length_s): &(f64, f64)| RateStep {
            rate_per_s,
            length_s,
        };
        Arrivals::Steps {
            steps: steps.iter().map(step).collect(),
            spacing: SPACING,
        }
    }

    fn ramp(from_per_s: f64, to_per_s: f64, over_s: f64) -> Arrivals {
        Arrivals::Ramp {
            from_per_s,
            to_per_s,
            over_s,
            spacing: SPACING,
        }
    }

    fn sine(mean_per_s: f64, amplitude_per_s: f64, period_s: f64) -> Arrivals {
        Arrivals::Sine {
            mean_per_s,
            amplitude_per_s,
            period_s,
            spacing: SPACING,
        }
    }

    #[test]
    fn rates_and_times_that_mean_nothing_are_refused() {
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            let open = Arrivals::Open {
                rate_per_s,
                spacing: SPACING,
            };
            refused(&open, "rate_per_s");
        }
        for think_s in [-1.0, f64::NAN, 1e6] {
            refused(
                &Arrivals::Closed {
                    think_s,
                    spacing: SPACING,
                },
                "think_s",
            );
        }
        assert!(validate(&Arrivals::default()).is_ok());
    }

    #[test]
    fn steps_ramps_and_waves_that_mean_nothing_are_refused() {
        refused(&steps(&[]), "1 to 1000");
        refused(&steps(&[(0.0, 1.0), (0.0, 2.0)]), "the largest rate_per_s");
        refused(&steps(&[(5.0, 1.0), (-1.0, 2.0)]), "rate_per_s");
        refused(&steps(&[(5.0, 0.0)]), "length_s");
        refused(&ramp(0.0, 0.0, 1.0), "the larger");
        refused(&ramp(-1.0, 5.0, 1.0), "from_per_s");
        refused(&ramp(1.0, f64::NAN, 1.0), "to_per_s");
        refused(&ramp(1.0, 5.0, 0.0), "over_s");
        refused(&sine(0.0, 0.0, 1.0), "mean_per_s");
        refused(&sine(5.0, 5.1, 1.0), "amplitude_per_s");
        refused(&sine(5.0, 1.0, -1.0), "period_s");
        for good in [
            steps(&[(0.0, 1.0), (5.0, 1.0)]),
            ramp(5.0, 0.0, 1.0),
            sine(5.0, 5.0, 1.0),
        ] {
            assert!(validate(&good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn searches_that_mean_nothing_are_refused() {
        let good = Search {
            percentile: Percentile::P99,
            limit_s: 0.01,
            lowest_per_s: 10.0,
            highest_per_s: 100.0,
            precision: 0.05,
            window_s: 1.0,
            settle_s: 0.0,
            spacing: SPACING,
        };
        let search = |search| Arrivals::Search { search };
        assert!(validate(&search(good)).is_ok());
        refused(
            &search(Search {
                lowest_per_s: 0.0,
                ..good
            }),
            "lowest_per_s",
        );
        refused(
            &search(Search {
                lowest_per_s: 101.0,
                ..good
            }),
            "lowest_per_s",
        );
        refused(
            &search(Search {
                limit_s: 0.0,
                ..good
            }),
            "limit_s",
        );
        refused(
            &search(Search {
                precision: 0.0,
                ..good
            }),
            "precision",
        );
        refused(
            &search(Search {
                window_s: f64::NAN,
                ..good
            }),
            "window_s",
        );
        refused(
            &search(Search {
                settle_s: -1.0,
                ..good
            }),
            "settle_s",
        );
    }
}
