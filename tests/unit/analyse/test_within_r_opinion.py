"""R's own figures for what the analysis says of the inside of trials: Fisher's test, exchanges, widened intervals."""

from __future__ import annotations

import math
import subprocess

import numpy as np
import pytest
from support.skips import require

from fairtrial.analyse import within
from fairtrial.analyse.inference import censoring, permuting
from fairtrial.analyse.models import Steadiness
from fairtrial.metrics.latency.percentiles import RESOLUTION

pytestmark = pytest.mark.servers
FISHER = "cat(fisher.test(matrix(c({a}, {b}, {c}, {d}), nrow = 2))$p.value)"
SIGNS = r"""
d <- c({values})
signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(d))))
sums <- abs(signs %*% d)
cat(mean(sums >= abs(sum(d)) - 1e-9))
"""
WIDENED = r"""
x <- log(c({first})); y <- log(c({second})); w <- -log(1 - {resolution}); n <- length(x)
d <- y - x
se <- (sd(d) + (2 * w) / 2 * sqrt(n / (n - 1))) / sqrt(n)
reach <- qt(0.975, n - 1) * se
t <- max(0, abs(mean(d)) - w) / se
cat(mean(d) - w - reach, mean(d) + w + reach, 2 * pt(-t, n - 1))
"""
FEW = 1e-9


def r(script: str, **figures: object) -> list[float]:
    require("Rscript")
    text = "options(digits = 15); " + script.format(**figures)
    done = subprocess.run(["Rscript", "-e", text], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def told(values: np.ndarray) -> str:
    return ", ".join(repr(float(value)) for value in values)


def judged(arm: str, *, steady: int, unsteady: int) -> list[Steadiness]:
    return [
        Steadiness(
            trial=f"{arm}{index}",
            cell="all",
            arm=arm,
            verdict="steady" if index < steady else "unsteady",
            drift=0.0,
            drift_p=1.0,
            levels=1,
            settled_from_s=0.0,
            autocorrelation=None,
            effective_n=1.0,
        )
        for index in range(steady + unsteady)
    ]


@pytest.mark.parametrize(("base", "new"), [((10, 0), (3, 7)), ((20, 2), (8, 14))])
def test_arms_that_differ_in_steadiness(base: tuple[int, int], new: tuple[int, int]) -> None:
    trials = [
        *judged("base", steady=base[0], unsteady=base[1]),
        *judged("new", steady=new[0], unsteady=new[1]),
    ]
    (doubt,) = within.differing(trials, levels=["base", "new"])
    (p,) = r(FISHER, a=base[0], b=base[1], c=new[0], d=new[1])
    assert f"(p = {p:.2g})" in doubt.message


def test_exchanges_of_signs() -> None:
    random = np.random.default_rng(3)
    first, second = random.poisson(0.4, 10).astype(float), random.poisson(2.5, 10).astype(float)
    (p,) = r(SIGNS, values=told(second - first))
    assert permuting.paired_p(first, second, rounding=0.0, seed=1) == pytest.approx(p, rel=FEW)


@pytest.mark.parametrize("factor", [1.0, 1 + RESOLUTION, 1.01])
def test_intervals_and_p_of_values_known_by_class(factor: float) -> None:
    first = np.array([1_000_447.0, 1_000_447, 1_001_471, 1_000_447, 1_000_447, 1_001_471])
    second = np.full(6, 1_000_447.0 * factor)
    low, high, p = r(WIDENED, first=told(first), second=told(second), resolution=RESOLUTION)
    test = censoring.paired(
        censoring.on_logs(first, resolution=RESOLUTION),
        censoring.on_logs(second, resolution=RESOLUTION),
        confidence=0.95,
    )
    assert test is not None
    assert (test.low, test.high) == pytest.approx((low, high), rel=1e-6)
    assert test.p == pytest.approx(p, rel=1e-6)
    assert math.isfinite(test.t)
