//! Slots add up, errors are grouped, and nothing is counted in another interval than its own.

use super::*;

fn error(code: &str, message: &str) -> DriverError {
    DriverError {
        kind: ErrorKind::Other,
        code: code.into(),
        message: message.into(),
        retryable: false,
    }
}

#[test]
fn adding_slots_adds_counts_and_latencies_type_by_type() {
    let mut sum = Slot::new(Moment::Measured(3), KINDS);
    for factor in 1..=3_u64 {
        let mut slot = Slot::new(Moment::Measured(3), KINDS);
        slot.counts[1] = Outcomes {
            committed: factor,
            rolled_back: 10 * factor,
            failed: 100 * factor,
            retried: 1_000 * factor,
            statements: 10_000 * factor,
            saturated: factor,
        };
        slot.latencies[1]
            .record(factor * 1_000_000)
            .expect("in range");
        sum.add(&slot);
    }
    assert_eq!(
        sum.counts[1],
        Outcomes {
            committed: 6,
            rolled_back: 60,
            failed: 600,
            retried: 6_000,
            statements: 60_000,
            saturated: 6,
        }
    );
    assert_eq!(sum.counts[0], Outcomes::default());
    let latencies = &sum.latencies[1];
    assert_eq!((latencies.len(), sum.latencies[0].len()), (3, 0));
    assert!(latencies.equivalent(latencies.value_at_quantile(0.5), 2_000_000));
    assert!(
        latencies.equivalent(latencies.max(), 3_000_000)
            && latencies.equivalent(latencies.min(), 1_000_000)
    );
}

#[test]
fn a_slot_that_is_reset_remembers_nothing() {
    let mut slot = Slot::new(Moment::RampUp(1), KINDS);
    slot.counts[4].failed = 5;
    slot.latencies[4].record(7).expect("in range");
    slot.reset(Moment::Measured(9));
    assert_eq!(slot.moment, Moment::Measured(9));
    assert_eq!(slot.counts, [Outcomes::default(); KINDS]);
    assert!(slot.latencies.iter().all(Histogram::is_empty));
}

#[test]
fn errors_of_one_type_and_code_are_one_line_with_the_first_message() {
    let recorder = recording(4, Measure::DurationNs(HOUR_NS));
    for (worker, kind, code, message) in [
        (0, Kind::Payment, "1213", "first"),
        (0, Kind::Payment, "1213", "second"),
        (1, Kind::Payment, "1213", "from another worker"),
        (2, Kind::Payment, "1205", "another code"),
        (3, Kind::Delivery, "1213", "another type"),
    ] {
        recorder.error(worker, kind as usize, &error(code, message));
    }
    let counts: Vec<_> = recorder
        .errors()
        .into_iter()
        .map(|one| (one.transaction, one.code, one.message, one.count))
        .collect();
    let line = |transaction: &str, code: &str, message: &str, count| {
        (
            transaction.to_owned(),
            code.to_owned(),
            message.to_owned(),
            count,
        )
    };
    assert_eq!(
        counts,
        [
            line("payment", "1205", "another code", 1),
            line("payment", "1213", "first", 3),
            line("delivery", "1213", "another type", 1)
        ]
    );
    assert_eq!(recorder.totals(), (0, 5));
    assert_eq!(
        recorder.errors().len(),
        3,
        "asking twice counts nothing twice"
    );
}

#[test]
fn more_workers_than_shards_share_them_and_lose_nothing() {
    let recorder = recording(1_000, Measure::DurationNs(HOUR_NS));
    assert_eq!(recorder.shards.len(), SHARDS_LIMIT);
    for worker in 0..50 {
        end(
            &recorder,
            (worker, Kind::StockLevel),
            Outcome::Committed,
            monotonic_ns(),
            1,
        );
    }
    let counts = measured(&recorder).counts[Kind::StockLevel as usize];
    assert_eq!((counts.committed, counts.retried), (50, 50));
    assert_eq!(
        measured(&recorder).counts,
        [Outcomes::default(); KINDS],
        "taken is taken"
    );
}

