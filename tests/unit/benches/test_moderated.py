"""Moderated variances as the bench measures them: plain t where nothing is lent, uniform where all cells are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibrated_paths import ALPHA, Setup
from moderated import (
    FALSE,
    POWER_LARGE,
    POWERS,
    SPREADS,
    TESTS,
    Design,
    Families,
    Prior,
    differences,
    moderated,
    moments,
    simulate,
    table,
)
from scipy import special, stats

from fairtrial.analyse.inference import confirming, families, t_tests

RUNS = 4000


def drawn(of: Design, *, runs: int = RUNS, seed: int = 1) -> t_tests.Values:
    setup = Setup(noise=of.noise, n=of.n, runs=runs, random=np.random.default_rng(seed))
    return differences(setup, of)


def test_a_prior_without_degrees_of_freedom_leaves_student_t() -> None:
    values = drawn(Design(6, 8, "bimodal", "log-sd 1"), runs=50)
    shape = values.shape[:-1]
    found = moderated(values, Prior(variance=np.full(shape, 123.0), df=np.zeros(shape)))
    plain = t_tests.paired_many(np.zeros_like(values), values)
    assert found.p == pytest.approx(plain.p, rel=1e-9)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-9)


def test_a_prior_that_knows_the_variance_gives_the_normal_test() -> None:
    values = drawn(Design(12, 6, "normal", "equal"), runs=50)
    shape = values.shape[:-1]
    found = moderated(values, Prior(variance=np.full(shape, 2e-4), df=np.full(shape, 1e9)))
    z = values.mean(axis=-1) / math.sqrt(2e-4 / 6)
    assert found.standard_error == pytest.approx(math.sqrt(2e-4 / 6), rel=1e-6)
    assert found.df == pytest.approx(12 * 5)  # and no more degrees of freedom than all blocks have
    assert found.p == pytest.approx(2 * special.stdtr(60, -np.abs(z)), rel=1e-5)


@pytest.mark.parametrize("n", [6, 10])
def test_p_is_uniform_where_spreads_are_alike_and_not_where_one_is_threefold(n: int) -> None:
    of, one_noisy = Design(12, n, "normal", "equal"), Design(12, n, "normal", "one × 3")
    p = Families.of(drawn(of)).tests["moderated"].p
    # Cells of a family share their prior, so one cell of each: 4,000 independent values.
    assert stats.kstest(p[:, 0], "uniform").pvalue > 0.001
    noisy = Families.of(drawn(one_noisy)).tests["moderated"].p[:, -1]
    assert float((noisy < 0.01).mean()) > 0.02


def test_the_prior_is_the_one_that_variances_were_drawn_from() -> None:
    """Many cells of variances s² d0 / chi² with d0 degrees of freedom, as Smyth's model says."""
    random = np.random.default_rng(3)
    true = 4.0 * 7.0 / random.chisquare(7, (1, 50_000))
    prior = moments(true * random.chisquare(5, true.shape) / 5, 5)
    assert prior.df[0, 0] == pytest.approx(7, rel=0.05)
    assert prior.variance[0, 0] == pytest.approx(4, rel=0.02)
    assert np.ptp(prior.df) == 0


@pytest.mark.parametrize("name", TESTS)
def test_no_test_lends_more_than_the_moments_but_those_without_outliers(name: str) -> None:
    variances = np.var(drawn(Design(6, 8, "normal", "log-sd 0.5"), runs=300), ddof=1, axis=-1)
    found = TESTS[name](variances, 7)
    assert found.df.shape == found.variance.shape == variances.shape
    assert (found.df >= 0).all()
    if name in {"winsorised", "from the others"}:
        return
    assert (found.df <= moments(variances, 7).df).all()


def test_claims_of_the_plain_test_are_those_of_the_analysis() -> None:
    """The witnesses, heard once for all tests, say what `confirming` says."""
    values = drawn(Design(6, 10, "bimodal", "equal"), runs=300) + 0.02
    zero = np.zeros_like(values)
    p = confirming.paired(t_tests.paired_many(zero, values).p, values, level=ALPHA / 6, alpha=ALPHA)
    claimed = families.step_down(p[..., None], np.zeros((*p.shape, 1)))[..., 0] < ALPHA
    assert (Families.of(values).different()["t, as now"] == claimed).all()
    setup = Setup(noise="bimodal", n=10, runs=len(values), random=np.random.default_rng(1))
    same = setup.inside(zero, values - 0.015, size=6)
    equal = families.step_down(same[..., None], np.zeros((*same.shape, 1)))[..., 0] < ALPHA
    assert equal.any()
    assert (Families.of(values).moved(-0.015).equivalent()["t, as now"] == equal).all()


def test_lending_to_a_noisy_cell_claims_too_often_and_the_bench_says_so() -> None:
    counted = simulate(Design(6, 6, "bimodal", "one × 3"), runs=2000, seed=1)
    found = {each.rate.path: each.rate for each in counted if each.figure == FALSE}
    assert found.keys() == TESTS.keys()
    assert found["moderated"].unshown
    assert found["moderated"].estimate > 0.07
    assert found["up only"].estimate < 0.05
    assert "**" in table([each for each in counted if each.figure == FALSE])[-1]


def test_every_figure_is_there_under_normal_noise() -> None:
    counted = simulate(Design(6, 6, "normal", "equal"), runs=400, seed=1)
    figures = {each.figure for each in counted}
    assert figures > set(POWERS)
    large = {each.rate.path: each.rate for each in counted if each.figure == POWER_LARGE}
    assert large["moderated"].estimate > large["t, as now"].estimate


@pytest.mark.parametrize("spread", SPREADS)
def test_spreads_are_what_they_are_called(spread: str) -> None:
    factors = SPREADS[spread](np.random.default_rng(4), (2000, 12))
    assert factors.shape == (2000, 12)
    expected = {
        "equal": 0.0,
        "log-sd 0.5": 0.5,
        "log-sd 1": 1.0,
        "half × 2": math.log(2) / 2,
        "one × 2": math.log(2) * math.sqrt(11) / 12,
        "one × 3": math.log(3) * math.sqrt(11) / 12,
        "one × 10": math.log(10) * math.sqrt(11) / 12,
    }
    assert float(np.log(factors).std()) == pytest.approx(expected[spread], rel=0.03, abs=1e-9)
