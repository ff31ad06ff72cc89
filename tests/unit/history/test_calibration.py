"""The short version of benches/history.py, with fixed seeds: error rates are what they are said to be.

A hundred and twenty series: a rate of 5 % shows 12 % or more once in a thousand times.
"""

import numpy as np
import pytest
from history import history, noises, scaled

from fairtrial.history import History
from fairtrial.history.gating import by_history

SERIES = 120
LENGTH = 24
MOST = 0.12


def looked_at(values: np.ndarray) -> list[History]:
    return [history(scaled(row)) for row in values]


def changed(found: list[History]) -> float:
    return float(np.mean([bool(each.series[0].changes) for each in found]))


def failed(found: list[History]) -> float:
    return float(np.mean([not by_history(each).passed for each in found]))


@pytest.mark.parametrize(
    "kind",
    [
        "independent normal",
        "AR(1), 0.4",
        "Student's t, 3 df",
        "10 % of points -15 %",
        "two modes, any order",
        "two modes, alternating",
    ],
)
def test_series_without_a_change_show_one_and_fail_a_gate_rarely(kind: str) -> None:
    found = looked_at(dict(noises(SERIES, LENGTH, np.random.default_rng(11)))[kind])
    assert changed(found) < MOST
    assert failed(found) < MOST
    if kind == "independent normal":
        assert changed(found) >= 0.02  # not far below what is promised either: that costs power


def test_a_drift_is_found_more_often() -> None:
    assert changed(looked_at(dict(noises(SERIES, LENGTH, np.random.default_rng(11)))["drift of 2 sd"])) > MOST


@pytest.mark.parametrize(("size", "after", "least"), [(5.0, 6, 0.95), (3.0, 6, 0.5)])
def test_a_step_is_found_after_six_points(size: float, after: int, least: float) -> None:
    values = np.random.default_rng(12).standard_normal((SERIES // 3, 20))
    values[:, -after:] += size
    assert changed(looked_at(values)) >= least


def test_a_newest_run_that_stalls_as_others_did_fails_no_gate_and_one_far_below_does() -> None:
    values = np.random.default_rng(13).standard_normal((SERIES // 3, LENGTH))
    values[:, [5, 14]] -= 15
    for move, least, most in ((-15, 0.0, MOST), (-45, 0.9, 1.0)):
        values[:, -1] = move
        assert least <= failed(looked_at(values)) <= most
