"""The rows every form of the report shows: cells × arms of one metric, in one scale, in the contrast's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.models import Analysis, CellResult, Comparison, Role, Summary
from fairtrial.report import numbers
from fairtrial.report.numbers import Scale
from fairtrial.study.catalogue import MetricDefinition

ROLES: Final[tuple[Role, ...]] = ("primary", "secondary", "guardrail")
TWO_ARMS: Final = 2


@dataclass(frozen=True)
class Row:
    """One comparison, beside the two summaries it compares. `levels` are the cell's, in factor order."""

    cell: str
    levels: dict[str, str]
    baseline: Summary
    arm: Summary
    comparison: Comparison


@dataclass(frozen=True)
class MetricTable:
    """All comparisons of one metric."""

    definition: MetricDefinition
    role: Role
    scale: Scale
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """`throughput, transactions/min, higher is better`; anyone's column may have no unit."""
        parts = (self.definition.label, self.scale.unit, f"{self.definition.better} is better")
        return ", ".join(part for part in parts if part)


def metric_tables(analysis: Analysis) -> tuple[MetricTable, ...]:
    """A table per analysed metric: primary ones first, then secondary, then guardrails."""
    names = sorted(analysis.metrics, key=lambda name: ROLES.index(analysis.roles.get(name, "secondary")))
    return tuple(_metric_table(analysis, name) for name in names)


def _metric_table(analysis: Analysis, name: str) -> MetricTable:
    definition = analysis.metrics[name]
    means = [summary.mean for cell in analysis.cells for summary in cell.summaries.get(name, ())]
    return MetricTable(
        definition=definition,
        role=analysis.roles.get(name, "secondary"),
        scale=numbers.scale(definition.unit, means),
        rows=tuple(row for cell in analysis.cells for row in _rows(cell, name)),
    )


def _rows(cell: CellResult, metric: str) -> list[Row]:
    summaries = {summary.arm: summary for summary in cell.summaries.get(metric, ())}
    return [
        Row(
            cell=cell.cell,
            levels=cell.levels,
            baseline=summaries[comparison.baseline],
            arm=summaries[comparison.arm],
            comparison=comparison,
        )
        for comparison in cell.comparisons.get(metric, ())
        if comparison.baseline in summaries and comparison.arm in summaries
    ]


def conditions(analysis: Analysis) -> tuple[str, ...]:
    """Names of the factors that make up the cells, in study order; empty if there is one cell only."""
    return tuple(analysis.cells[0].levels) if analysis.cells else ()


def cell_label(levels: dict[str, str]) -> str:
    """A cell in words: `overcommitting · high`; `all` without conditions."""
    return " · ".join(levels.values()) or "all"


def procedure(analysis: Analysis, table: MetricTable) -> str:
    """How the table's comparisons were made, in a line: pairing, family, margin."""
    parts = ["paired over blocks" if analysis.paired else "arms independent"]
    size = max((row.comparison.family_size for row in table.rows), default=0)
    if size:
        parts.append(f"family of {size}, Holm" if size > 1 else "one comparison")
    parts.append(f"margin {numbers.percent(analysis.margin)}")
    return " · ".join(parts)


def verdict(comparison: Comparison, *, margin: float) -> str:
    """A verdict as a table prints it."""
    if comparison.verdict == "equivalent":
        return f"equivalent (within {numbers.percent(margin)})"
    if comparison.verdict == "none":
        return "no verdict"
    return comparison.verdict
