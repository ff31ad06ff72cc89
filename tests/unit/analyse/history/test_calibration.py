"""The short version of benches/history.py, with fixed seeds: error rates stay below what they are said to be."""

import numpy as np
import pytest
from history import noises

from fairtrial.analyse.history import segments
from fairtrial.analyse.history.noise import noise

ALPHA = 0.05
SERIES = 300
LENGTH = 30


def false_changes(values: np.ndarray) -> float:
    """By p alone: PELT finds something where p is below alpha (test_segments shows it)."""
    p = []
    for row in values:
        found = noise(row)
        assert found is not None
        p.append(segments.p_value(row, found))
    return float(np.mean(np.array(p) <= ALPHA))


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("independent normal", ALPHA),
        ("AR(1), 0.4", 0.08),  # 0.05 and three standard errors of 300 series
        ("5 % outliers of 8 sd", ALPHA),
    ],
)
def test_series_without_a_change_show_one_rarely(kind: str, most: float) -> None:
    values = dict(noises(SERIES, LENGTH, np.random.default_rng(11)))[kind]
    assert false_changes(values) <= most


def test_drift_is_found() -> None:
    values = dict(noises(SERIES, LENGTH, np.random.default_rng(11)))["drift of 2 sd"]
    assert false_changes(values) > 0.15


def test_a_step_of_three_standard_deviations_is_found_after_six_points_mostly() -> None:
    values = np.random.default_rng(12).standard_normal((SERIES, LENGTH))
    values[:, -6:] += 3
    assert false_changes(values) > 0.5
