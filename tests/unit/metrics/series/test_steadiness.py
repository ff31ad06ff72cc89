"""Steady, drifting, unsteady: known answers, R's figures, a brute-force segmentation, and rates of false alarms."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.skips import require

from fairtrial.metrics.series import autocorrelation, segments, steadiness
from fairtrial.metrics.series.throughput import Throughput, Values

R = r"""
y <- scan(commandArgs(TRUE)[1], quiet = TRUE)
n <- length(y)
rho <- acf(y, lag.max = n - 1, plot = FALSE)$acf[, 1, 1]
pairs <- colSums(matrix(rho[1:(2 * (n %/% 2))], nrow = 2))
stop_at <- which(pairs <= 0)[1]
kept <- cummin(if (is.na(stop_at)) pairs else pairs[seq_len(stop_at - 1)])
line <- lm(y ~ seq_len(n))
e <- residuals(line)
phi <- (acf(e, lag.max = 1, plot = FALSE, demean = FALSE)$acf[2] + 2 / n) / (1 - 4 / n)
more <- (1 + phi) / (1 - phi)
t <- summary(line)$coefficients[2, 3] / sqrt(more)
cat(rho[2], min(n, n / max(1, 2 * sum(kept) - 1)), coef(line)[2] * n / mean(y), 2 * pt(-abs(t), n / more - 2),
    arima(y, order = c(1, 0, 0))$coef[1])
