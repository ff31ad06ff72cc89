//! Open and closed loops on embedded SQLite: who should have begun when, and that nobody is lost on the way.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::apart::{self, AnyDrive};
use crate::support::histograms::merged;
use crate::support::oltp::{SPECIAL, drive, load, loading, parameters, try_drive};
use crate::support::{completed, eventually, sqlite};
use fairtrial_load::LoadError;
use fairtrial_protocol::limits::VARIABLE;
use fairtrial_protocol::load::{Arrivals, Driven, Endpoint, Spacing};
use fairtrial_protocol::oltp::{OltpDrive, Profile};
use tempfile::TempDir;

fn open(rate_per_s: f64, spacing: Spacing) -> Arrivals {
    Arrivals::Open {
        rate_per_s,
        spacing,
    }
}

/// A timed drive of a profile on tables of its own.
fn request(profile: Profile, arrivals: Arrivals, seconds: f64) -> (TempDir, OltpDrive) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    load(&loading(endpoint.clone(), profile, SPECIAL));
    let mut request = parameters(endpoint, directory.path(), profile, 1);
    request.drive.arrivals = arrivals;
    (request.drive.transactions, request.drive.duration_s) = (None, Some(seconds));
    (directory, request)
}

fn begun(driven: &Driven, profile: Profile) -> u64 {
    driven.drawn[profile.name()]
}

#[test]
fn a_constant_rate_offers_its_transactions_exactly_and_all_but_the_last_are_done() {
    let rate = open(200.0, Spacing::Constant);
    let (directory, mut request) = request(Profile::PointSelect, rate, 1.0);
    (request.drive.virtual_users, request.drive.ramp_up_s) = (3, 0.5);
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    assert_eq!(arrived.offered, 200);
    assert_eq!(
        begun(&driven, Profile::PointSelect) + arrived.waiting,
        300,
        "ramp-up included"
    );
    let lateness = merged(directory.path(), "lateness.hlog");
    assert_eq!(
        lateness.len(),
        completed(&driven),
        "each that ended in the window has its lateness"
    );
    assert_eq!(arrived.timed_out, None, "all wait");
    assert!(lateness.max() <= merged(directory.path(), "latency.hlog").max());
}

#[test]
fn an_overload_loses_nobody_and_latency_counts_from_when_a_transaction_should_have_begun() {
    let rate = open(1e6, Spacing::Exponential);
    // Fourteen queries: no machine does a million of them a second, as it may of one.
    let (directory, mut request) = request(Profile::ReadOnly, rate, 1.0);
    (request.drive.transactions, request.drive.duration_s) = (Some(20_000), None);
    let driven = drive(&request);
    let arrived = driven.arrivals.expect("an open loop");
    let length_ns = driven.window.end_ns - driven.window.start_ns;
    let length_ns = u64::try_from(length_ns).expect("it ends after it begins");
    let offered = length_ns / 1_000; // at this rate, and within three hundredths of it
    assert!(
        arrived.offered.abs_diff(offered) < offered / 33,
        "{arrived:?}"
    );
    assert_eq!(
        begun(&driven, Profile::ReadOnly) + arrived.waiting,
        arrived.offered
    );
    assert_eq!(
        arrived.waiting, arrived.waiting_most,
        "the queue only grows"
    );
    assert!(arrived.waiting > 0);
    // The last that ended did so at the window's end, and had arrived early: one of 20,000 in the order of arrival.
    let latency = merged(directory.path(), "latency.hlog");
    let waited_ns = length_ns - 21_000_000;
    assert!(
        latency.max() >= waited_ns - waited_ns / 500,
        "{} ns",
        latency.max()
    );
}

