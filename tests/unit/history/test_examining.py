"""From points to what a reader is told: changes, spikes, alarms, acknowledgements."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.inference.series import noisy, series, stepped

from fairtrial.history import HistoryOptions, KnownChange, examine
from fairtrial.history.examining import TAIL_INDEX
from fairtrial.history.models import LevelChange, SeriesResult
from fairtrial.history.series import Series


def one(of: Series, **options: object) -> SeriesResult:
    return examine([of], options=HistoryOptions(**options)).series[0]  # type: ignore[arg-type]


def test_a_step_is_found_where_it_is_and_as_large_as_it_is() -> None:
    found = one(series(stepped(30, at=18, ratio=1.08, seed=1)))
    (change,) = found.changes
    assert (change.index, change.run, change.previous) == (18, "r18", "r17")
    assert change.ratio.estimate == pytest.approx(1.08, rel=0.01)
    assert change.ratio.low < 1.08 < change.ratio.high
    assert change.difference == pytest.approx(80, rel=0.15)
    assert (change.direction, change.relevant, change.went_away) == ("better", True, False)
    assert found.p < 0.01


def test_the_metrics_direction_decides_what_is_worse() -> None:
    values = stepped(30, at=18, ratio=1.08, seed=1)
    directions = {
        better: one(series(values, better=better)).changes[0].direction for better in ("higher", "lower", None)
    }
    assert directions == {"higher": "better", "lower": "worse", None: "changed"}


def test_a_steady_series_has_no_change() -> None:
    found = one(series(noisy(30, seed=2)))
    assert (found.changes, found.spikes) == ((), ())
    assert found.p > 0.05


@pytest.mark.parametrize("seed", range(5))
def test_spikes_are_no_changes(seed: int) -> None:
    values = noisy(30, seed=seed)
    values[[8, 14, 20]] *= 1.5
    found = one(series(values))
    assert found.changes == ()
    assert {8, 14, 20} <= {spike.index for spike in found.spikes}


def test_a_level_that_came_and_went_says_so() -> None:
    values = noisy(36, seed=4)
    values[12:22] *= 1.1
    found = one(series(values))
    assert [change.index for change in found.changes] == [12, 22]
    assert [change.went_away for change in found.changes] == [True, False]


def test_a_change_within_the_margin_is_not_relevant() -> None:
    values = stepped(40, at=20, ratio=1.03, seed=7)
    assert [one(series(values, margin=margin)).changes[0].relevant for margin in (0.0, 0.05)] == [True, False]
    assert not one(series(values), margin=0.05).changes[0].relevant


def test_what_else_differs_at_a_change_is_named() -> None:
    of = series(stepped(24, at=12, ratio=1.2, seed=1))
    points = tuple(
        replace(p, facts={"version": "1" if i < 12 else "2", "kernel": "6"}) for i, p in enumerate(of.points)
    )
    assert one(replace(of, points=points)).changes[0].differing == {"version": ("1", "2")}


@pytest.mark.parametrize(
    ("known", "matches"),
    [
        (KnownChange(run="r12", because="the new compiler"), True),
        (KnownChange(run="r14", because="placed two points later when it was acknowledged"), True),
        (KnownChange(run="r16", because="another"), False),
        (KnownChange(run="r12", because="another metric", metric="latency"), False),
        (KnownChange(run="r12", because="another series", series="t"), False),
        (KnownChange(run="r12", because="by name", series="s", metric="tpm"), True),
    ],
)
def test_an_acknowledgement_names_run_series_and_metric(known: KnownChange, matches: bool) -> None:  # noqa: FBT001
    (change,) = one(series(stepped(24, at=12, ratio=1.2, seed=1)), known=(known,)).changes
    assert (change.known == known) is matches


def test_a_newest_point_far_off_raises_an_alarm() -> None:
    values = noisy(20, seed=3)
    values[-1] *= 0.9
    found = one(series(values))
    assert found.changes == ()
    assert found.alarm is not None
    assert (found.alarm.raised, found.alarm.direction, found.alarm.run) == (True, "worse", "r19")
    assert found.alarm.expected == pytest.approx(1000, rel=0.01)
    assert found.alarm.ratio.high < 1


def with_spike(at: int, *, spike: float, newest: float) -> SeriesResult:
    values = noisy(20, seed=3)
    values[at] *= spike
    values[-1] *= newest
    return one(series(values))


def test_a_newest_point_no_farther_off_than_an_earlier_one_is_no_news() -> None:
    """Rank 2 of 20, to either side: p is a fifth, whatever the t test says."""
    alarm = with_spike(8, spike=0.8, newest=0.85).alarm
    assert alarm is not None
    assert (alarm.p, alarm.raised) == (pytest.approx(2 * 2 / 20), False)


def test_a_spike_to_the_other_side_excuses_nothing() -> None:
    alarm = with_spike(8, spike=1.25, newest=0.85).alarm
    assert alarm is not None
    assert alarm.raised


def test_twice_as_far_off_as_the_farthest_is_news_by_the_tails_power() -> None:
    near, far = (with_spike(8, spike=0.8, newest=ratio).alarm for ratio in (0.8**1.5, 0.8**3))
    assert near is not None
    assert far is not None
    assert near.p / far.p == pytest.approx(2**TAIL_INDEX, rel=0.2)


def test_the_newest_point_is_held_against_the_newest_level() -> None:
    found = one(series(stepped(30, at=15, ratio=1.3, seed=5)))
    assert found.alarm is not None
    assert not found.alarm.raised
    assert found.alarm.expected == pytest.approx(1300, rel=0.02)


def test_an_alarm_among_many_series_needs_more() -> None:
    values = noisy(20, seed=3)
    values[-1] = 0.952 * float(np.median(values[:-1]))
    alone = one(series(values)).alarm
    every = [series(values), *(series(noisy(20, seed=seed), name=f"s{seed}") for seed in range(10, 40))]
    among = examine(every, options=HistoryOptions()).series[0].alarm
    assert alone is not None
    assert among is not None
    assert (alone.raised, among.raised) == (True, False)
    assert among.p_adjusted > alone.p_adjusted == pytest.approx(alone.p)


def test_a_point_of_fewer_trials_is_allowed_more() -> None:
    of = series(noisy(20, seed=3))
    known = tuple(replace(point, standard_error=0.001) for point in of.points)
    wide = (*known[:-1], replace(known[-1], standard_error=0.05))
    p = [one(replace(of, points=points)).alarm.p for points in (known, wide)]  # type: ignore[union-attr]
    assert p[1] > p[0]


def test_the_variance_a_point_has_beyond_its_forerunners_widens_its_interval() -> None:
    """Twice the standard error adds four times the variance; the interval's half width is a multiple of its root."""
    of = series(noisy(20, seed=3))
    known = [replace(point, standard_error=0.001) for point in of.points]

    def square(error: float) -> float:
        points = (*known[:-1], replace(known[-1], standard_error=error))
        ratio = one(replace(of, points=points)).alarm.ratio  # type: ignore[union-attr]
        return math.log(ratio.high / ratio.low) ** 2

    added = [square(error) - square(0.001) for error in (0.05, 0.1)]
    assert added[1] / added[0] == pytest.approx((0.1**2 - 0.001**2) / (0.05**2 - 0.001**2))


