"""The rows every form of the report shows: cells × arms of one metric, in one scale, in the contrast's order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.hosts.models import OverHosts
from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.models import (
    Adjustment,
    Analysis,
    CellResult,
    Comparison,
    Guardrail,
    Interval,
    Outcome,
    Role,
    Summary,
)
from fairtrial.analyse.result import Verdict
from fairtrial.report import numbers
from fairtrial.report.numbers import Scale
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import counted

ROLES: Final[tuple[Role, ...]] = ("primary", "secondary", "guardrail")
TWO_ARMS: Final = 2
ADJUSTED: Final[dict[Adjustment, str]] = {
    "none": "unadjusted",
    "holm": "Holm",
    "dunnett": "Dunnett over arms, Holm over cells and metrics",
    "benjamini_hochberg": "Benjamini-Hochberg, exploratory",
}
# `faster` is better in the metric's direction, whatever the metric is.
_COUNTED: Final[dict[Verdict, str]] = {"faster": "better", "slower": "worse"}
_AS_VERDICT: Final[dict[Outcome, Verdict]] = {
    "kept": "equivalent",
    "breached": "slower",
    "unclear": "undecided",
    "none": "none",
}


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


def without_values(analysis: Analysis, table: MetricTable) -> list[tuple[CellResult, str]]:
    """Cells and arms of planned comparisons that have none; nothing of a screening, or of an unfinished run."""
    if not analysis.finished or analysis.screening is not None:
        return []
    made = {(row.cell, row.arm.arm) for row in table.rows}
    return [(cell, arm) for arm in analysis.levels[1:] for cell in analysis.cells if (cell.cell, arm) not in made]


def conditions(analysis: Analysis) -> tuple[str, ...]:
    """Names of the factors that tell the cells apart, in study order; empty if there is one cell only."""
    levels = [cell.levels for cell in analysis.cells]
    return tuple(name for name in (levels[0] if levels else ()) if len({each[name] for each in levels}) > 1)


def cell_label(levels: dict[str, str]) -> str:
    """A cell in words: `overcommitting · high`; `all` without conditions."""
    return " · ".join(levels.values()) or "all"


def over_hosts(rows: Iterable[Row]) -> list[OverHosts]:
    """Of the rows whose trials name hosts."""
    return [row.comparison.over_hosts for row in rows if row.comparison.over_hosts is not None]


def hosts(rows: Iterable[Row]) -> str:
    """`5 hosts`, `3 to 5 hosts`; nothing if one place ran all trials."""
    counts = sorted({len(over.hosts) for over in over_hosts(rows)})
    if not counts:
        return ""
    return counted(counts[0], "host") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} hosts"


def procedure(analysis: Analysis, table: MetricTable) -> str:
    """How the table's comparisons were made, in a line: pairing, family, margin."""
    parts = ["paired over blocks" if analysis.paired else "arms independent"]
    parts += [said for said in [hosts(table.rows)] if said]
    size = max((row.comparison.family_size for row in table.rows), default=0)
    if size:
        adjusted = ADJUSTED[table.rows[0].comparison.adjustment]
        parts.append(f"family of {size}, {adjusted}" if size > 1 else "one comparison")
    if (stopping := analysis.stopping) is not None and stopping.cells:
        after = sorted({cell.blocks for cell in stopping.cells})
        spread = f"{after[0]} to {after[-1]}" if len(after) > 1 else str(after[0])
        parts.append(f"stopped after {spread} of {stopping.last} blocks")
    margin = _guardrail_margin(table.rows)
    said_margin = equivalence_margin(analysis, table.rows) if margin is None else numbers.percent(margin)
    parts.append(f"margin {said_margin}")
    return " · ".join(parts)


def judges_rest(analysis: Analysis, rows: Iterable[Row]) -> bool:
    """Whether shares leave so little of their total that their margin of equivalence is narrower than the study's."""
    own = [row.comparison.margin for row in rows if row.comparison.ratio.estimate is not None]
    return any(each < analysis.margin and not math.isclose(each, analysis.margin) for each in own)


def equivalence_margin(analysis: Analysis, rows: Iterable[Row]) -> str:
    """`2 %`, and what of."""
    of = ", of the share and of what is left of its total" if judges_rest(analysis, rows) else ""
    return numbers.percent(analysis.margin) + of


def band(analysis: Analysis, table: MetricTable) -> tuple[float, float] | None:
    """The ratios within the margin of equivalence, or of a guardrail from 1 to its margin; None as `band_note` says."""
    margin = _guardrail_margin(table.rows)
    if margin is not None:
        return (1.0, 1 + margin) if table.definition.better == "lower" else (1 / (1 + margin), 1.0)
    return None if judges_rest(analysis, table.rows) else (1 / (1 + analysis.margin), 1 + analysis.margin)


