//! A search for the highest rate that meets an objective: drives at constant rates, one after the other.
//!
//! Each probe is a drive with users, connections and files of its own, so nothing that waited in one is felt in the
//! next but by the server, which the probe's settling time is for.

mod bounds;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fairtrial_protocol::load::{
    Arrivals, Drive, Driven, Percentile, Probe, Progress, Quantiles, Search, Searched,
};
use hdrhistogram::Histogram;

use self::bounds::{RateBounds, SearchStep};
use super::files::write_result;
use super::once::{check_arrivals, once};
use super::recorder::Slot;
use crate::error::LoadError;
use crate::progress::say;
use crate::random::Random;
use crate::stop::end_signal;
use crate::workload::Workload;

/// Files of the deciding probe that become the drive's own, where there are any.
const FILES: [&str; 3] = ["latency.hlog", "lateness.hlog", "timeline.arrows"];

/// Searches; leaves a directory for each probe, and beside them the files of the last probe at the rate found (of the
/// last at all where none met the objective).
pub fn search<W: Workload>(
    parameters: &Drive,
    search: &Search,
    make: impl Fn(&Drive) -> Result<W, LoadError>,
    progress: &mut dyn Write,
) -> Result<Driven, LoadError> {
    check_arrivals(parameters)?;
    if parameters.duration_s.is_some() || parameters.transactions.is_some() {
        return Err(LoadError::parameter(
            "duration_s",
            "a search has windows of its own: leave duration_s and transactions out",
        ));
    }
    let end_signal = end_signal()?;
    let mut bounds = RateBounds::new(
        (search.lowest_per_s, search.highest_per_s),
        search.precision,
    );
    let mut searched = Searched {
        asked: *search,
        met_per_s: None,
        missed_per_s: None,
        complete: false,
        probes: Vec::new(),
    };
    let mut results = Vec::new();
    while let SearchStep::Probe(rate_per_s) = bounds.next() {
        let probe_drive = probe_drive(parameters, search, rate_per_s, searched.probes.len());
        create(&probe_drive)?;
        let number = u32::try_from(searched.probes.len() + 1).unwrap_or(u32::MAX);
        say(
            progress,
            &Progress::Probing {
                probe: number,
                rate_per_s,
            },
        )?;
        let (driven, window) = once(
            &probe_drive,
            make(&probe_drive)?,
            Some(search.limit_s),
            progress,
        )?;
        if end_signal.load(Ordering::Relaxed) {
            break; // a window cut short is no verdict
        }
        let probe = judged(search, &probe_drive, &driven, &window);
        bounds.tell(rate_per_s, probe.met);
        say(progress, &report(number, search, &probe, &bounds))?;
        searched.probes.push(probe);
        results.push(driven);
    }
    searched.complete = bounds.next() == SearchStep::Done;
    (searched.met_per_s, searched.missed_per_s) = (bounds.met_per_s(), bounds.missed_per_s());
    finish(parameters, searched, results)
}

/// What to say of a probe that was judged.
fn report(number: u32, search: &Search, probe: &Probe, bounds: &RateBounds) -> Progress {
    Progress::Probed {
        probe: number,
        rate_per_s: probe.rate_per_s,
        percentile: search.percentile,
        latency_ns: probe.latency.map(|latency| latency.of(search.percentile)),
        met: probe.met,
        met_per_s: bounds.met_per_s(),
        missed_per_s: bounds.missed_per_s(),
    }
}

/// The probe whose window is the drive's: the last that met the objective at the rate found, else the last.
fn deciding(searched: &Searched) -> Option<usize> {
    let is_met_there = |probe: &Probe| probe.met && Some(probe.rate_per_s) == searched.met_per_s;
    searched
        .probes
        .iter()
        .rposition(is_met_there)
        .or_else(|| searched.probes.len().checked_sub(1))
}

