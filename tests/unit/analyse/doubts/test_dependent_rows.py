"""Rows that are samples of one run: found where they are, and seldom said of independent ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.measured import ArmValues

Draw = Callable[[np.random.Generator, int], np.ndarray]


def measured(values: np.ndarray) -> ArmValues:
    n = len(values)
    return ArmValues(arm="a", values=values, blocks=tuple(range(n)), positions=tuple(range(n)), absent=0)


def said(*values: np.ndarray) -> bool:
    return any(order_doubts.dependent_rows("tps", [measured(each) for each in values]))


def correlated(random: np.random.Generator, n: int, *, share: float) -> np.ndarray:
    values = [random.normal()]
    for noise in random.normal(size=n - 1):
        values.append(share * values[-1] + np.sqrt(1 - share**2) * noise)
    return 1000.0 * np.exp(0.02 * np.array(values))


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda random, n: random.normal(size=n), id="normal"),
        pytest.param(lambda random, n: np.exp(3 * random.normal(size=n)), id="outliers"),
        pytest.param(lambda random, n: random.poisson(1, n).astype(float), id="counts"),
        pytest.param(lambda random, n: (random.random(n) < 0.1).astype(float), id="rare"),
    ],
)
@pytest.mark.parametrize(("n", "groups"), [(20, 2), (60, 6)])
def test_independent_rows_are_seldom_said_to_depend(draw: Draw, n: int, groups: int) -> None:
    random = np.random.default_rng(3)
    assert sum(said(*(draw(random, n) for _ in range(groups))) for _ in range(300)) <= 10  # 1 in 1,000 of 1 %


def test_seconds_of_one_process_are_found() -> None:
    random = np.random.default_rng(4)
    assert all(said(*(correlated(random, 300, share=0.9) for _ in range(2))) for _ in range(10))
    assert sum(said(*(correlated(random, 60, share=0.5) for _ in range(2))) for _ in range(40)) > 34


def test_a_drift_is_no_condition_for_being_alike() -> None:
    """Up and down again, whatever the line through it."""
    assert said(np.tile(np.r_[np.arange(10.0), np.arange(10.0, 0, -1)], 5))


@pytest.mark.parametrize("values", [np.arange(19.0), np.full(50, 3.0)])
def test_few_rows_and_constants_are_not_judged(values: np.ndarray) -> None:
    assert not said(values)


def test_neighbours_that_alternate_are_no_samples_of_one_run() -> None:
    assert not said(np.tile([1.0, 2.0], 50))


@pytest.mark.parametrize("values", [[1.0, 2.0, 5.0, 7.0, 7.0, 9.0], [0.0, 0.0, 0.0, 1.0, 1.0, 4.0]])
def test_moments_are_those_of_all_orders(values: list[float]) -> None:
    scores = (np.array(values) - np.mean(values)) / np.std(values)
    every = [np.dot(each[:-1], each[1:]) for each in map(np.array, itertools.permutations(scores))]
    assert order_doubts._over_orders(scores) == pytest.approx((np.mean(every), np.var(every)))


def test_the_doubt_says_what_was_seen_and_what_to_name() -> None:
    of = [measured(np.arange(20.0)), measured(np.arange(3.0))]
    (doubt,) = order_doubts.dependent_rows("tps", of, unit="cluster")
    assert doubt.message == (
        "neighbouring clusters of an arm are alike: the autocorrelation of their ranks is 0.85 "
        "(p = 0.001, 20 clusters in one group), as in samples of one run"
    )
    assert "`--cluster`" in doubt.advice
