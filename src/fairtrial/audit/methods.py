"""The t tests that a publication may have made of two levels, each with what it needs of the data."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Final

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import TTest, Values
from fairtrial.audit.claims.models import Test
from fairtrial.audit.models import Levels
from fairtrial.audit.reading import Dataset

NO_TEST: Final = "no test is possible: an arm has fewer than two values, or neither has any spread"
NO_PAIRED_TEST: Final = "no paired test is possible: fewer than two common blocks, or all differences are equal"
NO_BLOCKS: Final = "a paired test needs blocks: name their column with `block: COLUMN` in the claims file"
Sides = tuple[Levels, Levels]  # every factor that is held, of the first and of the second level


def tested(dataset: Dataset, metric: str, *, sides: Sides, test: Test, confidence: float) -> TTest | str:
    """Second minus first; or why there is no such test.

    Source: `t.test(second, first)` in R, with `var.equal = TRUE` for Student's and `paired = TRUE` for the paired one.
    """
    if test == "paired":
        values = pairs(dataset, metric, sides=sides)
        return values if isinstance(values, str) else t_tests.paired(*values, confidence=confidence) or NO_PAIRED_TEST
    first, second = (dataset.values(metric, levels) for levels in sides)
    welch = t_tests.welch(first, second, confidence=confidence)
    if welch is None:
        return NO_TEST
    return welch if test == "welch" else _student(first, second, confidence=confidence)


def pairs(dataset: Dataset, metric: str, *, sides: Sides) -> tuple[Values, Values] | str:
    """Values of common blocks, in the same order; or why there are none. Blocks of one arm only are left out."""
    block = dataset.description.block
    if not block:
        return NO_BLOCKS
    first, second = (_by_block(dataset, metric, levels=levels, block=block) for levels in sides)
    for levels, blocks in zip(sides, (first, second), strict=True):
        for name, values in blocks.items():
            if len(values) > 1:
                return f"expected one trial of {', '.join(levels.values())} in {block} {name}, found {len(values)}"
    common = [name for name in first if name in second]
    return t_tests.array([first[name][0] for name in common]), t_tests.array([second[name][0] for name in common])


def _by_block(dataset: Dataset, metric: str, *, levels: Levels, block: str) -> dict[str, list[float]]:
    by_block: dict[str, list[float]] = defaultdict(list)
    for row in dataset.chosen(levels):
        by_block[row[block].strip()].append(float(row[metric]))
    return by_block


def _student(first: Values, second: Values, *, confidence: float) -> TTest:
    """Student's test of two samples that have a spread: one variance for both."""
    n, m = len(first), len(second)
    df = n + m - 2
    pooled = math.hypot(math.sqrt(n - 1) * t_tests.spread(first), math.sqrt(m - 1) * t_tests.spread(second))
    error = pooled * math.sqrt((1 / n + 1 / m) / df)
    estimate = float(np.mean(second) - np.mean(first))
    return TTest(estimate=estimate, standard_error=error, df=float(df), confidence=confidence)