#[test]
fn an_interval_is_taken_alone_and_others_stay() {
    let recorder = Recorder::new(1, &Kind::NAMES);
    recorder.begin(Schedule::new(
        monotonic_ns(),
        Measure::DurationNs(0),
        1,
        Measure::DurationNs(HOUR_NS),
    ));
    // Intervals of one nanosecond: each transaction has its own.
    for _ in 0..5 {
        end(
            &recorder,
            (0, Kind::NewOrder),
            Outcome::Committed,
            monotonic_ns(),
            0,
        );
    }
    let mut shard = recorder.shard(0);
    shard.set_aside(Moment::After);
    let moments: Vec<Moment> = shard
        .over
        .iter()
        .filter(|slot| slot.counts[0].committed > 0)
        .map(|slot| slot.moment)
        .collect();
    drop(shard);
    let mut sum = 0;
    for (position, moment) in moments.iter().enumerate() {
        let mut merged = Slot::new(*moment, KINDS);
        recorder.take(&mut merged);
        sum += merged.counts[0].committed;
        let left = recorder
            .shard(0)
            .over
            .iter()
            .filter(|slot| slot.counts[0].committed > 0)
            .count();
        assert_eq!(left, moments.len() - position - 1);
    }
    assert_eq!(sum, 5);
}

#[test]
fn nothing_is_measured_before_a_schedule_is_set() {
    let recorder = Recorder::new(2, &Kind::NAMES);
    assert!(!end(
        &recorder,
        (0, Kind::Payment),
        Outcome::Committed,
        monotonic_ns(),
        0
    ));
    recorder.error(1, Kind::Payment as usize, &error("2006", "early"));
    recorder.end_now();
    assert!(recorder.errors().is_empty() && recorder.schedule().is_none());
    assert_eq!(recorder.totals(), (0, 1), "but the error is in the total");
}

#[test]
fn a_clock_that_seems_to_go_back_is_a_latency_of_almost_nothing() {
    let recorder = recording(1, Measure::DurationNs(HOUR_NS));
    end(
        &recorder,
        (0, Kind::Payment),
        Outcome::RolledBack,
        monotonic_ns() + HOUR_NS,
        0,
    );
    let slot = measured(&recorder);
    assert_eq!(slot.counts[1].rolled_back, 1);
    assert_eq!(slot.latencies[1].len(), 1);
    assert!(slot.latencies[1].max() <= 1);
}

#[test]
fn a_transaction_that_ends_with_the_window_is_after_it_and_one_that_begins_it_is_inside() {
    let schedule = Schedule::new(1_000, Measure::DurationNs(100), 30, Measure::DurationNs(60));
    let at = |time_ns| schedule.moment(time_ns);
    assert_eq!(
        at(999),
        Moment::RampUp(0),
        "before the ramp-up there is only the ramp-up"
    );
    assert_eq!(
        (at(1_099), at(1_100)),
        (Moment::RampUp(3), Moment::Measured(0))
    );
    assert_eq!(
        (at(1_129), at(1_130)),
        (Moment::Measured(0), Moment::Measured(1))
    );
    assert_eq!((at(1_159), at(1_160)), (Moment::Measured(1), Moment::After));
    schedule.end_by(1_140);
    assert_eq!(
        (at(1_139), at(1_140)),
        (Moment::Measured(1), Moment::After),
        "ended early"
    );
    schedule.end_by(1_150);
    assert_eq!(schedule.end_ns(), 1_140, "an end is never put off");
    assert_eq!(schedule.span(Moment::Measured(1)), (1_130, 1_140));
    assert_eq!(schedule.next(Moment::Measured(1)), Moment::After);
}

#[test]
fn intervals_taken_before_the_next_transaction_ends_leave_nothing_behind() {
    let recorder = recording(1, Measure::DurationNs(HOUR_NS));
    let slots = || {
        let shard = recorder.shard(0);
        shard.over.len() + shard.spare.len()
    };
    let before = slots();
    let mut merged = Slot::new(Moment::After, 1);
    for interval in 0..100 {
        recorder.shard(0).open_for(Moment::Measured(interval));
        recorder.shard(0).open.counts[0].committed += 1;
        merged.reset(Moment::Measured(interval));
        recorder.take(&mut merged);
        assert_eq!(merged.counts[0].committed, 1);
    }
    assert!(slots() <= before + 1, "{before} {}", slots());
}
