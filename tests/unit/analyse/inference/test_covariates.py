"""Adjusted differences of blocks: R's `lm`, statsmodels, and what cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.analyse.inference import covariates, t_tests
from fairtrial.analyse.inference.t_tests import array

DIFFERENCES = array([0.031, 0.012, 0.025, 0.040, 0.008, 0.019, 0.027, 0.035, 0.004, 0.022])
SPEED = array([0.010, -0.008, 0.004, 0.021, -0.013, 0.001, 0.006, 0.017, -0.020, -0.002])
OTHER = array([2, -1, 0, 3, 1, -2, 4, -3, 0, 1])


def test_r_says_the_same() -> None:
    """`summary(lm(d ~ x + z))` and `confint`, R 4.2.2."""
    fit = covariates.regressed(DIFFERENCES, np.stack([SPEED, OTHER]))
    test = fit.tests.single(confidence=0.95)
    assert test is not None
    assert test.estimate == pytest.approx(0.020656551757513193, rel=1e-12)
    assert test.standard_error == pytest.approx(0.000509943588591747, rel=1e-12)
    assert test.p == pytest.approx(1.45637546122971e-09, rel=1e-9)
    assert (test.low, test.high) == pytest.approx((0.0194507267809849, 0.0218623767340415), rel=1e-12)
    assert fit.slopes.tolist() == pytest.approx([0.888588666096691626, 0.000443412753464213], rel=1e-10)


def test_what_remains_has_the_estimate_as_its_mean() -> None:
    fit = covariates.regressed(DIFFERENCES, SPEED[None, :])
    assert fit.remaining.mean() == pytest.approx(float(fit.tests.estimate), rel=1e-12)
    assert (DIFFERENCES - fit.slopes[0] * SPEED).tolist() == pytest.approx(fit.remaining.tolist())


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1e-200, 1e-6, 1.0, 1e150]))
def test_statsmodels_says_the_same_whatever_the_units(seed: int, count: int, unit: float) -> None:
    random = np.random.default_rng(seed)
    differences, x = random.normal(0.01, 0.02, (4, 12)), random.normal(0.3, 2.0, (4, count, 12))
    fit = covariates.regressed(differences * unit, x * 1e-6)
    for row in range(4):
        model = sm.OLS(differences[row], sm.add_constant(x[row].T)).fit()
        assert fit.tests.estimate[row] == pytest.approx(model.params[0] * unit, rel=1e-8)
        assert fit.tests.standard_error[row] == pytest.approx(model.bse[0] * unit, rel=1e-8)
        assert fit.slopes[row] == pytest.approx(model.params[1:] * unit * 1e6, rel=1e-6)
        assert fit.tests.df[row] == model.df_resid


def test_differences_that_covariates_explain_wholly_have_no_test() -> None:
    fit = covariates.regressed(0.5 * SPEED + 0.25, SPEED[None, :])
    assert fit.tests.single(confidence=0.95) is None
    assert t_tests.mean(0.5 * SPEED, confidence=0.95) is not None


def test_covariates_that_say_nothing_of_their_own_are_found() -> None:
    rows = [SPEED, 2 * SPEED + 1, OTHER, np.ones(10), SPEED - OTHER, np.full(10, 0.1) + 0.2]
    assert covariates.distinct(np.stack(rows)).tolist() == [True, False, True, False, False, False]
    assert covariates.distinct(np.stack([SPEED * 1e-9, OTHER * 1e9])).tolist() == [True, True]


@pytest.mark.parametrize(("blocks", "count", "enough"), [(5, 1, True), (4, 1, False), (6, 3, False), (7, 3, True)])
def test_three_degrees_of_freedom_are_enough(blocks: int, count: int, *, enough: bool) -> None:
    assert covariates.enough(blocks, count) is enough
