//! Open loops whose rate changes, and queues that are left, on embedded SQLite.

use std::path::Path;

use crate::support::oltp::{SPECIAL, drive, load, loading, parameters, try_drive};
use crate::support::{completed, sqlite};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Arrivals, Driven, RateStep, Spacing};
use fairtrial_protocol::oltp::{OltpDrive, Profile};
use tempfile::TempDir;

const PROFILE: Profile = Profile::PointSelect;

/// A timed drive of three users on tables of its own.
fn request(arrivals: Arrivals, seconds: f64) -> (TempDir, OltpDrive) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    load(&loading(endpoint.clone(), PROFILE, SPECIAL));
    let mut request = parameters(endpoint, directory.path(), PROFILE, 1);
    request.drive.arrivals = arrivals;
    request.drive.virtual_users = 3;
    (request.drive.transactions, request.drive.duration_s) = (None, Some(seconds));
    (directory, request)
}

fn begun(driven: &Driven) -> u64 {
    driven.drawn[PROFILE.name()]
}

/// Drives, and checks that nobody is lost; returns the number offered.
fn offered(arrivals: Arrivals, seconds: f64) -> u64 {
    let (_directory, request) = request(arrivals, seconds);
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    assert_eq!(begun(&driven) + arrived.waiting, arrived.offered);
    arrived.offered
}

#[test]
fn steps_offer_exactly_what_their_rates_and_lengths_say() {
    let steps = [(100.0, 0.2), (0.0, 0.3), (400.0, 0.1)];
    let steps = steps.map(|(rate_per_s, length_s)| RateStep {
        rate_per_s,
        length_s,
    });
    let arrivals = Arrivals::Steps {
        steps: steps.into(),
        spacing: Spacing::Constant,
    };
    assert_eq!(offered(arrivals, 1.2), 2 * (20 + 40));
}

#[test]
fn a_ramp_offers_its_integral_and_then_its_last_rate() {
    let arrivals = Arrivals::Ramp {
        from_per_s: 0.0,
        to_per_s: 400.0,
        over_s: 0.5,
        spacing: Spacing::Constant,
    };
    assert_eq!(offered(arrivals, 1.0), 100 + 200);
}

#[test]
fn a_wave_offers_its_integral() {
    let arrivals = Arrivals::Sine {
        mean_per_s: 300.0,
        amplitude_per_s: 300.0,
        period_s: 1.0,
        spacing: Spacing::Constant,
    };
    // Over the first half the swing adds 300 / π to 150.
    assert_eq!(offered(arrivals, 0.5), 246);
}

#[test]
fn a_wave_of_random_arrivals_offers_its_integral_within_chance() {
    let arrivals = Arrivals::Sine {
        mean_per_s: 2_000.0,
        amplitude_per_s: 1_000.0,
        period_s: 0.25,
        spacing: Spacing::Exponential,
    };
    // 2,000 with a standard deviation of 45, and the seed is fixed.
    assert!((1_820..=2_180).contains(&offered(arrivals, 1.0)));
}

/// Times of arrivals in the engine's file.
fn times(directory: &Path, times_ns: impl Iterator<Item = i64>) -> String {
    let path = directory.join("times");
    let bytes: Vec<u8> = times_ns.flat_map(i64::to_le_bytes).collect();
    std::fs::write(&path, bytes).expect("written");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_replay_ends_the_drive_when_its_last_transaction_has_ended() {
    let (directory, mut request) = request(Arrivals::default(), 3_600.0);
    let path = times(directory.path(), (0..50).map(|count| count * 4_000_000));
    request.drive.arrivals = Arrivals::Replay { path, again: false };
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    assert_eq!((arrived.offered, arrived.waiting), (50, 0));
    assert_eq!(completed(&driven), 50);
    let length_ns = driven.window.end_ns - driven.window.start_ns;
    assert!(
        (196_000_000..3_600_000_000_000).contains(&length_ns),
        "{length_ns}"
    );
}

#[test]
fn a_replay_that_begins_again_goes_on_at_its_mean_rate() {
    let (directory, mut request) = request(Arrivals::default(), 0.5);
    let path = times(directory.path(), (0..50).map(|count| count * 2_000_000));
    request.drive.arrivals = Arrivals::Replay { path, again: true };
    let driven = drive(&request);
    assert_eq!(driven.arrivals.expect("an open loop").offered, 250);
}

#[test]
fn a_pause_in_a_drive_by_count_is_no_stall_and_a_replay_too_short_for_it_ends() {
    let (directory, mut request) = request(Arrivals::default(), 1.0);
    let path = times(directory.path(), [0, 400_000_000].into_iter());
    request.drive.arrivals = Arrivals::Replay { path, again: false };
    (request.drive.transactions, request.drive.duration_s) = (Some(1_000), None);
    assert_eq!(completed(&drive(&request)), 2);
}

#[test]
fn an_overload_with_a_timeout_accounts_for_every_transaction() {
    let arrivals = Arrivals::Open {
        rate_per_s: 1e6,
        spacing: Spacing::Exponential,
    };
    let (_directory, mut request) = request(arrivals, 0.6);
    request.drive.queue_timeout_s = Some(0.02);
    // Fourteen queries: no machine does a million of them a second, as it may of one.
    request.profile = Profile::ReadOnly;
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    assert!((588_000..612_000).contains(&arrived.offered), "{arrived:?}");
    let timed_out = arrived.timed_out.expect("counted");
    assert_eq!(
        driven.drawn[Profile::ReadOnly.name()] + arrived.waiting + timed_out,
        arrived.offered,
        "{arrived:?}"
    );
    assert!(timed_out > 0, "{arrived:?}");
    // Who waits at the end has come within the last 20 ms: 20,000 at this rate.
    assert!((1..=21_000).contains(&arrived.waiting), "{arrived:?}");
}

#[test]
fn without_overload_a_timeout_changes_nothing() {
    let arrivals = Arrivals::Open {
        rate_per_s: 100.0,
        spacing: Spacing::Constant,
    };
    let (_directory, mut request) = request(arrivals, 0.5);
    request.drive.queue_timeout_s = Some(30.0);
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    assert_eq!((arrived.offered, arrived.timed_out), (50, Some(0)));
}

#[test]
fn timeouts_without_a_queue_or_a_length_are_refused() {
    for (arrivals, timeout_s) in [
        (Arrivals::default(), 1.0),
        (
            Arrivals::Open {
                rate_per_s: 5.0,
                spacing: Spacing::Constant,
            },
            0.0,
        ),
    ] {
        let (_directory, mut request) = request(arrivals, 1.0);
        request.drive.queue_timeout_s = Some(timeout_s);
        let refused = try_drive(&request).expect_err("refused");
        let field = "queue_timeout_s";
        assert!(
            matches!(refused, LoadError::Parameter { field: refused_field, .. } if refused_field == field)
        );
    }
}
