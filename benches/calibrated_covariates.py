"""Comparisons over blocks adjusted for covariates: claims, coverage and power beside those of the plain comparison.

Deviations of a trial are of one size in every path; a covariate that explains half of them is half of the variance.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import altair as alt
import numpy as np
import vl_convert
from calibrated_paths import ALPHA, CONFIDENCE, EFFECT, Setup
from simulated_noise import SPREAD

from fairtrial.analyse.doubts.covariates import LEVEL
from fairtrial.analyse.inference import confirming, sensitivity, t_tests
from fairtrial.analyse.inference import covariates as regressions
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.report.figures.svg import CONFIG, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calibrated_paths import Rate

SPIKE_SHARE, SPIKE_BY = 0.1, 0.5  # one calibration loop in ten is interrupted and takes half as long again
MOVED_BY: Final = 0.01  # by an arm: as much as the covariate varies from trial to trial
BOUND: Final = math.log1p(0.02)
Arms = tuple[Values, Values]  # noise of both arms and covariates of both, shapes (runs, 2, n) and (runs, k, 2, n)


def irrelevant(setup: Setup, count: int = 1) -> Arms:
    return setup.blocks()[:, 0], _covariates(setup, count)


def three_irrelevant(setup: Setup) -> Arms:
    return irrelevant(setup, 3)


def spikes(setup: Setup) -> Arms:
    noise, covariates = irrelevant(setup)
    return noise, covariates + SPIKE_BY * (setup.random.random(covariates.shape) < SPIKE_SHARE)


def half(setup: Setup) -> Arms:
    covariates = _covariates(setup)
    return (setup.blocks()[:, 0] + covariates[:, 0]) / math.sqrt(2), covariates


def most(setup: Setup) -> Arms:
    """A covariate that explains 90 %."""
    covariates = _covariates(setup)
    return math.sqrt(0.1) * setup.blocks()[:, 0] + math.sqrt(0.9) * covariates[:, 0], covariates


def curved(setup: Setup) -> Arms:
    """Half of the noise is the covariate's square: no line describes it."""
    covariates = _covariates(setup)
    squares = (np.square(covariates[:, 0] / SPREAD) - 1) * SPREAD / math.sqrt(2)
    return (setup.blocks()[:, 0] + squares) / math.sqrt(2), covariates


PATHS_OF: Final[dict[str, Callable[[Setup], Arms]]] = {
    "irrelevant covariate": irrelevant,
    "3 irrelevant covariates": three_irrelevant,
    "irrelevant covariate with spikes": spikes,
    "covariate of half the noise": half,
    "covariate of 90 % of the noise": most,
    "covariate of half the noise by its square": curved,
}


def _covariates(setup: Setup, count: int = 1) -> Values:
    return setup.random.normal(0, SPREAD, (setup.runs, count, 2, setup.n))


def _apart(values: Values) -> Values:
    return values[..., 1, :] - values[..., 0, :]


def _p(fit: regressions.Regressions) -> Values:
    """Of the estimate that decides where the study chose the adjusted one."""
    return confirming.paired(fit.tests.p, fit.remaining, level=ALPHA, alpha=ALPHA)


def adjusted(setup: Setup) -> Iterator[Rate]:
    for name, draw in PATHS_OF.items():
        noise, covariates = draw(setup)
        ratios, apart = _apart(noise), _apart(covariates)
        if not regressions.enough(setup.n, covariates.shape[1]):
            continue
        yield from _of_path(setup, ratios, apart, name=name)
    yield from moved(setup)


def _of_path(setup: Setup, ratios: Values, apart: Values, *, name: str) -> Iterator[Rate]:
    may, zero = setup.may_claim(paired=True), np.zeros_like(ratios)
    equal, different = (regressions.regressed(ratios + by, apart) for by in (0.0, EFFECT))
    yield setup.rate(f"adjusted, {name}", "false", (_p(equal) < ALPHA) & may)
    yield setup.rate(f"adjusted, {name}", "covers", _covers(different, EFFECT))
    yield setup.rate(f"adjusted, {name}", "power", (_p(different) < ALPHA) & may)
    yield setup.rate(f"plain, {name}", "power", (setup.p(zero, ratios + EFFECT) < ALPHA) & may)
    yield setup.rate(f"adjusted, {name}, at the margin", "false", (_inside(ratios + BOUND, apart) < ALPHA) & may)
    width = (
        equal.tests.interval(confidence=CONFIDENCE),
        t_tests.paired_many(zero, ratios).interval(confidence=CONFIDENCE),
    )
    narrower = (width[0][1] - width[0][0]) / (width[1][1] - width[1][0])
    yield setup.number(f"width of the adjusted interval, {name}", "width", narrower, default=False)


