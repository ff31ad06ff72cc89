"""Boundaries against published ones, against the multivariate normal integral, and against simulated t statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from fairtrial.analyse.sequential import boundaries as solving
from fairtrial.analyse.sequential.boundaries import LEVELS, Boundaries, boundaries, looks
from fairtrial.analyse.sequential.chain import EDGES, NEARLY_NORMAL, Law, sequential_t, sequential_z
from fairtrial.analyse.sequential.spending import FUNCTIONS, Spending

REPLICATES = 30_000
QUARTERS = (5, 10, 15, 20)
# Lan and DeMets' spending functions, two-sided 0.05, looks at a quarter, half, three quarters and all: the values that
# gsDesign (sfLDOF, sfLDPocock) and the program of Reboussin et al. print.
PUBLISHED = {
    "obrien_fleming": (4.3326, 2.9631, 2.3590, 2.0141),
    "pocock": (2.3683, 2.3675, 2.3582, 2.3498),
}


def of_normal(spending: Spending, *, sides: int = 2) -> Boundaries:
    spent = [FUNCTIONS[spending](LEVELS, n / 20, sides) for n in QUARTERS]
    return solving.solve(sequential_z, QUARTERS, spent=spent, sides=sides)


def critical(found: Boundaries, *, level: float) -> list[float]:
    return [float(-special.ndtri(found.nominal_level(n, level=level) / found.sides)) for n in found.looks]


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_with_a_known_spread_they_are_the_published_ones(spending: Spending) -> None:
    assert critical(of_normal(spending), level=0.05) == pytest.approx(PUBLISHED[spending], abs=4e-3)


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_the_multivariate_normal_integral_gives_their_level(spending: Spending) -> None:
    b = np.array(critical(of_normal(spending), level=0.05))
    shares = np.array(QUARTERS) / 20
    correlation = np.sqrt(np.minimum.outer(shares, shares) / np.maximum.outer(shares, shares))
    normal = stats.multivariate_normal(cov=correlation, seed=1, abseps=1e-6, releps=1e-6, maxpts=400_000)
    inside = float(normal.cdf(b, lower_limit=-b))
    assert 1 - inside == pytest.approx(0.05, abs=3e-4)


@pytest.mark.parametrize("law", [sequential_z, sequential_t], ids=["z", "t"])
@pytest.mark.parametrize("n", [2, 3, 7, 20, NEARLY_NORMAL + 5])
def test_a_step_of_the_chain_keeps_the_law_that_every_look_has_by_itself(law: Law, n: int) -> None:
    """After any number of blocks y is standard normal: integrating the step over it must give that again."""
    before = -np.diff(special.ndtr(-EDGES))
    after = before @ law(n, n + 1)
    body = np.abs(EDGES) < 4
    assert after[body] == pytest.approx(special.ndtr(-EDGES[body]), rel=0.02)
    assert 1 - after[body] == pytest.approx(special.ndtr(EDGES[body]), rel=0.03)


def test_two_steps_are_as_one_over_both() -> None:
    once = sequential_t(3, 5)
    assert once == pytest.approx(-np.diff(sequential_t(3, 4), axis=1) @ sequential_t(4, 5), abs=1e-12)


def crossing_share(found: Boundaries, *, level: float) -> float:
    """How often t statistics of nothing cross, the slow way."""
    values = np.random.default_rng(7).standard_normal((REPLICATES, found.looks[-1]))
    crossed = np.zeros(REPLICATES, dtype=bool)
    for n in found.looks:
        t = values[:, :n].mean(axis=1) / (values[:, :n].std(axis=1, ddof=1) / np.sqrt(n))
        p = 2 * special.stdtr(n - 1, -np.abs(t)) if found.sides == 2 else special.stdtr(n - 1, t)
        crossed |= p < found.nominal_level(n, level=level)
    return float(crossed.mean())


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
@pytest.mark.parametrize("sides", [1, 2])
def test_t_statistics_of_nothing_cross_as_often_as_the_level_says(spending: Spending, sides: int) -> None:
    """Quantiles of t in place of normal ones overshoot to 0.053 to 0.055; these do not."""
    found = boundaries(spending, first=3, last=10, sides=sides)
    for level in (0.05, 0.3):
        error = np.sqrt(level * (1 - level) / REPLICATES)
        assert crossing_share(found, level=level) == pytest.approx(level, abs=3 * error)


def test_one_look_is_the_fixed_test() -> None:
    found = boundaries("pocock", first=8, last=8, sides=2)
    assert found.nominal_level(8, level=0.05) == pytest.approx(0.05, rel=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    level=st.floats(1e-9, 0.4),
    n=st.integers(3, 12),
    spending=st.sampled_from(["pocock", "obrien_fleming"]),
    sides=st.sampled_from([1, 2]),
)
def test_the_sequential_p_of_a_boundary_is_its_level(*, level: float, n: int, spending: Spending, sides: int) -> None:
    found = boundaries(spending, first=3, last=12, sides=sides)
    nominal = found.nominal_level(n, level=level)
    if nominal > 1e-15:  # O'Brien and Fleming's first looks ask for less than the grid reaches
        assert found.sequential_p(np.array([nominal]), n)[0] == pytest.approx(level, rel=1e-2)


@settings(max_examples=40, deadline=None)
@given(p=st.lists(st.floats(0, 1), min_size=2, max_size=8), n=st.integers(3, 10))
def test_looking_often_never_makes_a_p_smaller_and_never_changes_the_order(p: list[float], n: int) -> None:
    nominal = np.sort(np.array(p))
    found = boundaries("pocock", first=3, last=10, sides=2).sequential_p(nominal, n)
    assert np.all(found >= nominal)
    assert np.all(np.diff(found) >= 0)
    assert np.all((found >= 0) & (found <= 1))


def test_looks_are_after_every_block_at_first_and_always_after_the_last() -> None:
    assert looks(3, 10) == tuple(range(3, 11))
    many = looks(3, 1000)
    assert many[:98] == tuple(range(3, 101))
    assert many[-1] == 1000
    assert len(many) < 200
