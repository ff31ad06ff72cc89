"""The law of scalability against R's nls, on the published examples of Gunther's book and of the R package `usl`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.analyse.designs import usl

# nls(log(x) ~ l + log(n) - log(1 + s * (n - 1) + k * n * (n - 1))) of R 4.2 with an analytic gradient, tol = 1e-9:
# parameters, their standard errors, the residual sum of squares and the peak.
RAYTRACER = (
    [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64],
    [20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310],
    [3.07229988338033, 5.64054410682229e-02, 3.35826676640996e-06],
    [0.044085581948648, 0.007685847977767, 0.000119510882085],
    (0.0254395090114764, 530.072310067876),
)
SDM91 = (
    [1, 18, 36, 72, 108, 144, 216],
    [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2],
    [4.218659155116413650, 0.013452473165684075, 0.000115110078158277],
    [6.67958958784e-02, 4.04218973965e-03, 2.16209513193e-05],
    (0.0222771151787075, 92.5768355488886),
)


@pytest.mark.parametrize(("n", "x", "theta", "errors", "left"), [RAYTRACER, SDM91])
def test_published_examples_are_fitted_as_r_fits_them(
    n: list[float], x: list[float], theta: list[float], *, errors: list[float], left: tuple[float, float]
) -> None:
    rest, peak = left
    at, logs = np.array(n, dtype=float), np.log(x)
    found = usl.fitted(logs, at)
    np.testing.assert_allclose(found, theta, rtol=1e-6)
    np.testing.assert_allclose(usl.peak(found), peak, rtol=1e-6)
    off = logs - usl.logs(found, at)
    np.testing.assert_allclose(off @ off, rest, rtol=1e-9)
    slopes = usl.gradient(found, at)
    covariance = (off @ off) / (len(n) - 3) * np.linalg.inv(slopes.T @ slopes)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), errors, rtol=1e-6)
    np.testing.assert_array_equal(usl.bounded(found, logs, at), found)


@given(st.floats(1, 1e6), st.floats(0, 0.5), st.floats(0, 0.01))
def test_a_curve_without_noise_is_found_again(rate: float, sigma: float, kappa: float) -> None:
    n = np.array([1.0, 2, 4, 8, 16, 32, 64])
    theta = np.array([np.log(rate), sigma, kappa])
    np.testing.assert_allclose(usl.fitted(usl.logs(theta, n), n), theta, rtol=1e-6, atol=1e-9)


def test_many_curves_at_once_are_those_one_by_one() -> None:
    random = np.random.default_rng(3)
    n = np.array([1.0, 2, 5, 9, 20])
    many = usl.logs(np.array([4.0, 0.05, 0.002]), n) + random.normal(0, 0.05, (4, 5))
    np.testing.assert_allclose(usl.fitted(many, n), [usl.fitted(each, n) for each in many], rtol=1e-8)


def test_throughput_that_is_flat_from_the_smallest_value_on_is_fitted() -> None:
    """Of some the best fit has infinite throughput of one user and infinite contention, which steps only approach."""
    n = np.array([12.0, 16, 24, 32, 48, 60])
    for seed in range(60):
        logs = np.log(1000) + np.random.default_rng(seed).normal(0, 0.03, 6)
        free = usl.fitted(logs, n)
        assert abs((logs - usl.logs(free, n)).mean()) < 1e-3
        held = usl.bounded(free, logs, n)
        left, of_a_constant = (np.square(logs - each).sum() for each in (usl.logs(held, n), logs.mean()))
        assert left <= of_a_constant * (1 + 1e-9)


def test_the_gradient_is_that_of_the_curve() -> None:
    n, theta, step = np.array([1.0, 7, 30]), np.array([4.0, 0.05, 0.002]), 1e-7
    for index, slope in enumerate(usl.gradient(theta, n).T):
        moved = theta + step * np.eye(3)[index]
        np.testing.assert_allclose((usl.logs(moved, n) - usl.logs(theta, n)) / step, slope, rtol=1e-3, atol=1e-6)


def test_growth_in_more_than_proportion_has_a_negative_parameter_and_a_bounded_fit_without_it() -> None:
    n = np.array([1.0, 2, 4, 8, 16])
    logs = usl.logs(np.array([3.0, -0.02, 0.001]), n)
    free = usl.fitted(logs, n)
    assert free[1] == pytest.approx(-0.02)
    held = usl.bounded(free, logs, n)
    assert held[1] == 0
    assert held[2] >= 0
    around = [np.square(logs - usl.logs(held + step, n)).sum() for step in np.eye(3) * [1e-3, 1e-5, 1e-5]]
    assert np.square(logs - usl.logs(held, n)).sum() < min(around)


@pytest.mark.parametrize(
    ("theta", "errors", "found"),
    [
        ((0, 0.03, 0.0006), (0.001, 0.00002), (38.9, 41.7)),
        ((0, 0.03, 0.00002), (0.001, 0.00002), (126.6, np.inf)),  # coherency may be 0: no peak is shown
        ((0, 0.9, 0.00002), (0.2, 0.00002), (np.nan, np.inf)),
        ((0, 1.2, 0.01), (0.01, 0.0001), (np.nan, 0.0)),  # falls from the first user on
        ((0, 0.1, -0.0008), (0.001, 0.00002), (np.inf, np.inf)),  # grows without end
        ((0, 0.1, -0.00003), (0.001, 0.00002), (300.0, np.inf)),
        ((0, 1.2, -0.0008), (0.01, 0.00002), (np.nan, np.inf)),  # falls at first
    ],
)
def test_the_interval_of_the_peak_is_open_where_no_end_is_shown(
    theta: tuple[float, float, float], errors: tuple[float, float], *, found: tuple[float, float]
) -> None:
    covariance = np.diag(np.square(errors))
    ends = usl.peak_interval(np.array(theta), covariance, reach=np.array(2.0))
    np.testing.assert_allclose(ends, found, rtol=0.005)
