"""When a run may pass: by its history, and against one other run."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.inference.series import noisy, series, stepped
from support.records import planned, tiny_plan, trial_record

from fairtrial.history import HistoryOptions, KnownChange, examine, segments
from fairtrial.history.gating import BETWEEN_RUNS, Gate, by_baseline, by_history
from fairtrial.history.series import Series
from fairtrial.metrics.telemetry import shutdown
from fairtrial.record.events import JournalLine, RunFinished
from fairtrial.record.models import RangeExpectation, TrialFinished
from fairtrial.record.reader import Record
from fairtrial.study.catalogue import Better


def gate(*every: Series, **options: object) -> Gate:
    return by_history(examine(every, options=HistoryOptions(**options)))  # type: ignore[arg-type]


def dropped(ratio: float = 0.9) -> np.ndarray:
    values = noisy(20, seed=3)
    values[-1] *= ratio
    return values


def statuses(found: Gate) -> list[str]:
    return [check.status for check in found.checks]


def test_a_steady_history_passes() -> None:
    found = gate(series(noisy(20, seed=2)))
    assert (statuses(found), found.passed) == (["passed"], True)


def test_a_newest_run_that_is_worse_fails() -> None:
    found = gate(series(dropped()))
    assert (statuses(found), found.passed) == (["failed"], False)
    assert "newest run" in found.checks[0].message


def test_a_newest_run_whose_cell_failed_an_expectation_is_undecided() -> None:
    found = gate(replace(series(noisy(20, seed=2)), newest="r20", unmet=True))
    assert (statuses(found), found.outcome) == (["undecided"], "undecided")
    assert found.checks[0].message == "the cell failed an expectation in the newest run, r20"


def test_a_level_that_became_worse_fails_until_it_is_acknowledged() -> None:
    values = stepped(30, at=18, ratio=0.9, seed=1)
    assert "level changed at r18" in gate(series(values)).checks[0].message
    acknowledged = gate(series(values), known=(KnownChange(run="r18", because="the new checksum"),))
    assert acknowledged.passed
    assert "the new checksum" in acknowledged.checks[0].message


def test_a_level_that_became_worse_fails_among_hundreds_of_series() -> None:
    steady = [series(noisy(10, seed=seed), name=f"s{seed}") for seed in range(420)]
    examined = examine([series(stepped(14, at=8, ratio=0.6, seed=1)), *steady], options=HistoryOptions())
    assert examined.series[0].p == segments.SMALLEST_P
    assert statuses(by_history(examined)) == ["failed"] + ["passed"] * 420


def test_a_level_that_became_worse_fails_beside_a_count_whose_first_run_differs() -> None:
    loss, count = series(stepped(18, at=12, ratio=0.6, seed=1)), series([5.0, *[3.0] * 17], name="errors")
    examined = examine([loss, count], options=HistoryOptions())
    assert (examined.series[1].p, examined.series[1].changes) == (1.0, ())
    assert all(each.p_adjusted is not None and 0 < each.p_adjusted <= 1 for each in examined.series)
    assert statuses(by_history(examined)) == ["failed", "passed"]


def test_a_newest_run_that_is_worse_counts_beside_an_old_loss() -> None:
    values = stepped(24, at=14, ratio=0.96, seed=1)
    values[-1] /= 2
    (check,) = gate(series(values)).checks
    assert "level changed at r14" in check.message
    assert "newest run" in check.message
    assert check.worse_by == pytest.approx(0.52, abs=0.02)


def test_losses_in_a_row_are_as_large_as_all_of_them() -> None:
    values = stepped(60, at=20, ratio=0.9, seed=1)
    values[40:] *= 0.9
    (check,) = gate(series(values)).checks
    assert "level changed at r40" in check.message
    assert check.worse_by == pytest.approx(0.19, abs=0.02)


@pytest.mark.parametrize("before", [7, 12])
def test_deterministic_losses_in_a_row_are_as_large_as_all_of_them(before: int) -> None:
    """The first is a change of the level only with many runs before it."""
    (check,) = gate(series([*[100.0] * before, 90.0, 90.0, 90.0, 80.0])).checks
    assert check.status == "failed"
    assert check.worse_by == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("acknowledged", "newest", "status"),
    [
        (1.1, 1.1, "passed"),
        (1.1, 0.5, "failed"),
        (0.5, 0.5, "passed"),
        (0.5, 0.2, "failed"),
        (0.5, 1.0, "passed"),
    ],
)
@pytest.mark.parametrize("between", [0, 1])
def test_an_acknowledgement_excuses_the_next_runs_only_so_far_as_they_agree_with_it(
    acknowledged: float, newest: float, *, status: str, between: int
) -> None:
    values = noisy(16 + between, seed=3)
    values[14:] *= acknowledged
    values[-1] *= newest / acknowledged
    known = (KnownChange(run="r14", because="the new compiler"),)
    assert statuses(gate(series(values), known=known)) == [status]


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_run_is_excused_by_its_own_acknowledgement_beside_that_of_the_run_before(order: int) -> None:
    values = noisy(20, seed=3)
    values[18:] *= 0.85, 0.6
    known = (KnownChange(run="r18", because="a full disk"), KnownChange(run="r19", because="the new compiler"))
    (check,) = gate(series(values), known=known[::order]).checks
    assert (check.status, "the new compiler" in check.message) == ("passed", True)


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_run_is_excused_by_the_acknowledgement_that_it_agrees_with(order: int) -> None:
    values = noisy(20, seed=3)
    values[17:] *= 0.6, 0.85, 0.85
    known = (KnownChange(run="r17", because="a full disk"), KnownChange(run="r18", because="the new compiler"))
    alarm = examine((series(values),), options=HistoryOptions(known=known[::order])).series[0].alarm
    assert alarm is not None
    assert alarm.known == known[1]


@pytest.mark.parametrize(
    ("p", "alarm_alpha", "status"),
    [(0.045, 0.01, "passed"), (0.035, 0.01, "failed"), (0.03, 0.05, "passed"), (0.02, 0.05, "failed")],
)
def test_changes_get_the_level_that_alarms_leave_and_half_of_it_at_least(
    p: float, alarm_alpha: float, status: str
) -> None:
    found = examine([series(stepped(30, at=18, ratio=0.9, seed=1))], options=HistoryOptions(alarm_alpha=alarm_alpha))
    examined = found.series[0].model_copy(update={"p_adjusted": p})
    assert statuses(by_history(found.model_copy(update={"series": (examined,)}))) == [status]


def test_an_old_loss_that_was_made_good_passes() -> None:
    values = noisy(36, seed=4)
    values[12:22] *= 0.9
    assert gate(series(values)).passed


@pytest.mark.parametrize(("better", "status"), [("higher", "passed"), ("lower", "failed"), (None, "failed")])
def test_only_what_is_better_passes(better: str | None, status: str) -> None:
    assert statuses(gate(series(dropped(1.1), better=better))) == [status]  # type: ignore[arg-type]


def test_what_is_within_the_margin_passes() -> None:
    values = stepped(40, at=20, ratio=0.97, seed=6)
    assert [gate(series(values), margin=margin).passed for margin in (0.01, 0.1)] == [False, True]


@pytest.mark.parametrize(("classes", "status"), [(0, "passed"), (1, "passed"), (-1, "passed"), (3, "failed")])
def test_a_constant_known_by_class_is_left_by_more_than_a_class(classes: int, status: str) -> None:
    """True values of neighbouring classes may be equal."""
    for scale in (10.27, -10.27):
        values = [scale] * 7 + [scale * 1.018**classes]
        exact = series(values, better=None, margin=0.01)
        assert statuses(gate(exact)) == ["failed" if classes else "passed"]
        assert statuses(gate(replace(exact, resolution=0.018))) == [status]


def test_too_few_runs_are_skipped_and_a_gate_of_nothing_else_is_shut() -> None:
    short = series(noisy(4, seed=1))
    assert statuses(gate(short)) == ["skipped"]
    assert not gate(short).passed
    assert gate(short, series(noisy(20, seed=2), name="t")).passed


@pytest.mark.parametrize(
    ("newest", "better", "status"),
    [(2.9, "higher", "failed"), (2.99, "higher", "passed"), (3.1, "higher", "passed"), (3.1, "lower", "failed")],
)
def test_a_count_that_never_varied_is_noise_enough(newest: float, better: Better, status: str) -> None:
    for before in (5, 19):
        for later in ([newest], [newest, newest], [2.0, newest]):
            values = [*[3.0] * before, *later]
            assert statuses(gate(series(values, better=better, margin=0.02))) == [status]


def test_a_deterministic_loss_fails_from_its_first_run_until_it_is_made_good() -> None:
    """Two runs are no level yet: until the third of them is one, the constant before decides."""
    values = [3.0] * 15
    for _ in range(4):
        values.append(2.0)
        assert statuses(gate(series(values))) == ["failed"]
    assert statuses(gate(series([*[3.0] * 15, 2.0, 3.0]))) == ["passed"]
    assert statuses(gate(series([*[3.0] * 4, 2.0, 2.0]))) == ["passed"]  # four are no constant yet


@pytest.mark.parametrize("held", [2, 3, 10])
def test_a_deterministic_loss_after_an_earlier_change_fails_from_its_first_run(held: int) -> None:
    for later in ([3.9], [3.9, 3.9]):
        found = gate(series([*[3.0] * 15, *[4.0] * held, *later]))
        message = f"{held} runs from r15 on have 4, the newest has 3.9"
        assert [(each.status, each.message) for each in found.checks] == [("failed", message)]


def test_a_count_that_once_left_its_level_for_a_run_or_two_has_noise() -> None:
    for excursion in ([4.0], [4.0, 4.0]):
        assert gate(series([*[3.0] * 8, *excursion, *[3.0] * 8, 4.0], better="lower")).passed


def test_the_level_before_the_newest_two_runs_is_their_constant() -> None:
    """In series this long, permutations alone take the last three points for a level of their own."""
    for before in (36, 43):
        found = gate(series([*[3.0] * before, 4.0, 3.0]))
        assert (found.passed, found.checks[0].message) == (True, "newest run against the previous level: +0.0 %")


def test_runs_that_differ_by_rounding_are_a_constant() -> None:
    rounded = [*100 + 1e-12 * np.random.default_rng(1).random(15)]
    found = gate(
        series(rounded), series([*rounded, 90.0]), series([*rounded, 90.0, 90.0]), series([*rounded, *[90.0] * 3])
    )
    assert [(check.status, check.message) for check in found.checks] == [
        ("passed", "all 15 runs have 100"),
        ("failed", "the first 15 of 16 runs have 100, the newest has 90"),
        ("failed", "the first 15 of 17 runs have 100, the newest has 90"),
        ("failed", "level changed at r15: −10.0 %; worse"),
    ]


@pytest.mark.parametrize(
    ("before", "newest", "message"),
    [
        (1e-300, 1e300, "the first 10 of 11 runs have 1e-300, the newest has 1e+300"),
        (-1e-300, 1e300, "the first 10 of 11 runs have -1e-300, the newest has 1e+300"),
        (1e300, 1e-300, "the first 10 of 11 runs have 1e+300, the newest has 1e-300"),
    ],
)
def test_values_whose_ratio_or_square_no_number_holds_are_judged(before: float, newest: float, message: str) -> None:
    found = gate(series([*[before] * 10, newest], better=None))
    assert (statuses(found), found.checks[0].message) == (["failed"], message)


def test_a_count_that_never_changed_passes() -> None:
    found = gate(series([3.0] * 20))
    assert (found.checks[0].status, found.checks[0].message) == ("passed", "all 20 runs have 3")
    assert statuses(gate(series([3.0] * 5))) == ["skipped"]


@pytest.mark.parametrize("values", [noisy(20, seed=2), [3.0] * 20])
def test_a_newest_run_without_a_value_fails(values: np.ndarray | list[float]) -> None:
    found = gate(replace(series(values), newest="r20"))
    assert (statuses(found), found.passed) == (["failed"], False)
    assert found.checks[0].message == "the newest run, r20, has no value; the last run with a value is r19"
    assert gate(replace(series(values), newest="r19")).passed


def record(name: str, *, level: float, blocks: int = 8, seed: int = 0, noise: float = 0.01) -> Record:
    """Times of arms a and b around `level`, 1 % apart from trial to trial unless it is said."""
    generator = np.random.default_rng(seed)
    trials = [
        trial_record(planned(block, arm)).model_copy(
            update={"scalars": {"elapsed_s": level * math.exp(noise * generator.standard_normal())}}
        )
        for block in range(1, blocks + 1)
        for arm in "ab"
    ]
    entries = [TrialFinished(trial=each.trial.id, valid=True, files={}) for each in trials]
    lines = tuple(
        JournalLine(sequence=i, time="2026-01-01T00:00:00Z", entry=entry)
        for i, entry in enumerate([*entries, RunFinished()])
    )
    found = Record(directory=Path(name), plan=tiny_plan(), journal=lines)
    vars(found)["trials"] = tuple(trials)  # the cached property, without files
    return found


def test_a_run_as_fast_as_the_other_passes() -> None:
    found = by_baseline(record("new", level=1.0, seed=1), record("old", level=1.0), metrics=["elapsed_s"], alpha=0.05)
    assert (statuses(found), found.against) == (["passed", "passed"], "old")
    assert BETWEEN_RUNS in found.notes


def test_a_slower_run_fails_and_a_faster_one_passes() -> None:
    old = record("old", level=1.0)
    slow, fast = (
        by_baseline(record("new", level=level, seed=1), old, metrics=["elapsed_s"], alpha=0.05) for level in (1.1, 0.9)
    )
    assert (statuses(slow), slow.passed) == (["failed", "failed"], False)
    assert "+10" in slow.checks[0].message
    assert fast.passed


def test_a_change_that_no_percentage_holds_is_told_in_the_metrics_unit() -> None:
    found = by_baseline(
        record("new", level=1e10, seed=1), record("old", level=1e-298), metrics=["elapsed_s"], alpha=0.05
    )
    assert [each.message.partition(", p")[0] for each in found.checks] == ["+1e+10 s: slower", "+1.002e+10 s: slower"]


def test_a_metric_is_judged_by_its_definition_as_within_a_run() -> None:
    """Hits of 98.5 % after 99.5: three times as many misses, more than a margin of 2 %. And values one class apart."""
    new, old = (
        defined(record(name, level=level, noise=0.0003), unit="share", better="higher")
        for name, level in {"new": 0.985, "old": 0.995}.items()
    )
    assert statuses(by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05, margin=0.02)) == ["failed", "failed"]
    new, old = (
        defined(record(name, level=level, noise=0.0), resolution=1 / 1024)
        for name, level in {"new": 1000960.0, "old": 1000448.0}.items()
    )
    assert by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05, margin=0.0002).passed


def test_a_guardrail_is_held_against_its_own_margin() -> None:
    def against_old(level: float, blocks: int = 20, **rails: float) -> Gate:
        new, old = (
            guarded(record(name, level=each, blocks=blocks), **rails) for name, each in {"new": level, "old": 1}.items()
        )
        return by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05, margin=0.001)

    for found, status, said in (
        (against_old(1.05, elapsed_s=0.1), "passed", ": kept (at worst "),
        (against_old(1.05), "failed", ": breached (at worst "),
        (against_old(1.05, blocks=8, elapsed_s=0.05), "undecided", ": unclear (at worst "),
    ):
        assert [each.status for each in found.checks] == [status, status]
        assert all(said in each.message for each in found.checks)


def guarded(found: Record, **rails: float) -> Record:
    """The run whose only metric is a guardrail, with margins of their own."""
    roles = {"primary": [], "guardrails": ["elapsed_s"], "guardrail_margins": rails}
    return measuring(found, **roles)


def defined(found: Record, **how: float | str) -> Record:
    """The run with another definition of its metric."""
    definition = found.plan.metrics.definitions["elapsed_s"].model_copy(update=how)
    return measuring(found, definitions={"elapsed_s": definition})


def measuring(found: Record, **planned: object) -> Record:
    """The run with something else planned of its metrics."""
    metrics = found.plan.metrics.model_copy(update=planned)
    other = replace(found, plan=found.plan.model_copy(update={"metrics": metrics}))
    vars(other)["trials"] = found.trials
    return other


def test_a_difference_within_the_margin_passes() -> None:
    new, old = record("new", level=1.03, seed=1, blocks=20), record("old", level=1.0, blocks=20)
    assert [
        by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05, margin=margin).passed for margin in (0.001, 0.1)
    ] == [False, True]


def test_what_the_baseline_lacks_is_skipped() -> None:
    new, old = record("new", level=1.0), record("old", level=1.0)
    vars(old)["trials"] = tuple(each for each in old.trials if each.trial.arm == "a")
    found = by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05)
    assert [(each.status, each.message) for each in found.checks[1:]] == [("skipped", "the baseline has no value")]
    assert found.passed


@pytest.mark.parametrize("of_both", [False, True])
def test_a_run_without_a_value_that_its_plan_asks_for_fails(of_both: bool) -> None:  # noqa: FBT001
    new, old = record("new", level=1.0), record("old", level=1.0)
    for each in (new, old) if of_both else (new,):
        vars(each)["trials"] = tuple(trial for trial in each.trials if trial.trial.arm == "a")
    found = by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05)
    assert (statuses(found), found.passed) == (["passed", "failed"], False)
    assert found.checks[1].message == "the run has no value"


def expecting(found: Record, *, at_least: float) -> Record:
    """The run with something expected of its only cell."""
    cells = [found.plan.cells[0].model_copy(update={"levels": {"load": "low"}})]
    expected = RangeExpectation(factor="load", level="low", metric="elapsed_s", low=at_least, high=None, text="")
    other = replace(found, plan=found.plan.model_copy(update={"cells": cells, "expectations": [expected]}))
    vars(other)["trials"] = found.trials
    return other


@pytest.mark.parametrize("of", [record, lambda name, **how: guarded(record(name, **how))])
def test_a_cell_that_failed_an_expectation_in_either_run_is_undecided(of: Callable[..., Record]) -> None:
    new, old = of("new", level=1.1, seed=1, noise=0.001), of("old", level=1.0, noise=0.001)
    for met, ends in ((True, (0.5, 0.5)), (False, (0.5, 2)), (False, (2, 0.5))):
        one, other = (expecting(each, at_least=end) for each, end in zip((new, old), ends, strict=True))
        found = by_baseline(one, other, metrics=["elapsed_s"], alpha=0.05)
        assert statuses(found) == ["failed" if met else "undecided"] * 2
        assert met or {each.message for each in found.checks} == {"the cell failed an expectation"}


@pytest.mark.parametrize(
    ("cut", "role", "status"),
    [
        ("neither", "primary", "failed"),
        ("new", "primary", "failed"),  # and would have been slower still
        ("old", "primary", "passed"),
        ("neither", "guardrails", "failed"),
        ("old", "guardrails", "undecided"),
    ],
)
def test_nothing_is_claimed_that_longer_shutdowns_of_a_run_would_deny(cut: str, role: str, status: str) -> None:
    def shut_down(name: str, *, level: float, seed: int = 0) -> Record:
        found = record(name, level=level, seed=seed)
        roles = {"primary": [], "guardrails": []} | {role: [shutdown.TIME]}
        other = measuring(found, definitions=shutdown.DEFINITIONS, **roles)
        vars(other)["trials"] = tuple(
            each.model_copy(
                update={"scalars": {shutdown.TIME: each.scalars["elapsed_s"], shutdown.CENSORED: float(name == cut)}}
            )
            for each in found.trials
        )
        return other

    found = by_baseline(
        shut_down("new", level=1.1, seed=1), shut_down("old", level=1.0), metrics=[shutdown.TIME], alpha=0.05
    )
    assert statuses(found) == [status] * 2


def test_trials_of_voided_blocks_are_not_used() -> None:
    new, old = record("new", level=1.1, seed=1), record("old", level=1.0)
    ruined = [
        each.model_copy(update={"valid": False, "scalars": {"elapsed_s": 50.0}}) if each.trial.block == 1 else each
        for each in old.trials
    ]
    vars(old)["trials"] = tuple(ruined)
    assert not by_baseline(new, old, metrics=["elapsed_s"], alpha=0.05).passed