#[test]
fn a_stall_of_the_system_is_felt_by_all_who_should_have_begun_in_it() {
    let rate = open(100.0, Spacing::Constant);
    // Long, so that a machine that stands still for a while leaves time for what waited.
    let (directory, mut request) = request(Profile::UpdateIndex, rate, 8.0);
    request.drive.interval_ms = 20;
    let Endpoint::Sqlite { path, .. } = request.drive.endpoint.clone() else {
        panic!("an SQLite endpoint")
    };
    let (begins, window) = mpsc::channel();
    let stalling = thread::spawn(move || {
        window.recv().expect("the window begins");
        let other = rusqlite::Connection::open(path).expect("SQLite opens the file");
        other.busy_timeout(Duration::from_secs(10)).expect("a time");
        other
            .execute_batch("BEGIN IMMEDIATE")
            .expect("the lock is free between transactions");
        thread::sleep(Duration::from_millis(600));
        other
            .execute_batch("ROLLBACK")
            .expect("the lock is given back");
    });
    let driven = fairtrial_load::drive_oltp(&request, &mut WindowSignal(begins)).expect("it ends");
    stalling.join().expect("no panic");
    let arrived = driven.arrivals.expect("an open loop");
    assert!(arrived.waiting_most >= 40, "{arrived:?}");
    let latency = merged(directory.path(), "latency.hlog");
    let slow = latency.count_between(200_000_000, u64::MAX);
    assert!(
        slow >= 30,
        "a closed loop would have felt it once, this one {slow} times"
    );
}

/// Speaks once the window begins.
struct WindowSignal(mpsc::Sender<()>);

impl std::io::Write for WindowSignal {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains("\"measuring\"") {
            self.0.send(()).map_err(std::io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn thinking_users_begin_no_more_than_their_thoughts_allow_and_a_closed_loop_has_no_queue() {
    let thinking = Arrivals::Closed {
        think_s: 0.05,
        spacing: Spacing::Constant,
    };
    let (directory, mut request) = request(Profile::PointSelect, thinking, 1.0);
    request.drive.virtual_users = 2;
    (request.drive.transactions, request.drive.duration_s) = (Some(20), None);
    let driven = drive(&request);
    assert_eq!(completed(&driven), 20);
    // One of the two has had ten of them at least, with nine thoughts in between.
    let length_ns = driven.window.end_ns - driven.window.start_ns;
    assert!(length_ns >= 9 * 50_000_000, "{length_ns}");
    assert_eq!(driven.arrivals, None);
    assert!(!directory.path().join("lateness.hlog").exists());
}

#[test]
fn a_number_of_transactions_ends_an_open_loop_too() {
    let (_directory, mut request) = request(
        Profile::PointSelect,
        open(2_000.0, Spacing::Exponential),
        1.0,
    );
    (request.drive.transactions, request.drive.duration_s) = (Some(300), None);
    let driven = drive(&request);
    assert_eq!(completed(&driven), 300);
    assert!(driven.arrivals.expect("an open loop").offered >= 299);
}

#[test]
fn rates_of_nothing_and_less_are_refused() {
    for rate_per_s in [0.0, -5.0] {
        let (_directory, request) = request(
            Profile::PointSelect,
            open(rate_per_s, Spacing::Constant),
            1.0,
        );
        let refused = try_drive(&request).expect_err("refused");
        assert!(
            matches!(
                refused,
                LoadError::Parameter {
                    field: "arrivals",
                    ..
                }
            ),
            "{refused}"
        );
    }
}

#[test]
fn users_that_all_think_for_longer_than_a_stall_are_no_stall() {
    let thinking = Arrivals::Closed {
        think_s: 0.4,
        spacing: Spacing::Constant,
    };
    // Anew where a machine that others load took as long for a transaction.
    eventually("a drive that ends well", || {
        let (_directory, mut request) = request(Profile::PointSelect, thinking.clone(), 1.0);
        (request.drive.transactions, request.drive.duration_s) = (Some(2), None);
        let limits = [(VARIABLE, "stall_s=0.2")];
        let said = apart::begin_with(&AnyDrive::Oltp(request), &limits).said();
        let failed = said.iter().find(|line| line.contains("the drive failed"));
        failed.is_none().then_some(())
    });
}
