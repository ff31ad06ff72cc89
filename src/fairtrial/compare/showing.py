"""What a comparison ends with: a table of times a person reads at a glance, the kernel's accounting, doubts. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.models import Analysis, Doubt, Summary
from fairtrial.compare.compiling import ELAPSED, CompareOptions
from fairtrial.compare.trying import Calibration
from fairtrial.report import numbers
from fairtrial.report.concerns import concerns, doubts, kinds
from fairtrial.report.numbers import Scale
from fairtrial.report.tables import TWO_ARMS, MetricTable, change, metric_tables, procedure, verdict
from fairtrial.report.text.console import STYLES, Doubts
from fairtrial.report.text.summary import estimands

NANOSECONDS: Final = 1e9
MEMORY: Final = "max_resident_bytes"
SHORT_S: Final = 0.005  # below it, what starting a process costs is a good part of what is measured
NEAR_FLOOR: Final = 1.1  # a resident set within this of the starter's own is the starter's own


def render(analysis: Analysis, options: CompareOptions, calibration: Calibration) -> RenderableType:
    """Everything a comparison prints at its end."""
    primary, *others = metric_tables(analysis)
    parts: list[RenderableType] = [_commands(options), Text(), _title(analysis, primary), _times(analysis, primary)]
    parts += [Text(sentence, style="bold") for sentence in sentences(primary)]
    parts += [Text(), _accounting(analysis, others), Text()]
    if raised := kinds(concerns(worth_saying(analysis))):
        parts.append(Doubts(raised))
    parts += [Text(note, style="dim") for note in (*estimands(analysis), *notes(analysis, calibration))]
    return Group(*parts)


def scale_of(unit: str, values: Sequence[float | None]) -> Scale:
    """As everywhere, and seconds in the unit that fits: short commands take milliseconds."""
    if unit != "s":
        return numbers.scale(unit, values)
    chosen = numbers.scale("ns", [None if value is None else value * NANOSECONDS for value in values])
    return Scale(divisor=chosen.divisor / NANOSECONDS, unit=chosen.unit, decimals=chosen.decimals)


def worth_saying(analysis: Analysis) -> list[Doubt]:
    """Doubts about what is judged, and about the whole; those of the accounting are in the report."""
    return [doubt for doubt in doubts(analysis) if analysis.roles.get(doubt.metric, "primary") == "primary"]


def summaries(analysis: Analysis, metric: str) -> dict[str, Summary]:
    """By command; there is one cell."""
    return {summary.arm: summary for summary in analysis.cells[0].summaries[metric]}


def _commands(options: CompareOptions) -> Table:
    drawn = Table.grid(padding=(0, 2, 0, 0))
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column(overflow="fold")
    for label, command in options.by_label.items():
        drawn.add_row(Text(label), Text(command, style="cyan"))
    return drawn


def _title(analysis: Analysis, table: MetricTable) -> Text:
    count = max(summary.n for summary in summaries(analysis, table.definition.name).values())
    about = f"{table.definition.label}, {table.definition.better} is better"
    return Text.assemble((about, "bold"), (f" · {count} blocks · {procedure(analysis, table)}", "dim"))


def _times(analysis: Analysis, table: MetricTable) -> Table:
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    drawn.add_column("")
    for name in ("mean ± sd", "min … max", "ratio", f"{numbers.percent(analysis.confidence)} interval"):
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("verdict", no_wrap=True)
    by_label = summaries(analysis, table.definition.name)
    scale = scale_of(table.definition.unit, [summary.mean for summary in by_label.values()])
    compared = {row.arm.arm: row.comparison for row in table.rows}
    for label, each in by_label.items():
        spread = numbers.ABSENT if each.sd is None else scale.value(each.sd)
        cells = [
            Text(label, style="bold"),
            Text.assemble((scale.value(each.mean), "bold green"), f" ± {spread} {scale.unit}".rstrip()),
            Text(f"{scale.value(min(each.values))} … {scale.value(max(each.values))} {scale.unit}".rstrip()),
        ]
        if (other := compared.get(label)) is None:
            cells += [Text("1"), Text(), Text("baseline", style="dim")]
        else:
            said = verdict(other, table.definition, margin=analysis.margin)
            cells += [*map(Text, change(other, scale)), Text(said, style=STYLES[other.verdict])]
        drawn.add_row(*cells)
    return drawn


def _accounting(analysis: Analysis, tables: Sequence[MetricTable]) -> Table:
    """A row per metric that is not zero throughout; ratio and interval where two commands are compared."""
    two = len(analysis.levels) == TWO_ARMS
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    drawn.add_column("")
    for name in (*analysis.levels, *(["ratio", f"{numbers.percent(analysis.confidence)} interval"] if two else [])):
        drawn.add_column(Text(name), justify="right", no_wrap=True)
    for table in tables:
        by_label = summaries(analysis, table.definition.name)
        if all(each.mean == 0 for each in by_label.values()):
            continue
        scale = scale_of(table.definition.unit, [each.mean for each in by_label.values()])
        label = table.definition.label
        unit = "" if label.endswith(scale.unit) else f", {scale.unit}"
        cells = [Text(f"{label}{unit}")] + [Text(scale.value(each.mean)) for each in by_label.values()]
        if two and table.rows:
            compared = table.rows[0].comparison
            of = compared.ratio
            cells += [Text(each) for each in numbers.ratio_and_interval(of.estimate, of.low, of.high)]
            if compared.verdict in ("faster", "slower"):
                cells[-2].stylize(STYLES[compared.verdict])
        drawn.add_row(*cells)
    return drawn


def sentences(table: MetricTable) -> Iterator[str]:
    """What one person tells another: how many times as fast, with its interval."""
    for row in table.rows:
        ratio, lower = row.comparison.ratio, table.definition.better == "lower"
        if row.comparison.verdict not in ("faster", "slower") or not (ratio.low and ratio.high and ratio.estimate):
            continue
        is_winner = row.comparison.verdict == "faster"
        first, second = (row.arm.arm, row.baseline.arm) if is_winner else (row.baseline.arm, row.arm.arm)
        inverted = is_winner == lower
        figures = [ratio.estimate, ratio.low, ratio.high]
        best, low, high = [1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low] if inverted else figures
        yield (
            f"{first} is {_times_as(best)} times as good as {second} ({_times_as(low)} to {_times_as(high)})"
            if table.definition.name != "elapsed_s"
            else f"{first} is {_times_as(best)} times as fast as {second} ({_times_as(low)} to {_times_as(high)})"
        )


def _times_as(value: float) -> str:
    return numbers.ratio(value)


def notes(analysis: Analysis, calibration: Calibration) -> Iterator[str]:
    """What a reader must know of how the figures came about."""
    floor = calibration.floor
    if calibration.runs > 1:
        yield f"each trial is the mean of {calibration.runs} runs"
    shortest = min(each.mean for each in summaries(analysis, ELAPSED).values())
    if shortest < SHORT_S:
        took = scale_of("s", [floor.elapsed_s])
        share = min(1.0, floor.elapsed_s / shortest)
        reach = "" if math.isnan(floor.reach) else f"; {floor.program} against itself: ± {100 * floor.reach:.1f} %"
        yield (
            f"every time includes starting a process: `{floor.program}`, which does nothing, takes "
            f"{took.value(floor.elapsed_s)} {took.unit}, about {100 * share:.0f} % of the shortest command{reach}"
        )
    least = min(each.mean for each in summaries(analysis, MEMORY).values())
    if least < NEAR_FLOOR * floor.max_resident_bytes:
        yield (
            f"resident sets below {numbers.bytes_of(floor.max_resident_bytes)} are not measurable: the kernel "
            "counts the moment before a program is loaded"
        )
