//! Rates that change: from a number of transactions to the time at which that many should have begun.
//!
//! A process whose rate changes is one of rate 1 whose time is stretched (time change by the cumulative rate): the
//! arrival is where the cumulative rate passes what the unit process has counted. Nothing is drawn in vain, and nothing
//! adds up errors: cumulative counts are whole numbers of 10⁻¹⁸ transactions, times are whole nanoseconds.

use std::f64::consts::TAU;

use fairtrial_protocol::load::{Arrivals, RateStep};

/// One transaction, in the unit of cumulative counts: a rate in 10⁻⁹/s times a nanosecond.
pub const TRANSACTION: u128 = 1_000_000_000_000_000_000;

/// Parts of a second, and of a rate of one per second.
const PARTS: f64 = 1e9;

/// Newton's method on the sine doubles its digits at each turn and halves the interval where it cannot: 64 turns end it.
const TURNS: u32 = 64;

/// A rate over time, from the beginning of a drive.
#[derive(Clone, Debug)]
pub enum RateCurve {
    /// Steps, from the beginning again after the last.
    Steps {
        /// In their order.
        steps: Vec<ConstantRate>,
        /// Transactions of one round.
        content: u128,
        /// Length of one round, nanoseconds.
        length_ns: u128,
    },
    /// From one rate evenly to another, which stays.
    Ramp {
        /// First rate, per second.
        from: f64,
        /// Last rate, per second.
        to: f64,
        /// Length of the change, nanoseconds.
        over_ns: u128,
        /// Transactions during the change.
        content: u128,
    },
    /// A wave around a mean.
    Sine {
        /// Amplitude as a share of the mean.
        swing: f64,
        /// Transactions of one wave.
        content: u128,
        /// Length of one wave, nanoseconds.
        period_ns: u128,
    },
}

/// A constant rate for some time.
#[derive(Clone, Copy, Debug)]
pub struct ConstantRate {
    start_ns: u128,
    before: u128,
    content: u128,
    rate: u128,
}

impl RateCurve {
    /// The shape of arrivals whose rate changes; of no others.
    pub fn new(arrivals: &Arrivals) -> Option<Self> {
        match arrivals {
            Arrivals::Steps { steps, .. } => Some(Self::steps(steps)),
            Arrivals::Ramp {
                from_per_s,
                to_per_s,
                over_s,
                ..
            } => Some(Self::Ramp {
                from: *from_per_s,
                to: *to_per_s,
                over_ns: parts(*over_s),
                content: (parts(*from_per_s) + parts(*to_per_s)) * parts(*over_s) / 2,
            }),
            Arrivals::Sine {
                mean_per_s,
                amplitude_per_s,
                period_s,
                ..
            } => Some(Self::Sine {
                swing: amplitude_per_s / mean_per_s,
                content: parts(*mean_per_s) * parts(*period_s),
                period_ns: parts(*period_s),
            }),
            _ => None,
        }
    }

    fn steps(periods: &[RateStep]) -> Self {
        let (mut start_ns, mut before) = (0, 0);
        let mut steps = Vec::with_capacity(periods.len());
        for step in periods {
            let (rate, length_ns) = (parts(step.rate_per_s), parts(step.length_s));
            let content = rate * length_ns;
            steps.push(ConstantRate {
                start_ns,
                before,
                content,
                rate,
            });
            start_ns += length_ns;
            before += content;
        }
        Self::Steps {
            steps,
            content: before,
            length_ns: start_ns,
        }
    }

