//! Searches for the highest rate: on embedded SQLite and, where one is installed, on a MariaDB server of its own.

use std::path::Path;
use std::time::Duration;

use crate::support::histograms::merged;
use crate::support::oltp::{SPECIAL, drive, load, loading, parameters, try_drive};
use crate::support::{eventually, mariadb, sqlite};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Arrivals, Driven, Endpoint, Percentile, Search, Searched, Spacing};
use fairtrial_protocol::oltp::{OltpDrive, Profile};
use tempfile::TempDir;

// The limit leaves room for a machine that does other things: what is tested is the search, not the disk.
const QUICK: Search = Search {
    percentile: Percentile::P99,
    limit_s: 0.25,
    lowest_per_s: 500.0,
    highest_per_s: 1e6,
    precision: 0.5,
    window_s: 0.4,
    settle_s: 0.1,
    spacing: Spacing::Exponential,
};

fn request(endpoint: Endpoint, directory: &Path, search: Search) -> OltpDrive {
    load(&loading(endpoint.clone(), Profile::UpdateIndex, SPECIAL));
    let mut request = parameters(endpoint, directory, Profile::UpdateIndex, 1);
    request.drive.virtual_users = 4;
    (request.drive.transactions, request.drive.duration_s) = (None, None);
    request.drive.arrivals = Arrivals::Search { search };
    request
}

/// Searches, anew where a machine that others load was too busy for the outcome meant: what is tested is the search.
fn searched(
    endpoint: &Endpoint,
    search: Search,
    is_meant: impl Fn(&Searched) -> bool,
) -> (TempDir, Driven) {
    eventually("the outcome meant", || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let driven = drive(&request(endpoint.clone(), directory.path(), search));
        let searched = driven.search.as_ref().expect("a search");
        let meant = is_meant(searched);
        if !meant {
            eprintln!("again: {searched:?}");
        }
        meant.then_some((directory, driven))
    })
}

fn has_met(searched: &Searched) -> bool {
    searched.met_per_s.is_some()
}

/// What holds of any search that has found its bounds.
fn assert_found(directory: &Path, driven: &Driven, precision: f64) -> Searched {
    let searched = driven.search.clone().expect("a search");
    assert!(searched.complete);
    let (met, missed) = (
        searched.met_per_s.expect("met"),
        searched.missed_per_s.expect("missed"),
    );
    assert!(
        met < missed && missed <= met * (1.0 + precision),
        "{met} {missed}"
    );
    for (rate_per_s, verdict) in [(met, true), (missed, false)] {
        let at_bound = searched.probes.iter().filter(|probe| {
            probe.rate_per_s.total_cmp(&rate_per_s).is_eq() && probe.met == verdict
        });
        assert_eq!(
            at_bound.count(),
            2,
            "a bound is believed once two probes agree"
        );
    }
    for (number, probe) in searched.probes.iter().enumerate() {
        assert_eq!(probe.directory, format!("probes/{:02}", number + 1));
        let text = std::fs::read(directory.join(&probe.directory).join("result.json"));
        let own: Driven = serde_json::from_slice(&text.expect("it is there")).expect("JSON");
        assert_eq!(own.window, probe.window);
        let arrived = own.arrivals.expect("an open loop");
        assert_eq!(arrived.offered, probe.offered);
        let failed: u64 = own.transactions.values().map(|each| each.failed).sum();
        let unserved = failed + probe.timed_out + arrived.overdue.expect("of a probe");
        let latencies = merged(&directory.join(&probe.directory), "latency.hlog");
        assert_eq!(latencies.len(), probe.done);
        // Of a bucket that the limit falls into nobody knows on which side of it they are.
        let limit_ns = Duration::from_secs_f64(QUICK.limit_s).as_nanos();
        let within: u64 = latencies
            .iter_recorded()
            .filter(|step| {
                u128::from(latencies.highest_equivalent(step.value_iterated_to())) <= limit_ns
            })
            .map(|step| step.count_since_last_iteration())
            .sum();
        let rank = ((probe.done + unserved) * 990 + 500) / 1_000;
        assert_eq!(probe.met, within >= rank.max(1), "{probe:?} {arrived:?}");
    }
    let windows: Vec<_> = searched.probes.iter().map(|probe| probe.window).collect();
    assert!(windows.is_sorted_by(|one, next| one.end_ns < next.start_ns));
    assert!(
        windows.contains(&driven.window),
        "the drive's window is that of a probe"
    );
    let text = std::fs::read(directory.join("result.json")).expect("it is there");
    let written: Driven = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(&written, driven);
    let latencies = |path: &Path| std::fs::read(path.join("latency.hlog")).expect("it is there");
    let decided = searched
        .probes
        .iter()
        .rfind(|probe| probe.window == driven.window)
        .expect("one of them");
    assert_eq!(
        latencies(directory),
        latencies(&directory.join(&decided.directory))
    );
    searched
}

#[test]
fn the_highest_rate_of_sqlite_is_enclosed_and_every_probe_is_on_record() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    let (written, driven) = searched(&endpoint, QUICK, has_met);
    let searched = assert_found(written.path(), &driven, QUICK.precision);
    assert!(searched.probes.iter().any(|probe| !probe.met));
}

#[test]
fn the_highest_rate_of_mariadb_is_enclosed_and_every_probe_is_on_record() {
    let Some(server) = mariadb::shared() else {
        return;
    };
    let (written, driven) = searched(&server.endpoint("search"), QUICK, has_met);
    let searched = assert_found(written.path(), &driven, QUICK.precision);
    assert!(
        searched
            .probes
            .iter()
            .all(|probe| probe.client_busy_share.is_some())
    );
}

#[test]
fn a_range_that_ends_below_the_highest_rate_or_begins_above_it_gives_no_number() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    let generous = Search {
        limit_s: 5.0,
        highest_per_s: 600.0,
        ..QUICK
    };
    let (_, driven) = searched(&endpoint, generous, |result| result.missed_per_s.is_none());
    let result = driven.search.expect("a search");
    assert_eq!(result.met_per_s, Some(600.0));
    let impossible = Search {
        limit_s: 1e-9,
        ..QUICK
    };
    let (_, driven) = searched(&endpoint, impossible, |_| true);
    let result = driven.search.expect("a search");
    assert_eq!((result.met_per_s, result.missed_per_s), (None, Some(500.0)));
    assert!(result.complete && result.probes.len() == 2);
}

#[test]
fn a_search_takes_no_length_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    let mut request = request(endpoint, directory.path(), QUICK);
    request.drive.duration_s = Some(5.0);
    let refused = try_drive(&request).expect_err("refused");
    assert!(
        matches!(
            refused,
            LoadError::Parameter {
                field: "duration_s",
                ..
            }
        ),
        "{refused}"
    );
}