def _inside(ratios: Values, apart: Values) -> Values:
    """P of equivalence, of arms that differ by just the margin."""
    fit = regressions.regressed(ratios, apart)
    by_t = sensitivity.equivalence_many(fit.tests, bound=BOUND)
    near = np.where(fit.tests.estimate[:, None] >= 0, BOUND - fit.remaining, BOUND + fit.remaining)
    return confirming.paired_beyond(by_t, near, level=ALPHA, alpha=ALPHA)


def _covers(fit: regressions.Regressions, true: float) -> Values:
    low, high = fit.tests.interval(confidence=CONFIDENCE)
    return np.asarray((low <= true) & (high >= true))


def moved(setup: Setup) -> Iterator[Rate]:
    """The arm does all it does by way of the covariate: whether the interval covers that, and the doubt is raised."""
    if not regressions.enough(setup.n, 1):
        return
    noise, covariates = half(setup)
    ratios, apart = _apart(noise) + MOVED_BY / math.sqrt(2), _apart(covariates) + MOVED_BY
    zero = np.zeros_like(ratios)
    fit = regressions.regressed(ratios, apart)
    name = "covariate that the arm moves by 1 %"
    yield setup.rate(f"adjusted, {name}: whole effect", "covers", _covers(fit, MOVED_BY / math.sqrt(2)), default=False)
    low, high = t_tests.paired_many(zero, ratios).interval(confidence=CONFIDENCE)
    whole = (low <= MOVED_BY / math.sqrt(2)) & (high >= MOVED_BY / math.sqrt(2))
    yield setup.rate(f"plain, {name}: whole effect", "covers", whole)
    doubted = t_tests.paired_many(zero, apart[:, 0]).p < LEVEL
    yield setup.rate(f"doubt about a {name}", "power", doubted)
    unmoved = t_tests.paired_many(zero, apart[:, 0] - MOVED_BY).p < LEVEL
    yield setup.rate("doubt about a covariate that no arm moves", "false", unmoved, default=False)


PATHS: Final = {"covariates": adjusted}


def power(n: int, *, runs: int) -> Iterator[dict[str, str | int | float]]:
    """Of finding `EFFECT` under normal noise, plain and adjusted."""
    setup = Setup(noise="normal", n=n, runs=runs, random=np.random.default_rng(n))
    for name, draw in (("of half the noise", half), ("irrelevant", irrelevant)):
        noise, covariates = draw(setup)
        ratios = _apart(noise) + EFFECT
        found = _p(regressions.regressed(ratios, _apart(covariates))) < ALPHA
        yield {"blocks": n, "estimate": f"adjusted, covariate {name}", "power": float(found.mean())}
    plain = setup.p(np.zeros_like(ratios), ratios) < ALPHA
    yield {"blocks": n, "estimate": "plain", "power": float(plain.mean())}


def draw_power(path: Path, *, runs: int = 10_000) -> None:
    """The picture of the guide to less noise."""
    rows = [row for n in range(6, 17) for row in power(n, runs=runs)]
    colour = alt.Color("estimate:N", title=None, scale=alt.Scale(range=["#d9622b", "#1a8f83", "#7f8c99"]))
    x = alt.X("blocks:Q", scale=alt.Scale(zero=False), axis=alt.Axis(tickMinStep=1))
    y = alt.Y("power:Q", axis=alt.Axis(format="%"), title="power for an effect of 1.5 %")
    lines = alt.Chart(alt.Data(values=rows)).mark_line(point=True).encode(x=x, y=y, color=colour)
    spec = lines.properties(width=WIDTH, height=300).configure(**CONFIG).to_dict()
    path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    draw_power(Path(sys.argv[1]))
