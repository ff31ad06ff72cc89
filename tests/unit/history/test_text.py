"""A history in text."""

import re

import numpy as np
from support.inference.series import noisy, series, stepped

from fairtrial.history import History, HistoryOptions, KnownChange, examine
from fairtrial.history import text as report
from fairtrial.history.series import Series


def text(*every: Series, left_out: dict[str, str] | None = None, known: tuple[KnownChange, ...] = ()) -> str:
    found = examine(every, options=HistoryOptions(known=known), left_out=left_out)
    assert History.model_validate_json(found.model_dump_json()) == found
    return "\n".join(report.text(found))


def test_a_change_is_shown_with_its_size_interval_and_place() -> None:
    shown = text(series(stepped(30, at=18, ratio=1.08, seed=1), margin=0.02))
    assert re.search(r"change at r18: \+[78]\.\d % \[\+\d", shown)
    assert "beyond the margin of 2 %" in shown
    assert "1 change" in shown


def test_a_step_between_constants_has_no_noise_to_be_counted_in() -> None:
    shown = text(series([100.0] * 15 + [90.0] * 4, margin=0.02))
    assert "change at r15: −10.0 % [−10.0 %, −10.0 %], worse" in shown
    assert "100.0 tpm → 90.0 tpm; no noise; beyond the margin of 2 %" in shown


def test_a_known_change_shows_its_reason() -> None:
    known = (KnownChange(run="r18", because="the new compiler"),)
    shown = text(series(stepped(30, at=18, ratio=1.08, seed=1)), known=known)
    assert "known: the new compiler" in shown
    assert "1 change, known" in shown


def test_a_spike_and_an_alarm_are_named_as_such() -> None:
    values = noisy(30, seed=2)
    values[10] *= 1.5
    values[-1] *= 0.8
    shown = text(series(values))
    assert "spike at r10" in shown
    assert "alarm at r29" in shown
    assert "run again" in shown


def test_a_steady_series_has_its_line_and_nothing_else() -> None:
    shown = text(series(noisy(30, seed=2)), left_out={"r99": "unfinished"})
    assert "steady" in shown
    assert "left out: r99: unfinished" in shown
    assert "change at" not in shown


def test_values_that_are_not_positive_are_shown_as_differences() -> None:
    generator = np.random.default_rng(1)
    shown = text(series(np.concatenate([generator.normal(0, 1, 15), generator.normal(9, 1, 15)])))
    assert "change at r15: +" in shown
    assert "tpm, better" in shown


def test_too_few_points_are_said() -> None:
    assert "too few" in text(series(noisy(4, seed=2)))


def test_a_constant_is_said_in_the_words_of_the_gate() -> None:
    shown = text(series([100.0] * 30))
    assert "all 30 runs have 100" in shown
    assert "too few" not in shown


def test_leaving_a_constant_is_no_spike_and_said_in_the_words_of_the_gate() -> None:
    shown = text(series([*[100.0] * 29, 90.0]))
    assert "left its constant: the first 29 of 30 runs have 100, the newest has 90" in shown
    assert "spike at" not in shown
    assert "spike at r28: 90.0 tpm" in text(series([*[100.0] * 28, 90.0, 100.0]))


def test_a_ratio_that_no_number_holds_is_shown_as_a_difference() -> None:
    values = [1e-300] * 8 + [1e300] * 8
    assert "change at r08: +1e+300 tpm, better" in text(series(values))
    assert "change at r08: +1e+300 tpm, better" in text(series([-each if each < 1 else each for each in values]))