def test_too_few_points_say_so() -> None:
    assert one(series(noisy(5, seed=1))).alarm is None
    found = one(series(noisy(7, seed=1)))
    assert found.alarm is not None
    assert found.p is None
    assert found.doubts[0] == "change points need at least 8 points, found 7"


def test_a_constant_series_is_no_error() -> None:
    found = one(series([5.0] * 12))
    assert (found.p, found.alarm, found.noise) == (None, None, None)
    assert "do not vary" in found.doubts[0]


def test_values_that_are_not_positive_are_taken_as_they_are() -> None:
    generator = np.random.default_rng(1)
    values = np.concatenate([generator.normal(0, 1, 15), generator.normal(9, 1, 15)])
    (change,) = one(series(values)).changes
    assert (change.index, change.ratio.estimate) == (15, None)
    assert change.difference == pytest.approx(9, abs=1)


def test_values_that_are_not_positive_are_judged_alike_in_any_unit() -> None:
    def found(unit: float) -> SeriesResult:
        values = unit * np.concatenate([np.random.default_rng(1).normal(0, 1, 20), [3]])
        of = series(values)
        errors = [*[0.5 * unit] * 20, unit]
        points = tuple(replace(each, standard_error=error) for each, error in zip(of.points, errors, strict=True))
        return one(replace(of, points=points))

    plain, small = found(1.0), found(1e-6)
    assert plain.alarm is not None
    assert small.alarm is not None
    assert (small.p, small.alarm.p) == pytest.approx((plain.p, plain.alarm.p))
    assert (1e6 * small.noise, 1e6 * small.alarm.expected) == pytest.approx((plain.noise, plain.alarm.expected))


