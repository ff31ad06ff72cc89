"""What a series' noise is taken for."""

import numpy as np
import pytest
from history import autoregressive

from fairtrial.history.noise import noise


def known(autocorrelation: float, *, length: int = 4000) -> np.ndarray:
    return autoregressive(autocorrelation, (1, length), np.random.default_rng(5))[0]


@pytest.mark.parametrize("autocorrelation", [0.0, 0.4, 0.7])
def test_a_long_series_gives_its_spread_and_its_autocorrelation(autocorrelation: float) -> None:
    found = noise(3 * known(autocorrelation))
    assert found is not None
    assert found.sd == pytest.approx(3, rel=0.12)
    assert autocorrelation <= found.autocorrelation < autocorrelation + 0.1  # errs to the careful side


def test_a_step_adds_little_to_the_noise() -> None:
    values = known(0.0, length=60)
    stepped = values + np.where(np.arange(60) < 30, 0, 50)
    plain, other = noise(values), noise(stepped)
    assert plain is not None
    assert other is not None
    assert other.unit < 1.15 * plain.unit


def test_spikes_add_little_to_the_noise() -> None:
    values = known(0.0, length=60)
    spiked = values.copy()
    spiked[[10, 30, 50]] += 50
    plain, other = noise(values), noise(spiked)
    assert plain is not None
    assert other is not None
    assert other.unit < 1.6 * plain.unit


def test_a_constant_series_has_none() -> None:
    assert noise(np.full(10, 4.0)) is None


def test_mostly_equal_values_still_have_a_spread() -> None:
    values = np.full(20, 4.0)
    values[[3, 9, 10]] = 5.0
    found = noise(values)
    assert found is not None
    assert found.unit > 0


def test_alternating_neighbours_are_not_taken_as_more_than_independent() -> None:
    found = noise(np.tile([0.0, 1.0], 20))
    assert found is not None
    assert found.autocorrelation == 0
    assert found.effective(10) == 10


def test_points_that_follow_each_other_are_worth_fewer() -> None:
    found = noise(known(0.7))
    assert found is not None
    assert 1 <= found.effective(10) < 3
