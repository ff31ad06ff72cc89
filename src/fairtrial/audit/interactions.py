"""What a publication's design could have claimed of conditions: whether its arm's effect differs between them."""

from __future__ import annotations

import math

from fairtrial.analyse import analyse_table
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Analysis, Counts
from fairtrial.analyse.selection import ONLY_CELL
from fairtrial.analyse.tidy import Course, Request, Table
from fairtrial.audit.comparisons import CONFIDENCE
from fairtrial.audit.models import Levels
from fairtrial.audit.reading import Dataset
from fairtrial.study.catalogue import MetricDefinition


def analysed(dataset: Dataset) -> Analysis:
    """All metrics of a publication as primary ones, its arm compared in every cell, trials taken as independent."""
    described = dataset.description
    cells = {"+".join(at.values()) or ONLY_CELL: at for at in dataset.combinations(without=described.arm)}
    table: Table = {
        (cell, metric): {level: _values(dataset, metric, at, level=level) for level in dataset.levels(described.arm)}
        for cell, at in cells.items()
        for metric in described.metrics
    }
    request = Request(
        study=dataset.name,
        question=described.title,
        contrast=described.arm,
        levels=dataset.levels(described.arm),
        cells=cells,
        metrics={
            name: MetricDefinition(name=name, label=each.label, unit=each.unit, better=each.better, kind="wall_clock")
            for name, each in described.metrics.items()
        },
        roles=dict.fromkeys(described.metrics, "primary"),
        paired=False,
        confidence=CONFIDENCE,
        margin=0.0,
    )
    trials = len(dataset.rows)
    counts = Counts(
        planned=trials,
        finished=trials,
        valid=trials,
        invalid=0,
        used=trials,
        blocks_voided=0,
        blocks_replaced=0,
    )
    return analyse_table(table, request, Course(counts=counts))


def _values(dataset: Dataset, metric: str, at: Levels, *, level: str) -> ArmValues:
    """The arm's values in a cell, in the publication's order."""
    values = dataset.values(metric, {**at, dataset.description.arm: level})
    values = values[[math.isfinite(each) for each in values.tolist()]]
    places = tuple(range(1, 1 + len(values)))
    return ArmValues(arm=level, values=values, blocks=places, positions=places, absent=0)