def test_only_the_newest_points_are_looked_at() -> None:
    found = one(series(noisy(210, seed=1)))
    assert (len(found.values), found.left_out, found.runs[0]) == (200, 10, "r10")


def test_one_p_among_many_is_doubted() -> None:
    values = stepped(20, at=14, ratio=1.015, seed=9)
    alone = one(series(values))
    assert alone.p is not None
    assert 0.001 < alone.p < 0.05
    many = [series(values), *(series(noisy(20, seed=seed), name=f"s{seed}") for seed in range(100, 140))]
    found = examine(many, options=HistoryOptions()).series[0]
    assert found.p_adjusted > 0.05
    assert "among all series examined" in found.doubts[0]


def test_the_interval_of_a_change_holds_the_truth_most_of_the_time() -> None:
    looked = [one(series(stepped(24, at=12, ratio=1.1, seed=seed))) for seed in range(40)]
    hits = [change.ratio.low < 1.1 < change.ratio.high for each in looked for change in each.changes]
    assert len(hits) >= 38
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize("lengths", [(12, 8), (12, 5, 5), (5, 5, 5, 5), (20, 20)])
def test_steps_are_no_part_of_the_noise(lengths: tuple[int, ...]) -> None:
    levels = np.repeat(np.resize([1.0, 1.1], len(lengths)), lengths)
    looked = [one(series(levels * noisy(len(levels), seed=seed))) for seed in range(25)]
    found = [each for each in looked if len(each.changes) == len(lengths) - 1]
    assert len(found) >= 22
    assert np.median([each.noise for each in found]) == pytest.approx(0.01, rel=0.15)
    changes = [change for each in found for change in each.changes]
    assert np.median([change.noise_sds for change in changes]) == pytest.approx(math.log(1.1) / 0.01, rel=0.2)
    held = [change.ratio.low < 1.1**sign < change.ratio.high for each in found for change, sign in signed(each)]
    assert np.mean(held) >= 0.95
    assert np.mean([change.ratio.low < 1 < change.ratio.high for change in changes]) < 0.05


def signed(of: SeriesResult) -> list[tuple[LevelChange, int]]:
    """Changes of a series that goes up first and then down and up by turns."""
    return [(change, -1 if index % 2 else 1) for index, change in enumerate(of.changes)]


def test_a_step_between_constants_has_its_size_exactly_and_no_noise() -> None:
    found = one(series([100.0] * 15 + [90.0] * 4))
    (change,) = found.changes
    assert (found.noise, found.autocorrelation, change.noise_sds) == (0, 0, None)
    assert (change.ratio.low, change.ratio.estimate, change.ratio.high) == pytest.approx((0.9, 0.9, 0.9))
    assert found.doubts == ()
    assert found.alarm is not None
    assert (found.alarm.p, found.alarm.raised) == (1, False)


def test_a_spike_after_a_step_is_found_as_before_one() -> None:
    found = 0
    for seed in range(20):
        values = stepped(20, at=12, ratio=1.12, seed=seed)
        values[16] *= 0.92
        found += any(spike.index == 16 for spike in one(series(values)).spikes)
    assert found >= 16


def test_logarithms_make_ratios_symmetric() -> None:
    up, down = (one(series(stepped(24, at=12, ratio=ratio, seed=1))).changes[0] for ratio in (1.25, 0.8))
    assert math.log(up.ratio.estimate) == pytest.approx(-math.log(down.ratio.estimate), abs=0.02)
