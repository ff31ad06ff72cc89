//! Streams against what their rates say, and a queue that loses nobody.

use fairtrial_protocol::load::RateStep;

use super::*;
use crate::tests::chance::assert_share;

const SECOND_NS: i64 = 1_000_000_000;

fn stream(rate_per_s: f64, spacing: Spacing) -> ArrivalStream {
    let arrivals = Arrivals::Open {
        rate_per_s,
        spacing,
    };
    ArrivalStream::open(&arrivals, 7)
        .expect("nothing to read")
        .expect("an open loop")
}

#[test]
fn a_constant_rate_is_kept_for_a_day_to_the_transaction() {
    let mut three = stream(3.0, Spacing::Constant);
    assert_eq!(
        (
            three.take_ns().expect("another"),
            three.take_ns().expect("another"),
            three.take_ns().expect("another"),
            three.take_ns().expect("another")
        ),
        (0, 333_333_333, 666_666_666, SECOND_NS)
    );
    let day = 86_400;
    assert_eq!(three.before(day * SECOND_NS), 3 * 86_400);
    assert_eq!(three.peek_ns(), Some(day * SECOND_NS));
}

#[test]
fn exponential_gaps_are_a_poisson_process_of_the_rate() {
    let mut stream = stream(50.0, Spacing::Exponential);
    let counts: Vec<u64> = (1..=20_000)
        .scan(0, |before, tenth| {
            let now = stream.before(tenth * SECOND_NS / 10);
            let count = now - *before;
            *before = now;
            Some(count)
        })
        .collect();
    // In a tenth of a second five are expected: Poisson's shares of none, five and ten.
    for (number, share) in [(0, 0.006_738), (5, 0.175_467), (10, 0.018_133)] {
        let matches = counts.iter().filter(|count| **count == number).count() as u64;
        assert_share(&format!("{number} arrivals"), matches, 20_000, share);
    }
}

#[test]
fn a_poisson_process_has_no_arrival_at_its_beginning_whatever_says_its_rate() {
    let step = RateStep {
        rate_per_s: 2.0,
        length_s: 1.0,
    };
    let spacing = Spacing::Exponential;
    for arrivals in [
        Arrivals::Open {
            rate_per_s: 2.0,
            spacing,
        },
        Arrivals::Steps {
            steps: vec![step],
            spacing,
        },
    ] {
        let none = (0..20_000)
            .filter(|seed| {
                let stream = ArrivalStream::open(&arrivals, *seed).expect("nothing to read");
                stream.expect("an open loop").before(SECOND_NS) == 0
            })
            .count();
        assert_share("no arrival", none as u64, 20_000, libm::exp(-2.0));
    }
}

#[test]
fn streams_of_one_seed_are_one_and_a_queue_hands_each_arrival_to_one_user() {
    let queue = ArrivalQueue::new(stream(1e6, Spacing::Exponential), None, None);
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    let arrival = queue.take_ns(0).expect("another");
                    taken.lock().expect("no panic").push(arrival);
                    queue.begin();
                }
            });
        }
    });
    let mut taken = taken.into_inner().expect("no panic");
    taken.sort_unstable();
    let mut other = stream(1e6, Spacing::Exponential);
    let expected: Vec<i64> = (0..1_000)
        .map(|_| other.take_ns().expect("another"))
        .collect();
    assert_eq!(taken, expected);
    assert_eq!(queue.begun(), 1_000);
}

fn opened(arrivals: &Arrivals) -> ArrivalStream {
    ArrivalStream::open(arrivals, 7)
        .expect("nothing to read")
        .expect("an open loop")
}

#[test]
fn a_changing_rate_with_exponential_gaps_is_a_poisson_process_of_that_rate() {
    // A wave that stands still twice a period: quarters hold mean · 2.5 s ± amplitude · 10 s / 2π arrivals.
    let mut stream = opened(&Arrivals::Sine {
        mean_per_s: 2.0,
        amplitude_per_s: 2.0,
        period_s: 10.0,
        spacing: Spacing::Exponential,
    });
    let mut before = 0;
    let mut quarters = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for quarter in 1..=40_000_usize {
        let time_ns = i64::try_from(quarter).expect("small") * 5 * SECOND_NS / 2;
        let now = stream.before(time_ns);
        quarters[(quarter - 1) % 4].push(now - before);
        before = now;
    }
    let swing = 2.0 * 10.0 / std::f64::consts::TAU;
    for (counts, expected) in
        quarters
            .iter()
            .zip([5.0 + swing, 5.0 + swing, 5.0 - swing, 5.0 - swing])
    {
        let none = counts.iter().filter(|count| **count == 0).count() as u64;
        assert_share("no arrival", none, 10_000, libm::exp(-expected));
        let three = counts.iter().filter(|count| **count == 3).count() as u64;
        let share = expected.powi(3) / 6.0 * libm::exp(-expected);
        assert_share("three arrivals", three, 10_000, share);
    }
}

