"""Claims about single arms and about their order: table cells, and sentences such as "A is the fastest"."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Final

import numpy as np

from fairtrial.analyse import t_tests
from fairtrial.analyse.families import holm
from fairtrial.analyse.publications.comparisons import CONFIDENCE
from fairtrial.analyse.publications.findings import Finding, Place
from fairtrial.analyse.publications.models import Claim, Levels, OrderClaim, ValueClaim
from fairtrial.analyse.publications.reading import Dataset

ALPHA: Final = 1 - CONFIDENCE
UNRESOLVED: Final = "the means are in this order, but the data do not separate {first} from {second} (Holm p = {p:.2g})"


def values(dataset: Dataset, claim: Claim) -> Iterator[Finding]:
    """Every table cell of a claim."""
    place = Place(claim.where)
    for each in claim.values:
        what = f"{each.statistic} of {claim.metric}" + (f" at {', '.join(each.at.values())}" if each.at else "")
        missing = dataset.missing(claim.metric, each.at)
        found = None if missing else _statistic(dataset, claim.metric, each)
        if found is None:
            yield place.unknown(what, each.printed, missing or "one value has no spread")
        else:
            yield place.figure(what, each.printed, found)


def orders(dataset: Dataset, claim: Claim) -> Iterator[Finding]:
    """Every order of a claim, at every combination of the levels that it does not name."""
    for each in claim.orders:
        others = [name for name in dataset.description.factors if name not in (claim.contrast, *each.at)]
        for chosen in product(*(dataset.levels(name) for name in others)):
            yield _order(dataset, claim, each, at={**each.at, **dict(zip(others, chosen, strict=True))})


def _statistic(dataset: Dataset, metric: str, claim: ValueClaim) -> float | None:
    found = dataset.values(metric, claim.at)
    if claim.statistic == "sd":
        return float(np.std(found, ddof=1)) if len(found) >= t_tests.SMALLEST_N else None
    return {
        "mean": lambda: float(np.mean(found)),
        "median": lambda: float(np.median(found)),
        "smallest": lambda: float(np.min(found)),
        "largest": lambda: float(np.max(found)),
        "count": lambda: float(len(found)),
        "sum": lambda: math.fsum(found.tolist()),
    }[claim.statistic]()


def _order(dataset: Dataset, claim: Claim, order: OrderClaim, *, at: Levels) -> Finding:
    """By means; separated where each step's test, adjusted over the steps, says so."""
    place, contrast = Place(claim.where), claim.contrast
    where = f"{', '.join(at.values())}: " if at else ""
    named = order.best_first
    what = f"{where}order by {claim.metric}" if len(named) > 1 else f"{where}best by {claim.metric}"
    printed = " before ".join(named)
    levels = [*named] if len(named) > 1 else [named[0], *(x for x in dataset.levels(contrast) if x != named[0])]
    for level in levels:
        if missing := dataset.missing(claim.metric, {**at, contrast: level}):
            return place.unknown(what, printed, missing)
    arms = {level: dataset.values(claim.metric, {**at, contrast: level}) for level in levels}
    sign = -1 if dataset.description.metrics[claim.metric].better == "higher" else 1
    ranked = sorted(levels, key=lambda level: sign * float(np.mean(arms[level])))
    agrees = ranked == levels if len(named) > 1 else ranked[0] == named[0]
    if not agrees:
        computed = " before ".join(ranked) if len(named) > 1 else ranked[0]
        return place.disagrees(what, printed, computed=computed, kind="order")
    steps = list(pairwise(levels)) if len(named) > 1 else [(levels[0], x) for x in levels[1:]]
    tests = [t_tests.welch(arms[a], arms[b], confidence=CONFIDENCE) for a, b in steps]
    adjusted = holm([1.0 if test is None else test.p for test in tests])
    for (first, second), p in zip(steps, adjusted, strict=True):
        if p >= ALPHA:
            return place.unknown(what, printed, UNRESOLVED.format(first=first, second=second, p=p))
    return place.agrees(what, printed, f"{printed}, Holm p ≤ {max(adjusted, default=1.0):.2g}")