    /// The last nanosecond at which no more than `count` should have begun, which is when the next one should; `None`
    /// if that many never will be.
    pub fn time_ns(&self, count: u128) -> Option<i64> {
        let time_ns = match self {
            Self::Steps {
                steps,
                content,
                length_ns,
            } => {
                let rest = count % content;
                // A pause has no content, so what arrives at its beginning arrives at its end.
                let index = steps.partition_point(|step| step.before + step.content <= rest);
                let step = &steps[index];
                count / content * length_ns + step.start_ns + (rest - step.before) / step.rate
            }
            Self::Ramp {
                from,
                to,
                over_ns,
                content,
            } => {
                if count < *content {
                    within_ramp_ns(*from, *to, *over_ns, count)
                } else {
                    let rate = parts(*to);
                    over_ns + (count - content).checked_div(rate)?
                }
            }
            Self::Sine {
                swing,
                content,
                period_ns,
            } => {
                let share = fraction(count % content) / fraction(*content);
                let within_ns = scaled(phase(*swing, share * TAU) / TAU, *period_ns);
                count / content * period_ns + within_ns
            }
        };
        Some(i64::try_from(time_ns).unwrap_or(i64::MAX))
    }
}

/// Solves `from · t + (to − from) / over · t² / 2 = count`, in the form that does not cancel.
fn within_ramp_ns(from: f64, to: f64, over_ns: u128, count: u128) -> u128 {
    let count = fraction(count) / fraction(TRANSACTION);
    let slope = (to - from) / (fraction(over_ns) / PARTS);
    let root = (from * from + 2.0 * slope * count).max(0.0).sqrt();
    if count == 0.0 {
        return 0;
    }
    parts(2.0 * count / (from + root)).min(over_ns - 1)
}

/// Solves `phase + swing · (1 − cos phase) = mean` for a phase in [0, 2π]; the left side grows, as `swing` ≤ 1.
fn phase(swing: f64, mean: f64) -> f64 {
    let (mut low, mut high) = (0.0, TAU);
    let mut phase = mean;
    for _ in 0..TURNS {
        let excess = phase + swing * (1.0 - libm::cos(phase)) - mean;
        if excess > 0.0 {
            high = phase;
        } else {
            low = phase;
        }
        let slope = 1.0 + swing * libm::sin(phase);
        let newton = phase - excess / slope;
        let next = if newton > low && newton < high {
            newton
        } else {
            f64::midpoint(low, high)
        };
        if next.total_cmp(&phase).is_eq() {
            break;
        }
        phase = next;
    }
    phase
}

/// A time or a rate in whole parts. Both lie between 0 and 10⁹, which validation has seen to.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn parts(value: f64) -> u128 {
    // The digits that a study writes are decimal: 0.3 is three tenths, not the nearest double below.
    (value * PARTS).round() as u128
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a time
fn scaled(share: f64, length_ns: u128) -> u128 {
    ((share * fraction(length_ns)) as u128).min(length_ns - 1)
}