#[test]
fn steps_with_exponential_gaps_leave_pauses_empty_and_equal_seeds_are_equal() {
    let arrivals = Arrivals::Steps {
        steps: [(1_000.0, 1.0), (0.0, 1.0)]
            .map(
                |(rate_per_s, length_s)| fairtrial_protocol::load::RateStep {
                    rate_per_s,
                    length_s,
                },
            )
            .into(),
        spacing: Spacing::Exponential,
    };
    let (mut stream, mut again) = (opened(&arrivals), opened(&arrivals));
    for _ in 0..10_000 {
        let time_ns = stream.take_ns().expect("it never ends");
        assert_eq!(again.take_ns(), Some(time_ns));
        assert_eq!(time_ns / SECOND_NS % 2, 0, "{time_ns}");
    }
}

#[test]
fn who_has_waited_too_long_is_given_up_and_counted_whoever_comes() {
    // One a millisecond; who waits longer than 10 ms goes.
    let queue = ArrivalQueue::new(stream(1_000.0, Spacing::Constant), Some(10_000_000), None);
    assert_eq!(queue.take_ns(0), Some(0));
    queue.begin();
    assert_eq!(
        queue.take_ns(30_000_000),
        Some(20_000_000),
        "20 ms have waited 10 ms, not longer"
    );
    queue.begin();
    assert_eq!((queue.begun(), queue.timed_out()), (2, 19));
    queue.expire(SECOND_NS);
    let mut present = stream(1_000.0, Spacing::Constant);
    assert_eq!(
        present.before(SECOND_NS) - queue.begun() - queue.timed_out(),
        10
    );
    assert!(queue.is_over(0, 10_000_001) && !queue.is_over(0, 10_000_000));
}

#[test]
fn without_a_timeout_nobody_is_given_up() {
    let queue = ArrivalQueue::new(stream(1_000.0, Spacing::Constant), None, None);
    queue.expire(3_600 * SECOND_NS);
    assert_eq!(queue.take_ns(3_600 * SECOND_NS), Some(0));
    assert_eq!(queue.timed_out(), 0);
}

#[test]
fn who_is_younger_than_the_limit_when_the_window_ends_is_not_overdue() {
    // Two a second for 10 s: the last two, at 9.0 and 9.5 s, have not ended.
    let overdue = |limit_ns| {
        let queue = ArrivalQueue::new(
            stream(2.0, Spacing::Constant),
            None,
            Some(10 * SECOND_NS - limit_ns),
        );
        for _ in 0..20 {
            let due_ns = queue.take_ns(10 * SECOND_NS).expect("it never ends");
            if due_ns < 9 * SECOND_NS {
                queue.settle(due_ns);
            }
        }
        queue.overdue(stream(2.0, Spacing::Constant))
    };
    assert_eq!(overdue(SECOND_NS), Some(0));
    assert_eq!(overdue(SECOND_NS - 1), Some(1));
    assert_eq!(overdue(SECOND_NS / 2 - 1), Some(2));
}

#[test]
fn who_is_given_up_is_not_overdue_as_well_and_who_was_never_taken_is() {
    let limit_ns = Some(SECOND_NS);
    let queue = ArrivalQueue::new(stream(2.0, Spacing::Constant), limit_ns, limit_ns);
    queue.expire(SECOND_NS + 1);
    assert_eq!(queue.timed_out(), 1);
    assert_eq!(queue.overdue(stream(2.0, Spacing::Constant)), Some(1));
    let unfollowed = ArrivalQueue::new(stream(2.0, Spacing::Constant), None, None);
    assert_eq!(unfollowed.overdue(stream(2.0, Spacing::Constant)), None);
}

#[test]
fn clients_that_go_round_have_the_whole_stream_whatever_its_rate() {
    let spacings = [Spacing::Constant, Spacing::Exponential];
    let all = spacings.into_iter().flat_map(|spacing| {
        let steps = [(40.0, 0.5), (0.0, 1.0)].map(|(rate_per_s, length_s)| RateStep {
            rate_per_s,
            length_s,
        });
        let steps = steps.to_vec();
        let open = Arrivals::Open {
            rate_per_s: 40.0,
            spacing,
        };
        [open, Arrivals::Steps { steps, spacing }]
    });
    for arrivals in all {
        let stream = || {
            let stream = ArrivalStream::open(&arrivals, 7).expect("nothing to read");
            stream.expect("an open loop")
        };
        let mut clients = [0, 1, 2].map(|client| stream().one_of(client, 3));
        let mut whole = stream();
        for number in 0..300 {
            let own_ns = clients[number % 3].take_ns();
            assert_eq!(own_ns, whole.take_ns(), "{arrivals:?} {number}");
        }
        let end_ns = whole.peek_ns().expect("another");
        let counts = clients.map(|mut client| client.before(end_ns));
        assert_eq!(counts, [100; 3], "each counts its own");
    }
}