"""


def ar1(n: int, phi: float, *, seed: int, level: float = 1000, cv: float = 0.05) -> Values:
    random = np.random.default_rng(seed)
    noise = random.normal(size=n + 50)
    for at in range(1, n + 50):
        noise[at] = phi * noise[at - 1] + math.sqrt(1 - phi * phi) * noise[at]
    return np.asarray(level * (1 + cv * noise[50:]))


def by_second(values: Values) -> Throughput:
    n = len(values)
    return Throughput(starts_s=np.arange(n, dtype=float), widths_s=np.ones(n), per_s=values)


def verdict(values: Values) -> str:
    return steadiness.verify(by_second(values)).verdict


@pytest.mark.servers
@pytest.mark.parametrize(("n", "phi"), [(61, 0.5), (400, 0.6), (400, 0.2)])
def test_r_gives_the_same_correlation_sample_size_and_slope(tmp_path: Path, n: int, phi: float) -> None:
    require("Rscript")
    values = ar1(n, phi, seed=n)
    (tmp_path / "y").write_text("\n".join(repr(float(value)) for value in values), encoding="utf-8")
    told = subprocess.run(["Rscript", "-e", R, tmp_path / "y"], check=True, capture_output=True, text=True).stdout
    lag1, effective, change, p, arima = (float(word) for word in told.split())
    found = steadiness.scalars(by_second(values))
    assert found["throughput_autocorrelation"] == pytest.approx(lag1, rel=1e-5)
    assert found["throughput_effective_n"] == pytest.approx(effective, rel=1e-4)
    assert found["throughput_drift"] == pytest.approx(change, rel=1e-4)
    assert found["throughput_drift_p"] == pytest.approx(p, rel=1e-3)
    assert autocorrelation.robust_ar1(values) == pytest.approx(arima, abs=4 / math.sqrt(n))  # no changes to resist


def best_cut(values: Values, *, penalty: float, shortest: int) -> list[int]:
    """The penalised least-squares segmentation by dynamic programming over every cut, O(n²)."""
    n = len(values)
    sums, squares = np.concatenate([[0], np.cumsum(values)]), np.concatenate([[0], np.cumsum(values**2)])
    best, cut = [0.0] + [math.inf] * n, [0] * (n + 1)
    for end in range(shortest, n + 1):
        for start in range(end - shortest + 1):
            cost = squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)
            total = best[start] + cost + (penalty if start else 0)
            if total < best[end] - 1e-9:
                best[end], cut[end] = total, start
    found: list[int] = []
    while cut[n]:
        n = cut[n]
        found.append(n)
    return found[::-1]


@pytest.mark.parametrize("seed", range(6))
def test_every_cut_tried_finds_the_same_levels(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 80
    values = ar1(n, 0.3, seed=seed)
    for at in random.integers(15, n - 15, size=2):
        values[at:] *= random.choice([0.8, 1.25])
    shortest = 8
    whitened = segments.whitened_values(values, shortest=shortest)
    assert whitened is not None
    slow = best_cut(whitened, penalty=segments.PENALTY * math.log(n), shortest=shortest)
    assert list(segments.proposed(values)) == [at + 1 for at in slow]
    found = segments.levels(values)
    for start, end, mean in zip(found.starts, [*found.starts[1:], n], found.means, strict=True):
        assert mean == pytest.approx(values[start:end].mean())


def test_a_level_that_changes_is_unsteady_and_says_since_when_it_is_settled() -> None:
    values = ar1(300, 0.2, seed=3)
    values[:90] *= 0.8
    found = steadiness.scalars(by_second(values))
    assert (found["unsteady"], found["drifting"]) == (1, 0)
    assert found["settled_from_s"] == pytest.approx(90, abs=3)
    assert found["throughput_levels"] == 2


def test_a_straight_rise_is_drifting_and_never_settles() -> None:
    values = ar1(300, 0.2, seed=4) * np.linspace(0.85, 1.15, 300)
    found = steadiness.scalars(by_second(values))
    assert (found["unsteady"], found["drifting"], found["settled_from_s"]) == (0, 1, 300)
    assert found["throughput_drift"] == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("change", [0.02, -0.04])
def test_a_drift_too_small_to_matter_is_steady_however_sure(change: float) -> None:
    values = ar1(300, 0.0, seed=5, cv=0.005) * np.linspace(1 - change / 2, 1 + change / 2, 300)
    found = steadiness.verify(by_second(values))
    assert found.line.p < 1e-6
    assert found.verdict == "steady"


def test_single_slow_seconds_are_no_level() -> None:
    values = ar1(300, 0.0, seed=6)
    values[::40] = 0
    assert verdict(values) == "steady"


def test_a_constant_is_steady_and_each_of_its_intervals_counts() -> None:
    found = steadiness.scalars(by_second(np.full(60, 250.0)))
    assert "throughput_autocorrelation" not in found
    assert found["throughput_effective_n"] == 60
    assert (found["drifting"], found["unsteady"], found["throughput_drift_p"]) == (0, 0, 1)


def test_a_line_without_noise_drifts_if_it_matters() -> None:
    assert verdict(np.linspace(100.0, 120.0, 50)) == "drifting"
    assert verdict(np.linspace(100.0, 101.0, 50)) == "steady"


def test_too_few_intervals_are_not_judged() -> None:
    assert steadiness.scalars(by_second(np.full(steadiness.SMALLEST_N - 1, 9.0))) == {}
    assert steadiness.scalars(by_second(np.zeros(100))) == {}


@given(st.integers(0, 10_000), st.floats(1e-3, 1e6))
def test_no_verdict_depends_on_the_unit(seed: int, factor: float) -> None:
    values = ar1(60, 0.3, seed=seed) * np.linspace(0.95, 1.05, 60)
    one, other = (steadiness.scalars(by_second(each)) for each in (values, values * factor))
    assert {name: other[name] for name in one} == pytest.approx(one, rel=1e-6)


@given(st.integers(0, 10_000), st.integers(5, 200), st.floats(0, 0.9))
def test_the_effective_sample_size_lies_between_one_and_n(seed: int, n: int, phi: float) -> None:
    assert 1 <= autocorrelation.effective_n(ar1(n, phi, seed=seed)) <= n


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_the_effective_sample_size_gives_the_mean_s_own_spread(phi: float) -> None:
    """Over many series: the variance of the mean is that of a value, divided by the effective sample size."""
    series = [ar1(400, phi, seed=seed) for seed in range(300)]
    told = np.mean([values.var(ddof=1) / autocorrelation.effective_n(values) for values in series])
    seen = np.var([values.mean() for values in series], ddof=1)
    assert told / seen == pytest.approx(1, abs=0.35)  # a variance of 300 means is known to ± 16 %


REPLICATES = 150


@pytest.mark.parametrize(("n", "phi", "most"), [(60, 0.0, 0.02), (120, 0.3, 0.05), (300, 0.6, 0.05)])
def test_noise_alone_is_rarely_called_anything_but_steady(n: int, phi: float, most: float) -> None:
    """`most` is what docs/explanation/methodology.md tells; the seed is fixed."""
    false = sum(verdict(ar1(n, phi, seed=1000 + seed)) != "steady" for seed in range(REPLICATES))
    assert stats.binom.sf(false - 1, REPLICATES, most) > 0.001


def test_steps_and_drifts_of_a_sixth_are_found_in_five_minutes() -> None:
    found = []
    for seed in range(40):
        values = ar1(300, 0.3, seed=seed)
        values[:75] *= 0.85
        found.append(verdict(values))
    assert found.count("steady") <= 4
