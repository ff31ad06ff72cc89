"""The always-valid t against the integral it is the closed form of, and against paths that look for long."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from fairtrial.analyse.sequential import anytime


@pytest.mark.parametrize(("n", "t"), [(3, 0.5), (3, 6.0), (8, 2.0), (20, 3.0)])
def test_it_is_the_mixture_over_effects_of_the_law_of_t(n: int, t: float) -> None:
    """With the spread integrated out: the noncentral t density over the central one, mixed over effects."""

    def weighed(effect: float) -> float:
        return float(stats.norm.pdf(effect) * stats.nct.pdf(t, n - 1, effect * math.sqrt(n)))

    mixed, _ = integrate.quad(weighed, -8, 8, limit=200)
    factor = mixed / stats.t.pdf(t, n - 1)
    assert math.exp(float(anytime.log_bayes_factor(np.array(t), n))) == pytest.approx(factor, rel=1e-5)


def test_it_hardly_ever_claims_what_is_not_there_however_long_one_looks() -> None:
    values = np.random.default_rng(5).standard_normal((4_000, 60))
    claimed = np.zeros(len(values), dtype=bool)
    for n in range(2, values.shape[1] + 1):
        claimed |= anytime.p(stats.ttest_1samp(values[:, :n], 0.0, axis=1).statistic, n) < 0.05
    assert stats.binomtest(int(claimed.sum()), len(values), 0.05, alternative="greater").pvalue > 0.01
    assert claimed.mean() < 0.05


@given(n=st.integers(3, 500), level=st.floats(1e-6, 0.5))
def test_the_interval_leaves_out_exactly_what_p_rejects(n: int, level: float) -> None:
    away = anytime.reach(n, level=level)
    if math.isinf(away):
        assert anytime.p(np.array(1e8), n) >= level
    else:
        assert float(anytime.p(np.array(away), n)) == pytest.approx(level, rel=1e-6)


def test_it_is_wider_than_a_single_look() -> None:
    for n in (6, 10, 50):
        assert anytime.reach(n, level=0.05) > special.stdtrit(n - 1, 0.975)


def test_an_infinite_statistic_has_a_finite_p() -> None:
    assert 0 < float(anytime.p(np.array(math.inf), 5)) < 1