def band_note(analysis: Analysis, table: MetricTable) -> str:
    """What a figure's band is, or why it has none."""
    guarded = _guardrail_margin(table.rows)
    if guarded is not None:
        return f"the grey band is the guardrail's margin, {numbers.percent(guarded)}"
    margin = numbers.percent(analysis.margin)
    if judges_rest(analysis, table.rows):
        return f"no band: what is left of the total must stay within the margin of {margin}, too, which narrows it"
    return f"the grey band is the equivalence margin, ± {margin}"


def _guardrail_margin(rows: Iterable[Row]) -> float | None:
    return next((row.comparison.guardrail.margin for row in rows if row.comparison.guardrail is not None), None)


def word(verdict: Verdict, definition: MetricDefinition) -> str:
    """A verdict in a word: what a clock measures is faster or slower, what is counted is better or worse."""
    if verdict == "none":
        return "no verdict"
    return verdict if definition.kind == "wall_clock" else _COUNTED.get(verdict, verdict)


def verdict(comparison: Comparison, definition: MetricDefinition, *, margin: float) -> str:
    """A verdict as a table prints it; of a guardrail, whether it is kept."""
    if comparison.guardrail is not None:
        return _guarded(comparison.guardrail)
    if comparison.verdict == "equivalent":
        return f"equivalent (within {numbers.percent(margin)})"
    return word(comparison.verdict, definition)


def decided(comparison: Comparison) -> tuple[Interval, float]:
    """The interval of the ratio that decided, and its confidence: of a claim of equivalence that of its tests.

    A guardrail is not decided by equivalence: its verdict is about another margin.
    """
    within = comparison.equivalence_interval
    if comparison.verdict != "equivalent" or comparison.guardrail is not None or within is None:
        return comparison.ratio, comparison.confidence
    return within, round(2 * comparison.confidence - 1, 9)


def estimated(comparison: Comparison) -> str:
    """The estimated ratio, with as many decimals as the interval that decided."""
    interval, _confidence = decided(comparison)
    return numbers.ratio_in(comparison.ratio.estimate, interval.low, interval.high)


def ratio_interval(comparison: Comparison) -> str:
    """The interval that decided, with its confidence where that is not the analysis's."""
    interval, confidence = decided(comparison)
    level = "" if confidence == comparison.confidence else f" at {numbers.percent(confidence)}"
    return numbers.ratio_interval(interval.low, interval.high) + level


def change(comparison: Comparison, scale: Scale) -> tuple[str, str]:
    """The ratio with its interval; of values without logarithms the difference, which says that it is one."""
    if comparison.ratio.estimate is not None:
        return estimated(comparison), ratio_interval(comparison)
    interval = comparison.difference
    if interval.estimate is None:
        return numbers.ABSENT, numbers.ABSENT
    moved = f"{'+' if interval.estimate > 0 else ''}{scale.value(interval.estimate)} {scale.brief_difference_unit}"
    return f"difference {moved.rstrip()}", scale.interval(interval.low, interval.high)


def tested(comparison: Comparison) -> tuple[str, str]:
    """p, and p adjusted over the family; none where 1 stands in for a test that cannot be made."""
    if comparison.n < t_tests.SMALLEST_N:
        return numbers.ABSENT, numbers.ABSENT
    return numbers.p_value(comparison.p), numbers.p_value(comparison.p_adjusted)


def kind(comparison: Comparison) -> Verdict:
    """The verdict whose colour a row has."""
    return comparison.verdict if comparison.guardrail is None else _AS_VERDICT[comparison.guardrail.outcome]


def _guarded(guardrail: Guardrail) -> str:
    if guardrail.outcome == "none":
        return "no verdict"
    if guardrail.bound is None:
        return guardrail.outcome
    return f"{guardrail.outcome} (at worst {numbers.ratio(guardrail.bound)})"


def opinions(table: MetricTable) -> str:
    """The rank tests of a table by name."""
    return "; ".join(sorted({row.comparison.rank.method for row in table.rows if row.comparison.rank is not None}))


def opinion(table: MetricTable, row: Row, *, confidence: float) -> dict[str, str]:
    """The exact rank test of a row, and what is left open of the mean, printed: by column."""
    rank, left = row.comparison.rank, row.comparison.mean
    share = numbers.percent(confidence)
    columns = ("shift", f"exact {share} interval", "exact p", "smallest p", "ties", "mean with unseen stalls")
    if rank is None:
        return dict.fromkeys(columns, numbers.ABSENT)
    shift = rank.shift
    ratio = rank.scale == "ratio"
    interval = numbers.ratio_interval if ratio else table.scale.interval
    printed = (
        numbers.ratio_in(shift.estimate, shift.low, shift.high) if ratio else table.scale.value(shift.estimate),
        interval(shift.low, shift.high),
        numbers.p_value(rank.p) if rank.exact else f"≈ {numbers.p_value(rank.p)}",
        numbers.p_value(rank.smallest_p),
        str(rank.tied),
        numbers.ABSENT if left is None else interval(left.low, left.high),
    )
    return dict(zip(columns, printed, strict=True))