/// The drive of one probe. Its seed is its own: probes with equal draws would find what they ask for in a cache.
fn probe_drive(parameters: &Drive, search: &Search, rate_per_s: f64, number: usize) -> Drive {
    let mut random = Random::derive(parameters.seed, "probe", &[number as u64]);
    let seed = random.uniform(0, i64::MAX).unsigned_abs();
    let directory = Path::new(&parameters.output_directory).join(name(number));
    Drive {
        seed,
        ramp_up_s: if number == 0 {
            parameters.ramp_up_s.max(search.settle_s)
        } else {
            search.settle_s
        },
        ramp_up_transactions: None,
        duration_s: Some(search.window_s),
        arrivals: Arrivals::Open {
            rate_per_s,
            spacing: search.spacing,
        },
        output_directory: directory.to_string_lossy().into_owned(),
        ..parameters.clone()
    }
}

fn name(number: usize) -> String {
    format!("probes/{:02}", number + 1)
}

fn create(probe_drive: &Drive) -> Result<(), LoadError> {
    let path = Path::new(&probe_drive.output_directory);
    std::fs::create_dir_all(path).map_err(|source| LoadError::Output {
        path: path.to_owned(),
        source,
    })
}

/// What a probe has measured, and whether that meets the objective.
fn judged(search: &Search, probe_drive: &Drive, driven: &Driven, window: &Slot) -> Probe {
    let arrived = driven.arrivals.unwrap_or_default();
    let outcomes = driven.transactions.values();
    let done = outcomes
        .clone()
        .map(|outcome| outcome.committed + outcome.rolled_back)
        .sum();
    let timed_out = arrived.timed_out.unwrap_or_default();
    let unserved = outcomes.map(|outcome| outcome.failed).sum::<u64>()
        + timed_out
        + arrived.overdue.unwrap_or_default();
    let lost = driven
        .errors
        .iter()
        .filter(|error| error.kind == "connection");
    let busy = driven
        .loops
        .iter()
        .map(|each| each.busy_s / (each.busy_s + each.idle_s));
    let path = Path::new(&probe_drive.output_directory);
    Probe {
        directory: [
            "probes",
            &path.file_name().unwrap_or_default().to_string_lossy(),
        ]
        .join("/"),
        rate_per_s: match probe_drive.arrivals {
            Arrivals::Open { rate_per_s, .. } => rate_per_s,
            _ => 0.0,
        },
        window: driven.window,
        offered: arrived.offered,
        done,
        waiting: arrived.waiting,
        timed_out,
        latency: quantiles(&window.latencies),
        lateness: quantiles(std::slice::from_ref(&window.lateness)),
        client_busy_share: busy.filter(|share| share.is_finite()).reduce(f64::max),
        connections_lost: lost.map(|error| error.count).sum(),
        met: is_met(search, &window.latencies, unserved),
    }
}

/// Whether the objective's percentile is within its limit. Those `unserved` have no latency, and exceed any limit: else
/// a system that lets most fail or wait for ever would meet every objective. Who is younger than the limit when the
/// window is over says nothing yet, and is not among them.
fn is_met(search: &Search, histograms: &[Histogram<u32>], unserved: u64) -> bool {
    let is_within = |highest_ns| Duration::from_nanos(highest_ns).as_secs_f64() <= search.limit_s;
    let within: u64 = histograms
        .iter()
        .flat_map(|histogram| {
            let steps = histogram.iter_recorded();
            steps.filter(move |step| {
                is_within(histogram.highest_equivalent(step.value_iterated_to()))
            })
        })
        .map(|step| step.count_since_last_iteration())
        .sum();
    let all = unserved + histograms.iter().map(Histogram::len).sum::<u64>();
    within >= rank(all, search.percentile)
}

/// Percentiles of all these together, in the record's definition (highest value equivalent to the observation whose
/// rank is the percentile's share of the count, rounded half up); nothing without observations.
fn quantiles(histograms: &[Histogram<u32>]) -> Option<Quantiles> {
    let mut merged: Option<Histogram<u32>> = None;
    for histogram in histograms {
        match &mut merged {
            None => merged = Some(histogram.clone()),
            Some(merged) => merged.add(histogram).ok()?,
        }
    }
    let merged = merged.filter(|merged| !merged.is_empty())?;
    Some(Quantiles {
        p50_ns: value_at(&merged, Percentile::P50),
        p95_ns: value_at(&merged, Percentile::P95),
        p99_ns: value_at(&merged, Percentile::P99),
        p999_ns: value_at(&merged, Percentile::P999),
        max_ns: merged.max(),
    })
}

