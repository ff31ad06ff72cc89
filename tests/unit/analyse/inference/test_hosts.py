"""Random effects over hosts, against R's metafor and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairtrial.analyse.inference.hosts import HostMeans, host_means

# The BCG vaccine trials (Colditz et al. 1994), metafor's own example: log relative risks and their variances.
TREATED = np.array(
    [(4, 119), (6, 300), (3, 228), (62, 13536), (33, 5036), (180, 1361), (8, 2537), (505, 87886), (29, 7470),
     (17, 1699), (186, 50448), (5, 2493), (27, 16886)]
)  # fmt: skip
CONTROL = np.array(
    [(11, 128), (29, 274), (11, 209), (248, 12619), (47, 5761), (372, 1079), (10, 619), (499, 87892), (45, 7232),
     (65, 1600), (141, 27197), (3, 2338), (29, 17825)]
)  # fmt: skip
BCG = HostMeans(
    means=np.log(TREATED[:, 0] / TREATED.sum(axis=1)) - np.log(CONTROL[:, 0] / CONTROL.sum(axis=1)),
    variances=1 / TREATED[:, 0] - 1 / TREATED.sum(axis=1) + 1 / CONTROL[:, 0] - 1 / CONTROL.sum(axis=1),
)
UNEVEN = HostMeans(
    means=np.array([0.031, 0.092, -0.018, 0.047, 0.060, 0.01]), variances=0.0003 / np.array([2, 5, 3, 1, 4, 3])
)
ALIKE = HostMeans(
    means=np.array([0.031, 0.035, 0.028, 0.030, 0.033, 0.032]), variances=0.0003 / np.array([2, 5, 3, 1, 4, 3])
)
# metafor 3.8 in R 4.2: rma(means, variances, method = "PM", test = "adhoc"), predict(), and confint() with a tolerance
# of 1e-13, because by default its search ends at four digits.
METAFOR = {
    "BCG": (
        BCG,
        {"tau2": 3.18068452205e-01, "q": 1.52233008082e02, "p": 1.99676459085e-26, "i2": 9.23303379542e-01,
         "mean": -7.14968153493e-01, "error": 1.80892191538e-01, "low": -1.10909838120, "high": -3.20837925785e-01,
         "below": -2.00542592293, "above": 5.75489615941e-01},
        (1.19718361141e-01, 1.11147908406),
    ),
    "uneven": (
        UNEVEN,
        {"tau2": 1.40450567378e-03, "q": 9.29609259259e01, "p": 1.60324310902e-18, "i2": 9.31152565374e-01,
         "mean": 3.71544577065e-02, "error": 1.59759134007e-02, "low": -3.91293508900e-03, "high": 7.82218505021e-02,
         "below": -6.75706639946e-02, "above": 1.41879579408e-01},
        (4.96547195571e-04, 8.87081297543e-03),
    ),
    "alike": (
        ALIKE,
        {"tau2": 0.0, "q": 0.341666666666667, "p": 0.996785221856754, "i2": 0.0, "mean": 0.032166666666667,
         "error": 0.004082482904639, "low": 0.021672310267707, "high": 0.042661023065626,
         "below": 0.021672310267707, "above": 0.042661023065626},
        (0.0, 0.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METAFOR)
def test_metafor_says_the_same(name: str) -> None:
    means, expected, interval = METAFOR[name]
    reach, ahead = float(means.reach(0.95)), float(means.prediction_reach(0.95, noise=0.0))
    mean = float(means.mean)
    found = {
        "tau2": means.tau2, "q": means.q(), "p": means.p, "i2": means.i2, "mean": mean, "error": means.error,
        "low": mean - reach, "high": mean + reach, "below": mean - ahead, "above": mean + ahead,
    }  # fmt: skip
    assert {key: float(value) for key, value in found.items()} == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert [float(end) for end in means.tau2_interval(confidence=0.95)] == pytest.approx(interval, rel=1e-9)


def test_a_known_spread_is_the_limit_of_an_estimated_one() -> None:
    many = HostMeans(BCG.means, BCG.variances, df=1e9)
    assert float(many.p) == pytest.approx(float(BCG.p), rel=1e-5)
    assert float(many.crossing_p) == pytest.approx(float(BCG.crossing_p), rel=1e-6)
    ends, limit = (each.tau2_interval(confidence=0.95) for each in (BCG, many))
    assert [float(end) for end in ends] == pytest.approx([float(end) for end in limit], rel=1e-6)


def test_the_p_of_equal_hosts_is_that_of_analysis_of_variance() -> None:
    random = np.random.default_rng(1)
    by_host = [random.normal(0.01 * host, 0.02, 2 + host) for host in range(5)]
    found, expected = host_means(by_host), stats.f_oneway(*by_host)
    assert float(found.q()) / 4 == pytest.approx(expected.statistic)
    assert float(found.p) == pytest.approx(expected.pvalue)
    assert found.df == 15


def test_with_equally_many_blocks_tau_is_that_of_reml_and_of_mean_squares() -> None:
    random = np.random.default_rng(2)
    by_host = [random.normal(effect, 0.02, 4) for effect in random.normal(0, 0.03, 6)]
    found = host_means(by_host)
    means = np.array([each.mean() for each in by_host])
    within = float(np.mean([each.var(ddof=1) for each in by_host]))
    assert float(found.tau2) == pytest.approx(float(means.var(ddof=1)) - within / 4)
    assert float(found.mean) == pytest.approx(float(means.mean()))
    assert float(found.error) == pytest.approx(float(means.std(ddof=1)) / math.sqrt(6))


def test_without_a_host_of_two_blocks_hosts_are_what_blocks_are() -> None:
    values = np.array([0.031, 0.052, 0.018, 0.047, 0.060])
    found, expected = host_means([values[[index]] for index in range(5)]), stats.ttest_1samp(values, 0)
    interval = expected.confidence_interval(0.95)
    assert float(found.mean) - float(found.reach(0.95)) == pytest.approx(interval.low)
    assert float(found.mean) + float(found.reach(0.95)) == pytest.approx(interval.high)
    assert (float(found.p), float(found.crossing_p)) == (1.0, 1.0)


def test_hosts_without_any_spread_have_no_error() -> None:
    assert math.isnan(float(host_means([np.array([0.5, 0.5]), np.array([0.5])]).error))


effects = st.lists(st.floats(-1, 1), min_size=2, max_size=8)


@given(effects, st.data())
def test_tau_balances_the_scatter_and_lies_in_its_interval(values: list[float], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 40), min_size=len(values), max_size=len(values)))
    found = HostMeans(np.array(values), 0.01 / np.array(counts), df=20.0)
    tau2, hosts = float(found.tau2), len(values)
    low, high = found.tau2_interval(confidence=0.95)
    assert low <= tau2 * (1 + 1e-9)
    assert tau2 <= high * (1 + 1e-9)
    if tau2:
        assert float(found.q(found.tau2)) == pytest.approx(hosts - 1, rel=1e-6)
    else:
        assert float(found.q()) <= hosts - 1 + 1e-6
    known = 1 / math.sqrt(float((1 / found.variances).sum()))
    assert float(found.error) >= known * (1 - 1e-12)  # never narrower than if hosts did not differ
    scaled = HostMeans(3 * found.means + 7, 9 * found.variances, df=20.0)
    assert float(scaled.tau2) == pytest.approx(9 * tau2, rel=1e-6, abs=1e-12)
    assert float(scaled.mean) == pytest.approx(3 * float(found.mean) + 7, abs=1e-9)


def test_many_runs_at_once_are_one_by_one() -> None:
    random = np.random.default_rng(5)
    means, variances = random.normal(0, 0.03, (50, 6)), random.uniform(1e-5, 1e-3, (50, 6))
    together = HostMeans(means, variances, df=12.0)
    for run in range(50):
        alone = HostMeans(means[run], variances[run], df=12.0)
        for name in ("tau2", "mean", "error", "p", "i2", "crossing_p"):
            assert float(getattr(together, name)[run]) == pytest.approx(float(getattr(alone, name)), rel=1e-9)


def test_two_hosts_cross_as_half_a_chi_square_says() -> None:
    """Gail and Simon's closed form: of two hosts the smaller square, half of the time beyond that of one normal."""
    found = HostMeans(np.array([0.03, -0.01]), np.array([1e-4, 1e-4]))
    assert float(found.crossing_p) == pytest.approx(0.5 * stats.chi2.sf(1.0, 1))
    assert float(HostMeans(np.array([0.03, 0.01]), np.array([1e-4, 1e-4])).crossing_p) == 1.0


def test_hosts_at_the_edge_of_one_sign_cross_as_often_as_the_level_says() -> None:
    """Where the arm does nothing on all hosts but one, and much there, hosts come nearest to disagreeing by chance."""
    random = np.random.default_rng(7)
    means = random.normal(0, 0.01, (40_000, 4))
    means[:, 0] += 1
    edge = HostMeans(means, np.full(4, 1e-4)).crossing_p
    assert float((edge < 0.05).mean()) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 40_000)
    means[:, 1] -= 0.05
    assert float((HostMeans(means, np.full(4, 1e-4)).crossing_p < 0.01).mean()) > 0.9


def test_a_thousand_hosts_are_no_number_too_large() -> None:
    random = np.random.default_rng(8)
    found = host_means(list(random.normal(0, 0.01, (1500, 2))))
    assert 0 < float(found.crossing_p) <= 1
    assert float(found.tau2) < 1e-5
