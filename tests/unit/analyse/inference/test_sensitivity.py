"""Equivalence and detectable effects against statsmodels, R and simulation."""

import math
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_ind, ttost_paired
from support.skips import require

from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.sequential import anytime

RANDOM = np.random.default_rng(11)
FIRST, SECOND = RANDOM.normal(0, 0.02, 10), RANDOM.normal(0.005, 0.01, 10)


@pytest.mark.parametrize("bound", [0.005, 0.02, 0.05])
def test_paired_equivalence_is_statsmodels(bound: float) -> None:
    test = t_tests.paired(FIRST, SECOND, confidence=0.95)
    assert test is not None
    assert sensitivity.equivalence(test, bound=bound) == pytest.approx(ttost_paired(SECOND, FIRST, -bound, bound)[0])


@pytest.mark.parametrize("bound", [0.005, 0.02, 0.05])
def test_unpaired_equivalence_is_statsmodels(bound: float) -> None:
    test = t_tests.welch(FIRST, SECOND, confidence=0.95)
    assert test is not None
    theirs = ttost_ind(SECOND, FIRST, -bound, bound, usevar="unequal")[0]
    assert sensitivity.equivalence(test, bound=bound) == pytest.approx(theirs)


@given(st.floats(-0.1, 0.1), st.floats(0.001, 0.1))
def test_equivalence_at_level_is_the_90_percent_interval_inside_the_bounds(estimate: float, error: float) -> None:
    reach = t_tests.quantile(0.95, 9) * error
    test = t_tests.TTest(estimate, error, df=9, confidence=0.95)
    inside = estimate - reach > -0.05 and estimate + reach < 0.05
    assert (sensitivity.equivalence(test, bound=0.05) < 0.05) == inside


@pytest.mark.parametrize(("n", "alpha"), [(3, 0.05), (5, 0.05), (10, 0.05), (10, 0.05 / 6), (30, 0.01)])
def test_detectable_effect_is_statsmodels(n: int, alpha: float) -> None:
    """In standard deviations of one paired difference."""
    theirs = TTestPower().solve_power(nobs=n, alpha=alpha, power=0.8, alternative="two-sided")
    assert sensitivity.shift(n - 1, alpha=alpha) / math.sqrt(n) == pytest.approx(theirs, rel=1e-4)


def test_detectable_effect_is_found_four_times_in_five() -> None:
    n, sd, alpha = 6, 0.03, 0.05
    random = np.random.default_rng(3)
    error = sd / math.sqrt(n)
    effect = sensitivity.shift(n - 1, alpha=alpha) * error
    samples = random.normal(effect, sd, (20_000, n))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / math.sqrt(n))
    found = float((np.abs(t) > t_tests.quantile(1 - alpha / 2, n - 1)).mean())
    assert found == pytest.approx(0.8, abs=0.012)  # four Monte-Carlo standard errors


@pytest.mark.parametrize("n", [47, 61, 89, 1114])
def test_a_wrong_tail_too_small_to_be_computed_ends_no_report(n: int) -> None:
    """Levels that an always-valid rule asks for after n blocks of ten comparisons: SciPy knew no such tail."""
    critical = anytime.reach(n, level=0.005)
    shift = sensitivity.shift(n - 1, alpha=2 * float(special.stdtr(n - 1, -critical)))
    assert sensitivity.power(n - 1, critical=critical, noncentrality=shift) == pytest.approx(
        sensitivity.POWER, rel=1e-6
    )


@pytest.mark.servers
def test_r_gives_the_same_power() -> None:
    require("Rscript")
    script = (
        "cat(sprintf('%.12g', power.t.test(n = 7, delta = 1.3, sd = 1, type = 'one.sample', strict = TRUE,"
        " sig.level = 0.02)$power))"
    )
    theirs = float(subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True).stdout)
    ours = sensitivity.power(6, critical=t_tests.quantile(0.99, 6), noncentrality=1.3 * math.sqrt(7))
    assert ours == pytest.approx(theirs, rel=1e-8)