/// The rank of a percentile among so many observations, from 1.
fn rank(count: u64, percentile: Percentile) -> u64 {
    let per_mille = match percentile {
        Percentile::P50 => 500,
        Percentile::P95 => 950,
        Percentile::P99 => 990,
        Percentile::P999 => 999,
    };
    ((count * per_mille + 500) / 1_000).max(1)
}

fn value_at(histogram: &Histogram<u32>, percentile: Percentile) -> u64 {
    let rank = rank(histogram.len(), percentile);
    let mut cumulative = 0;
    for step in histogram.iter_recorded() {
        cumulative += step.count_since_last_iteration();
        if cumulative >= rank {
            return histogram.highest_equivalent(step.value_iterated_to());
        }
    }
    histogram.max()
}

/// Makes the deciding probe's files the drive's own, with the search in its result.
fn finish(
    parameters: &Drive,
    searched: Searched,
    mut results: Vec<Driven>,
) -> Result<Driven, LoadError> {
    let directory = Path::new(&parameters.output_directory);
    let Some(index) = deciding(&searched) else {
        return Err(LoadError::Ended);
    };
    let (probe, driven) = (&searched.probes[index], results.swap_remove(index));
    for file in FILES {
        let (from, to) = (
            directory.join(&probe.directory).join(file),
            directory.join(file),
        );
        std::fs::copy(&from, &to).map_err(|source| LoadError::Output { path: to, source })?;
    }
    let driven = Driven {
        search: Some(searched),
        ..driven
    };
    write_result(directory, &driven)?;
    Ok(driven)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_that_the_record_gives() {
        // The example of the Python side: rank 99 of 100 is the largest but one, rank 9.5 of 10 rounds up to 10.
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds");
        for value in 1..=100 {
            histogram.record(value).expect("inside the bounds");
        }
        let single = quantiles(&[histogram.clone()]).expect("observations");
        let expected = [50, 95, 99, 100, 100];
        assert_eq!(
            [
                single.p50_ns,
                single.p95_ns,
                single.p99_ns,
                single.p999_ns,
                single.max_ns
            ],
            expected
        );
        let doubled = quantiles(&[histogram.clone(), histogram]).expect("observations");
        assert_eq!(doubled.p99_ns, 99);
        assert_eq!(quantiles(&[Histogram::new(3).expect("bounds")]), None);
    }

    /// Whether so many that took a millisecond and so many without a latency meet a limit of 50 ms.
    fn is_within_50_ms(percentile: Percentile, ended: u32, unserved: u64) -> bool {
        let search = Search {
            percentile,
            limit_s: 0.05,
            lowest_per_s: 1.0,
            highest_per_s: 2.0,
            precision: 0.1,
            window_s: 1.0,
            settle_s: 0.0,
            spacing: fairtrial_protocol::load::Spacing::Constant,
        };
        let [mut fast, slow] = [(); 2].map(|()| Histogram::<u32>::new(3).expect("bounds"));
        fast.record_n(1_000_000, ended).expect("inside the bounds");
        is_met(&search, &[fast, slow], unserved)
    }

    #[test]
    fn who_has_no_latency_exceeds_every_limit() {
        assert!(is_within_50_ms(Percentile::P99, 99_100, 900));
        assert!(!is_within_50_ms(Percentile::P999, 99_100, 900));
        assert!(is_within_50_ms(Percentile::P999, 99_900, 100));
        assert!(!is_within_50_ms(Percentile::P999, 99_899, 101));
        assert!(!is_within_50_ms(Percentile::P50, 0, 0), "nothing ended");
    }
}