#[allow(clippy::cast_precision_loss)] // one part in 2^53 of a wave or a ramp
fn fraction(count: u128) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::load::Spacing;

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// More than any test expects.
    const MOST_COUNTED: u128 = 100_000;

    fn shape(arrivals: &Arrivals) -> RateCurve {
        RateCurve::new(arrivals).expect("its rate changes")
    }

    fn steps(steps: &[(f64, f64)]) -> RateCurve {
        let step = |&(rate_per_s, length_s): &(f64, f64)| RateStep {
            rate_per_s,
            length_s,
        };
        shape(&Arrivals::Steps {
            steps: steps.iter().map(step).collect(),
            spacing: Spacing::Constant,
        })
    }

    fn ramp(from_per_s: f64, to_per_s: f64, over_s: f64) -> RateCurve {
        shape(&Arrivals::Ramp {
            from_per_s,
            to_per_s,
            over_s,
            spacing: Spacing::Constant,
        })
    }

    fn sine(mean_per_s: f64, amplitude_per_s: f64, period_s: f64) -> RateCurve {
        shape(&Arrivals::Sine {
            mean_per_s,
            amplitude_per_s,
            period_s,
            spacing: Spacing::Constant,
        })
    }

    /// How many whole numbers the cumulative rate passes before a time.
    fn before(shape: &RateCurve, time_ns: i64) -> u128 {
        (0..MOST_COUNTED)
            .take_while(|count| {
                shape
                    .time_ns(count * TRANSACTION)
                    .is_some_and(|at| at < time_ns)
            })
            .last()
            .map_or(0, |last| last + 1)
    }

    #[test]
    fn each_step_has_exactly_its_rate_times_its_length_and_a_pause_has_nothing() {
        let shape = steps(&[(10.0, 0.3), (0.0, 2.0), (0.1, 20.0), (300.0, 0.01)]);
        let starts = [0, 3, 23, 223].map(|tenth| tenth * SECOND_NS / 10);
        assert_eq!(starts.map(|start| before(&shape, start)), [0, 3, 3, 5]);
        let round_ns = starts[3] + SECOND_NS / 100;
        assert_eq!(before(&shape, round_ns), 8);
        assert_eq!(
            before(&shape, 2 * round_ns),
            16,
            "and from the beginning again"
        );
        // The fourth is due where the pause begins, so it waits for its end.
        assert_eq!(shape.time_ns(3 * TRANSACTION), Some(starts[2]));
    }

    #[test]
    fn steps_do_not_drift_in_ten_years() {
        let shape = steps(&[(1.0 / 3.0, 0.7), (7.0, 0.1)]);
        let rounds = 10 * 365 * 86_400 * 10 / 8_u128;
        let of_a_round = 333_333_333 * 700_000_000 + 7_000_000_000 * 100_000_000;
        let round_ns = i64::try_from(rounds * 800_000_000).expect("ten years fit");
        assert_eq!(shape.time_ns(rounds * of_a_round), Some(round_ns));
        assert!(shape.time_ns(rounds * of_a_round - 1) < Some(round_ns));
    }

    #[test]
    fn a_ramp_has_its_mean_rate_times_its_length_and_stays_where_it_ends() {
        let up = ramp(0.0, 100.0, 10.0);
        let counts = [1, 5, 10, 12].map(|second| before(&up, second * SECOND_NS));
        assert_eq!(counts, [5, 125, 500, 700]);
        let down = ramp(100.0, 0.0, 10.0);
        let counts = [5, 10, 9_999].map(|second| before(&down, second * SECOND_NS));
        assert_eq!(counts, [375, 500, 500]);
        assert_eq!(
            down.time_ns(500 * TRANSACTION),
            None,
            "none arrives any more"
        );
        assert_eq!(before(&ramp(20.0, 20.0, 1.0), 3 * SECOND_NS), 60);
    }

    #[test]
    fn times_on_a_ramp_are_the_inverse_of_its_cumulative_rate() {
        for (from, to) in [(3.0, 4_000.0), (4_000.0, 3.0), (0.0, 1e6), (1e6, 0.0)] {
            let shape = ramp(from, to, 7.0);
            for count in (1_u32..10_000).step_by(997).map(f64::from) {
                let time_ns = shape
                    .time_ns(parts(count) * 1_000_000_000)
                    .expect("it comes");
                #[allow(clippy::cast_precision_loss)]
                let seconds = time_ns as f64 / 1e9;
                let cumulated = from * seconds + (to - from) / 7.0 * seconds * seconds / 2.0;
                let rate = from + (to - from) / 7.0 * seconds;
                assert!(
                    (cumulated - count).abs() <= rate * 2e-9 + 1e-6,
                    "{from} {to} {count}"
                );
            }
        }
    }

    #[test]
    fn a_wave_has_its_mean_in_each_period_and_its_integral_in_each_quarter() {
        // Over the first half the integral of the swing is amplitude · period / π: 100 · 10 / π = 318.3.
        let shape = sine(200.0, 100.0, 10.0);
        let counts = [25, 50, 75, 100, 1_000].map(|tenth| before(&shape, tenth * SECOND_NS / 10));
        assert_eq!(counts, [660, 1_319, 1_660, 2_000, 20_000]);
    }

    #[test]
    fn times_on_a_wave_are_the_inverse_of_its_cumulative_rate_even_where_the_rate_is_nothing() {
        for swing in [0.0, 0.5, 0.999, 1.0] {
            for step in 0..=1_000 {
                let mean = f64::from(step) / 1_000.0 * TAU;
                let phase = phase(swing, mean);
                let value = phase + swing * (1.0 - libm::cos(phase));
                assert!((value - mean).abs() < 1e-13, "{swing} {mean}: {value}");
            }
        }
    }
}
