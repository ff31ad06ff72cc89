"""What else the raw data show that a reader of the publication should know. Sentences with their figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from fairtrial.analyse.doubts import comparisons as doubts
from fairtrial.analyse.doubts import runs as run_doubts
from fairtrial.analyse.measured import ArmValues
from fairtrial.audit import design
from fairtrial.audit.comparisons import PERCENT, Table, tables
from fairtrial.audit.reading import Dataset

ALPHA: Final = 0.05  # of every publication here
NOT_PRINTED: Final = "not in the publication"  # name of a table that is added to a publication's own


def facts(dataset: Dataset) -> Iterator[str]:
    """The publication's notes, then order, sorted, constant and quantised values, multiplicity and small samples."""
    yield from dataset.description.notes
    if dataset.description.order == "sequential":
        yield (
            f"levels of {dataset.description.arm} were measured one after the other, never interleaved: "
            "any change over time counts as their effect"
        )
    yield from design.problems(dataset)
    for metric in dataset.description.metrics:
        groups = _groups(dataset, metric)
        yield from _ascending(metric, groups)
        for where, each in groups:
            place = {"cell": where, "metric": metric}
            for doubt in (*doubts.zero_variance(each, place), *doubts.quantised(each, place)):
                yield f"{metric} at {where}: {doubt.code}: {doubt.message}"
    every = [table for table in tables(dataset) if table.comparisons]
    for table in every:
        yield from _counts(table)
    yield from _unadjusted(every)


def _groups(dataset: Dataset, metric: str) -> list[tuple[str, ArmValues]]:
    return [
        (
            " ".join(levels.values()),
            ArmValues(
                arm="",
                values=(values := dataset.values(metric, levels)),
                blocks=tuple(range(len(values))),
                positions=tuple(range(len(values))),
                absent=0,
            ),
        )
        for levels in dataset.combinations()
        if len(dataset.values(metric, levels))
    ]


def _ascending(metric: str, groups: list[tuple[str, ArmValues]]) -> Iterator[str]:
    """All of them or none: single groups ascend by chance."""
    for doubt in run_doubts.sorted_values(metric, groups):
        rising = sum(bool((np.diff(each.values) >= 0).all()) for _, each in groups)
        yield f"{metric}: values of {rising} of {len(groups)} groups ascend; {doubt.message}"


def _counts(of: Table) -> Iterator[str]:
    table, comparisons = of.description, of.comparisons
    claimed = sum(each.significant for each in comparisons)
    kept = sum(p < ALPHA for p in of.p_adjusted)
    least = min(min(len(values) for values in each.values) for each in comparisons)
    yield (
        f"{table.metric} by {table.contrast}: {claimed} of {len(comparisons)} intervals exclude 0, "
        f"{kept} of {len(comparisons)} comparisons remain significant after Holm"
    )
    if all(each.all_positive and math.isfinite(each.ratio_percent[1]) for each in comparisons):
        widths = [_width(each.ratio_percent) / _width(each.percent) for each in comparisons]
        yield (
            f"{table.metric} by {table.contrast}: percentages take the baseline as known; intervals of the ratio are "
            f"{min(widths):.2f} to {max(widths):.2f} times as wide"
        )
    p = run_doubts.smallest_exact_p(least, paired=False)
    if p > ALPHA:
        yield f"{table.metric} by {table.contrast}: n is as small as {least}; no exact test can reach a p below {p:.2g}"


def _unadjusted(every: list[Table]) -> Iterator[str]:
    """How often chance alone would have made one of the publication's own tests significant."""
    printed = [each for each in every if each.description.name != NOT_PRINTED and not each.description.pairs]
    count = sum(len(table.comparisons) for table in printed)
    claimed = sum(each.significant for table in printed for each in table.comparisons)
    if count > 1:
        yield (
            f"{count} tests at {PERCENT * ALPHA:g} % without adjustment, {claimed} of them significant: if nothing "
            "differed and they were independent, at least one would be significant with probability "
            f"{1 - (1 - ALPHA) ** count:.2f}"
        )


def _width(bounds: tuple[float, float]) -> float:
    return bounds[1] - bounds[0]
