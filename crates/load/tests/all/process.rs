//! A drive in a process of its own: signals, and two processes that must draw alike.

use crate::support::apart::{self, AnyDrive};
use crate::support::{completed, effects, parameters, result, sqlite_copy};

#[test]
fn sigterm_ends_the_window_and_everything_measured_is_written() {
    let copy = sqlite_copy();
    let mut request = parameters(copy.endpoint.clone(), copy.directory.path());
    (request.drive.transactions, request.drive.duration_s) = (None, Some(3_600.0));
    let mut driving = apart::begin(&AnyDrive::Tpcc(request));
    driving.wait_for_rate();
    driving.ask_to_end();
    let rest = driving.end();
    assert!(
        rest.iter().any(|line| line.contains("\"finishing\"")),
        "{rest:?}"
    );
    let driven = result(copy.directory.path());
    let seconds = (driven.window.end_ns - driven.window.start_ns) / 1_000_000_000;
    assert!(
        (0..600).contains(&seconds),
        "the window is as long as it was: {seconds} s"
    );
    assert!(completed(&driven) > 0);
    for file in ["latency.hlog", "timeline.arrows"] {
        assert!(
            copy.directory
                .path()
                .join(file)
                .metadata()
                .expect(file)
                .len()
                > 0
        );
    }
}

#[test]
fn two_processes_with_one_seed_draw_the_same_and_leave_the_same_database() {
    let run = |seed| {
        let copy = sqlite_copy();
        let mut request = parameters(copy.endpoint.clone(), copy.directory.path());
        (
            request.drive.virtual_users,
            request.drive.transactions,
            request.drive.seed,
        ) = (1, Some(250), seed);
        apart::begin(&AnyDrive::Tpcc(request)).end();
        (
            result(copy.directory.path()).drawn,
            effects::look(&copy.endpoint),
        )
    };
    let first = run(5);
    assert_eq!(run(5), first);
    let other = run(6);
    assert_ne!(other.0, first.0, "another seed draws something else");
    assert_ne!(other.1, first.1);
}
