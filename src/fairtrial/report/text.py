"""report.txt: the post one would send to a mailing list. Sections in the order a sceptic asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairtrial.analyse.models import Analysis, Summary
from fairtrial.record import Record
from fairtrial.report import fidelity, numbers, summary
from fairtrial.report.background import Background, Fact, background
from fairtrial.report.columns import heading, pairs, prose, table
from fairtrial.report.concerns import concerns, doubts, tail_doubts
from fairtrial.report.grid import grid
from fairtrial.report.tables import (
    MetricTable,
    cell_label,
    conditions,
    metric_tables,
    procedure,
)
from fairtrial.report.words import again, counted, fates

OPTIONS_SHOWN: Final = 40  # a server may read back hundreds; all are in every trial.json
VALUES_PER_LINE: Final = 6


def render(record: Record, analysis: Analysis) -> str:
    """The whole text report."""
    behind = background(record, contrast=analysis.contrast)
    lines = [analysis.study, "=" * len(analysis.study), *prose(analysis.question)]
    lines += _summary(analysis)
    lines += _matrix(record, analysis)
    lines += _differences(analysis, behind)
    for number, metric in enumerate(metric_tables(analysis), start=1):
        lines += _metric(analysis, metric, number=number)
    lines += _expectations(analysis)
    lines += _doubts(record, analysis)
    lines += _counts(analysis, behind)
    lines += _fidelity(record)
    lines += _where(behind)
    lines += _again(record)
    lines += _raw_data(analysis)
    return "\n".join(lines) + "\n"


def _summary(analysis: Analysis) -> list[str]:
    lines = heading("Summary")
    if not analysis.finished:
        lines += [*prose("The run has not reached its planned end: figures are preliminary and carry no verdict."), ""]
    for sentence in summary.sentences(analysis):
        lines += prose(sentence)
    return lines


def _matrix(record: Record, analysis: Analysis) -> list[str]:
    design = record.plan.design
    lines = heading("Matrix")
    lines += pairs(
        [(f"{analysis.contrast} (compared)", ", ".join(analysis.levels) + f"; baseline {analysis.levels[0]}")]
        + [(factor, ", ".join(levels)) for factor, levels in record.plan.factors.items() if factor != analysis.contrast]
        + [
            ("cells × arms", f"{len(analysis.cells)} × {len(analysis.levels)}"),
            ("blocks per cell", str(design.blocks)),
            ("order", f"{design.order.replace('_', ' ')}, seed {design.seed}"),
            ("size", record.plan.size or "full"),
        ]
    )
    return lines


def _differences(analysis: Analysis, behind: Background) -> list[str]:
    lines = heading(f"What differs: {analysis.contrast}")
    arms = analysis.levels
    if not behind.differences:
        return [*lines, "Nothing: an A/A comparison."]
    rows = [[path, *(values.get(arm, numbers.ABSENT) for arm in arms)] for path, values in behind.differences]
    return [*lines, *table(["path", *arms], rows, left=len(arms) + 1)]


def _metric(analysis: Analysis, metric: MetricTable, *, number: int) -> list[str]:
    factors = conditions(analysis)
    lines = [*heading(f"{metric.title} ({metric.role})"), *prose(procedure(analysis, metric)), ""]
    share = numbers.percent(analysis.confidence)
    header = [*factors, "arm", "baseline", "mean", "ratio", f"{share} interval", "p", "Holm p", "verdict"]
    rows = [
        [
            *(row.levels[factor] for factor in factors),
            row.arm.arm,
            metric.scale.value(row.baseline.mean),
            metric.scale.value(row.arm.mean),
            numbers.ratio(row.comparison.ratio.estimate),
            numbers.ratio_interval(row.comparison.ratio.low, row.comparison.ratio.high),
            numbers.p_value(row.comparison.p),
            numbers.p_value(row.comparison.p_adjusted),
            "no verdict" if row.comparison.verdict == "none" else row.comparison.verdict,
        ]
        for row in metric.rows
    ]
    for arm in analysis.levels[1:]:
        if lines_of_grid := grid(metric, factors=factors, arm=arm):
            means = (
                f"Means of {analysis.levels[0]} / {arm} in {metric.scale.unit}, and the difference's {share} interval."
            )
            lines += [*lines_of_grid, *prose(means), ""]
    lines += table(header, rows, left=len(factors) + 1)
    methods = sorted({row.comparison.method for row in metric.rows})
    lines += ["", *prose(f"Table {number}a. Ratio to {analysis.levels[0]}; {'; '.join(methods)}.")]
    in_units = (
        f"Difference from {analysis.levels[0]} in {metric.scale.unit}; equivalence p is of two one-sided tests against"
        f" the margin of {numbers.percent(analysis.margin)}; detectable is the change of the ratio that this"
        " n and spread would have found with power 0.8."
    )
    welch = "Welch's two-sample t on the raw values: the unpaired classic, beside the estimate above."
    descriptive = "Each arm by itself: descriptive only; overlap of these intervals decides nothing."
    tables = ((_in_units, in_units), (_welch, welch), (_descriptive, descriptive))
    for letter, (make, caption) in zip("bcd", tables, strict=True):
        lines += ["", *make(analysis, metric), "", *prose(f"Table {number}{letter}. {caption}")]
    return lines


def _in_units(analysis: Analysis, metric: MetricTable) -> list[str]:
    factors = conditions(analysis)
    header = [
        *factors,
        "arm",
        "n",
        "difference",
        f"{numbers.percent(analysis.confidence)} interval",
        "equivalence p",
        "detectable",
    ]
    rows = [
        [
            *(row.levels[factor] for factor in factors),
            row.arm.arm,
            str(row.comparison.n),
            metric.scale.value(row.comparison.difference.estimate),
            metric.scale.interval(row.comparison.difference.low, row.comparison.difference.high),
            numbers.p_value(row.comparison.p_equivalence),
            _detectable(row.comparison.smallest_effect),
        ]
        for row in metric.rows
    ]
    return table(header, rows, left=len(factors) + 1)


def _detectable(effect: float | None) -> str:
    return numbers.ABSENT if effect is None else f"± {abs(effect) * 100:.1f} %"


def _welch(analysis: Analysis, metric: MetricTable) -> list[str]:
    factors = conditions(analysis)
    header = [*factors, "arm", "t", "df", "p", "difference", f"{numbers.percent(analysis.confidence)} interval"]
    rows = []
    for row in metric.rows:
        welch = row.comparison.welch
        figures = [numbers.ABSENT] * 5
        if welch is not None:
            figures = [
                f"{welch.t:.4f}",
                f"{welch.df:.3f}",
                numbers.p_value(welch.p),
                metric.scale.value(welch.difference.estimate),
                metric.scale.interval(welch.difference.low, welch.difference.high),
            ]
        rows.append([*(row.levels[factor] for factor in factors), row.arm.arm, *figures])
    return table(header, rows, left=len(factors) + 1)


def _descriptive(analysis: Analysis, metric: MetricTable) -> list[str]:
    factors = conditions(analysis)
    header = [
        *factors,
        "arm",
        "n",
        "mean",
        f"{numbers.percent(analysis.confidence)} interval",
        "sd",
        "median",
        "min",
        "max",
    ]
    rows = [
        [
            *(cell.levels[factor] for factor in factors),
            arm.arm,
            str(arm.n),
            metric.scale.value(arm.mean),
            metric.scale.interval(arm.low, arm.high),
            metric.scale.value(arm.sd),
            metric.scale.value(arm.median),
            metric.scale.value(min(arm.values, default=None)),
            metric.scale.value(max(arm.values, default=None)),
        ]
        for cell in analysis.cells
        for arm in cell.summaries.get(metric.definition.name, ())
    ]
    return table(header, rows, left=len(factors) + 1)


def _expectations(analysis: Analysis) -> list[str]:
    found = dict.fromkeys(result for cell in analysis.cells for result in cell.expectations)
    if not found:
        return []
    rows = [
        [
            result.cell,
            result.text,
            numbers.ABSENT if result.mean is None else f"{result.mean:.6g}",
            str(result.n),
            "met" if result.met else "NOT MET: no verdict",
        ]
        for result in found
    ]
    return [*heading("Expectations"), *table(["cell", "expectation", "mean", "n", "outcome"], rows, left=2)]


def _doubts(record: Record, analysis: Analysis) -> list[str]:
    lines = heading("Doubts")
    found = concerns(doubts(analysis) + tail_doubts(record, analysis) + fidelity.doubts(record))
    if not found:
        return [*lines, "None of the checks made found a reason for doubt."]
    for concern in found:
        kind = " · ".join(part for part in (concern.code, concern.where) if part)
        lines += prose(f"* {kind}", indent="    ")
        lines += ["  " + line for line in prose(f"{concern.message} {concern.advice}")]
    return lines


def _counts(analysis: Analysis, behind: Background) -> list[str]:
    lines = [*heading("Trials"), *pairs([(label, str(count)) for label, count in counted(analysis)])]
    for fate in fates(behind):
        lines += prose(f"* {fate}", indent="  ")
    return lines


def _fidelity(record: Record) -> list[str]:
    lines: list[str] = []
    for section in fidelity.sections(record):
        lines += heading(f"Fidelity: {section.title}" if section.title else "Fidelity")
        lines += [*prose(section.summary), ""]
        if section.shown:
            lines += [*table(fidelity.HEADER, section.rows, left=fidelity.LEFT), ""]
        if section.deviations:
            lines += ["Deviations from the specification that the study chose:"]
            lines += [line for deviation in section.deviations for line in prose(f"* {deviation}", indent="  ")]
    return [*lines, "", *prose(" ".join(fidelity.notes(record)))] if lines else []


def _where(behind: Background) -> list[str]:
    lines: list[str] = []
    for place in behind.places:
        lines += [*heading(f"Place: {place.name}"), *pairs(_pairs(place.facts))]
    if behind.system or behind.options:
        lines += [*heading("System"), *pairs(_pairs(behind.system))]
    if behind.options:
        lines += ["", "Options as read back:", *pairs(_pairs(behind.options[:OPTIONS_SHOWN]))]
        if len(behind.options) > OPTIONS_SHOWN:
            lines.append(f"… and {len(behind.options) - OPTIONS_SHOWN} more in trials/*/trial.json")
    if behind.settings:
        lines += [*heading("Settings as read back"), *pairs(_pairs(behind.settings))]
    return lines


def _pairs(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    return [(fact.label, fact.value) for fact in facts]


def _again(record: Record) -> list[str]:
    return [*heading("Again"), *pairs(again(record)), "", f"fairtrial {record.plan.fairtrial_version}"]


def _raw_data(analysis: Analysis) -> list[str]:
    """The appendix: every used value, in time order, as in raw_data.r."""
    lines = heading("Appendix: raw data")
    for metric in metric_tables(analysis):
        lines += ["", f"# {metric.definition.name} ({metric.definition.unit})"]
        for cell in analysis.cells:
            for arm in cell.summaries.get(metric.definition.name, ()):
                lines += [f"# {cell_label(cell.levels)}, {arm.arm}, blocks {_blocks(arm)}", *_values(arm)]
    return lines


def _blocks(arm: Summary) -> str:
    return " ".join(str(block) for block in arm.blocks)


def _values(arm: Summary) -> list[str]:
    printed = [f"{value:.10g}" for value in arm.values]
    return [", ".join(printed[at : at + VALUES_PER_LINE]) for at in range(0, len(printed), VALUES_PER_LINE)]
