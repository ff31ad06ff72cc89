//! A search for the highest rate that meets an objective: drives at constant rates, one after the other.
//!
//! Each probe is a drive with users, connections and files of its own, so nothing that waited in one is felt in the
//! next but by the server, which the probe's settling time is for.

mod bounds;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

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

/// Of the transactions that should have begun in a probe's window, as many must have ended in it: a system that lets
/// them wait for ever would else meet any objective, as those that wait have no latency yet. Those under way at both
/// ends of the window leave some doubt of a few, which the last hundredth allows for.
const ACHIEVED_SHARE: f64 = 0.99;

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
        let (driven, window) = once(&probe_drive, make(&probe_drive)?, progress)?;
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
        .map(|outcome| outcome.committed + outcome.rolled_back)
        .sum();
    let latency = quantiles(&window.latencies);
    let within = latency.is_some_and(|latency| {
        std::time::Duration::from_nanos(latency.of(search.percentile)).as_secs_f64()
            <= search.limit_s
    });
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
        timed_out: arrived.timed_out.unwrap_or_default(),
        latency,
        lateness: quantiles(std::slice::from_ref(&window.lateness)),
        client_busy_share: busy.filter(|share| share.is_finite()).reduce(f64::max),
        connections_lost: lost.map(|error| error.count).sum(),
        met: within && achieved(done, arrived.offered),
    }
}

#[allow(clippy::cast_precision_loss)] // counts of a window
fn achieved(done: u64, offered: u64) -> bool {
    done as f64 >= ACHIEVED_SHARE * offered as f64
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

fn value_at(histogram: &Histogram<u32>, percentile: Percentile) -> u64 {
    let per_mille = match percentile {
        Percentile::P50 => 500,
        Percentile::P95 => 950,
        Percentile::P99 => 990,
        Percentile::P999 => 999,
    };
    let rank = ((histogram.len() * per_mille + 500) / 1_000).clamp(1, histogram.len());
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

    #[test]
    fn a_hundredth_may_be_under_way_and_no_more() {
        assert!(achieved(990, 1_000) && !achieved(989, 1_000));
    }
}
