"""Claims about single arms: table cells, percentiles of trials, and confidence intervals of a mean or a median."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.audit.claims.models import Claim, IntervalClaim, percentile, share
from fairtrial.audit.findings import AuditFinding, Passage, figure
from fairtrial.audit.models import Levels
from fairtrial.audit.printed import read
from fairtrial.audit.reading import Dataset

ONE_VALUE: Final = "one value has no spread"
NO_SPREAD: Final = "no confidence interval of the mean is possible: fewer than two values, or all are equal"
TOO_FEW: Final = "a {confidence} % interval of the median needs at least {needed} values, found {n}"
# Publications seldom say which definition their percentiles follow (Hyndman and Fan 1996 count nine): a figure is
# contradicted if it follows the default of none of these tools.
DEFINITIONS: Final = (
    "linear",  # NumPy, R, Prometheus, spreadsheets
    "inverted_cdf",  # nearest rank: HdrHistogram
    "averaged_inverted_cdf",  # SAS
    "hazen",  # MATLAB
    "weibull",  # Minitab, SPSS
)


def values(dataset: Dataset, claim: Claim) -> Iterator[AuditFinding]:
    """Every table cell of a claim."""
    place = Passage(claim.where)
    for each in claim.values:
        what = f"{each.statistic.replace('_', ' ')} of {claim.metric}" + _at(each.at)
        percent = percentile(each.statistic)
        if missing := dataset.missing(claim.metric, each.at):
            yield place.unknown(what, each.printed, missing)
            continue
        data = dataset.values(claim.metric, each.at)
        if percent is not None:
            yield from _percentiles(place, [what], printed=[each.printed], percents=[percent], data=data)
        elif (value := _statistic(data, each.statistic)) is None:
            yield place.unknown(what, each.printed, ONE_VALUE)
        else:
            yield place.figure(what, each.printed, value)


def intervals(dataset: Dataset, claim: Claim) -> Iterator[AuditFinding]:
    """Every interval of a single arm: of its trials, of its mean, of its median."""
    place = Passage(claim.where)
    for each in claim.intervals:
        printed = [*(each.printed or ()), *([each.plus_minus] if each.plus_minus else [])]
        if missing := dataset.missing(claim.metric, each.at):
            name = "interval of trials" if each.percentiles else f"{each.confidence} % interval of the {each.of}"
            yield place.unknown(f"{name} of {claim.metric}{_at(each.at)}", " to ".join(printed), missing)
            continue
        data = dataset.values(claim.metric, each.at)
        if each.percentiles:
            percents = [float(read(text).value) for text in each.percentiles]
            whats = [f"p{percent:g} of {claim.metric}{_at(each.at)}" for percent in percents]
            yield from _percentiles(place, whats, printed=printed, percents=percents, data=data)
        else:
            yield from _confidence(place, claim.metric, claimed=each, printed=printed, data=data)


def _at(levels: Levels) -> str:
    return f" at {', '.join(levels.values())}" if levels else ""


def _percentiles(
    place: Passage, whats: Sequence[str], *, printed: Sequence[str], percents: Sequence[float], data: Values
) -> Iterator[AuditFinding]:
    """All by one definition: by the first that all figures follow, else by the first of all."""
    by_name = {name: np.percentile(data, percents, method=name).tolist() for name in DEFINITIONS}
    fits = (
        name
        for name, computed in by_name.items()
        if all(figure(text, value)[1] is None for text, value in zip(printed, computed, strict=True))
    )
    chosen = next(fits, DEFINITIONS[0])
    named = "" if chosen == DEFINITIONS[0] else f" ({chosen.replace('_', ' ')})"
    for what, text, value in zip(whats, printed, by_name[chosen], strict=True):
        each = place.figure(what, text, value)
        yield replace(each, computed=each.computed + named)


def _confidence(
    place: Passage, metric: str, *, claimed: IntervalClaim, printed: Sequence[str], data: Values
) -> Iterator[AuditFinding]:
    confidence = claimed.confidence or ""
    what = f"{confidence} % interval of the {claimed.of} of {metric}{_at(claimed.at)}"
    bounds = (_of_mean if claimed.of == "mean" else _of_median)(data, confidence)
    if isinstance(bounds, str):
        yield place.unknown(what, " to ".join(printed), bounds)
    elif claimed.plus_minus:
        yield place.figure(f"{what}: ±", claimed.plus_minus, (bounds[1] - bounds[0]) / 2)
    else:
        for name, text, value in zip(("low", "high"), printed, bounds, strict=True):
            yield place.figure(f"{what}: {name}", text, value)


def _of_mean(data: Values, confidence: str) -> tuple[float, float] | str:
    """Student's. Source: `t.test(x, conf.level = …)` in R."""
    test = t_tests.mean(data, confidence=share(confidence))
    return NO_SPREAD if test is None else (test.low, test.high)


def _of_median(data: Values, confidence: str) -> tuple[float, float] | str:
    """Order statistics that hold the median with at least this probability, whatever the distribution; or why none do.

    Source: the sign test inverted; Conover, Practical Nonparametric Statistics (1999), section 3.2.
    """
    n, tail = len(data), (1 - share(confidence)) / 2
    below = int((special.bdtr(np.arange(n), n, 0.5) <= tail).sum())
    if not below:
        needed = math.ceil(-math.log2(tail))
        return TOO_FEW.format(n=n, confidence=confidence, needed=needed)
    ordered = np.sort(data)
    return float(ordered[below - 1]), float(ordered[-below])


def _statistic(data: Values, name: str) -> float | None:
    if name in ("sd", "standard_error"):
        if len(data) < t_tests.SMALLEST_N:
            return None
        spread = t_tests.spread(data)
        return spread if name == "sd" else spread / math.sqrt(len(data))
    return {
        "mean": lambda: float(np.mean(data)),
        "median": lambda: float(np.median(data)),
        "smallest": lambda: float(np.min(data)),
        "largest": lambda: float(np.max(data)),
        "count": lambda: float(len(data)),
        "sum": lambda: math.fsum(data.tolist()),
    }[name]()
