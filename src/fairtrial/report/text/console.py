"""The compact verdict table a run ends with: what one person tells another, and the doubts below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.designs.screening_models import ScreeningResult
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.result import Verdict
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.report import hosts, noise, numbers, why
from fairtrial.report.concerns import Concern, concerns, doubts, kinds
from fairtrial.report.designs import covariates, curves, interactions, layouts, screening
from fairtrial.report.tables import (
    TWO_ARMS,
    MetricTable,
    change,
    conditions,
    kind,
    metric_tables,
    procedure,
    verdict,
)
from fairtrial.report.text.summary import breaches, estimands, judged_tables, unclear
from fairtrial.report.words import share_of_blocks
from fairtrial.words import counted

STYLES: Final[dict[Verdict, str]] = {
    "faster": "bold green",
    "slower": "bold red",
    "equivalent": "cyan",
    "undecided": "yellow",
    "none": "dim",
}


def render(analysis: Analysis, drew: Iterable[Fidelity] = ()) -> RenderableType:
    """A table per metric, primary first, and every doubt in a line; `drew` as `concerns.doubts` takes it."""
    parts: list[RenderableType] = []
    if not analysis.finished:
        parts.append(Text("the run is not finished: no verdict yet", style="yellow"))
    if analysis.screening is not None:
        parts += _screening(analysis, analysis.screening)
    for table in metric_tables(analysis) if analysis.screening is None else ():
        floors = [Text(f"  {floor}", style="dim") for floor in noise.floors(analysis, table.definition.name)]
        parts += [_title(analysis, table), _table(analysis, table), *floors, Text()]
    for section in curves.sections(analysis):
        parts += [Text(section.title, style="bold"), *(Text(sentence) for sentence in section.sentences)]
        parts += [_plain(section.header, section.arms), Text()] if section.arms else []
    if analysis.why:
        parts += [*(Text(f"  {line}") for line in why.lines(analysis)), Text()]
    if analysis.noise is not None:
        parts += [*(Text(sentence) for sentence in noise.sentences(analysis.noise)), Text()]
    parts += [Text(sentence, style="bold red") for sentence in breaches(analysis)]
    parts += [Text(sentence, style="yellow") for sentence in unclear(analysis)]
    judged = judged_tables(analysis)
    said = (
        *estimands(analysis),
        *hosts.sentences(analysis, judged),
        *layouts.sentences(judged),
        *covariates.sentences(judged),
        *interactions.sentences(analysis),
    )
    parts += [Text(sentence, style="dim") for sentence in said]
    if raised := kinds(concerns(doubts(analysis, drew))):
        parts.append(Doubts(raised))
    parts.append(Text(_fate(analysis), style="dim"))
    return Group(*parts)


def _screening(analysis: Analysis, of: ScreeningResult) -> Iterator[RenderableType]:
    """Effects of the primary metrics, and what they are: no verdicts."""
    for each in of.metrics:
        if analysis.roles[each.metric] == "primary":
            section = screening.effects(analysis, each)
            drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
            for index, name in enumerate(section.header):
                drawn.add_column(Text(name), justify="left" if index < section.left else "right", no_wrap=True)
            for effect, row in zip(each.effects, section.rows, strict=True):
                drawn.add_row(*(Text(cell) for cell in row), style="bold" if effect.stands_out else "")
            yield from (Text(section.title, style="bold"), drawn, Text())
    yield from (Text(sentence) for sentence in screening.summary(analysis, of))


def _plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Figures under their names, the first column to the left."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, name in enumerate(header):
        drawn.add_column(Text(name), justify="right" if index else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _fate(analysis: Analysis) -> str:
    """`30 of 32 finished trials used, 2 invalid`."""
    counts = analysis.counts
    fate = [f"{counts.used} of {counts.finished} finished trials used"]
    if counts.rows:
        fate.append(f"{counted(counts.rows, 'row')} in {counted(counts.used, 'cluster')}")
    if counts.diagnostic:
        fate.append(f"{counted(counts.diagnostic, 'diagnostic trial')} in addition")
    if counts.invalid:
        fate.append(f"{counts.invalid} invalid")
    if counts.blocks_voided:
        fate.append(f"{counted(counts.blocks_voided, 'block')} voided, {counts.blocks_replaced} replaced")
    if said := share_of_blocks(analysis):
        fate.append(f"{said} compared")
    return ", ".join(fate)


@dataclass(frozen=True)
class Doubts:
    """Doubts as two columns: a long one wraps at the terminal's width and stays beside its first word.

    Not a `Table` itself, because tables are printed as wide as they are, and prose is not.
    """

    concerns: tuple[Concern, ...]

    def __rich__(self) -> Table:
        drawn = Table.grid(padding=(0, 1, 0, 0))
        drawn.add_column(no_wrap=True)
        drawn.add_column(overflow="fold")
        for concern in self.concerns:
            where = f"{concern.briefly}: " if concern.spots else ""
            said = Text.assemble((where, "bold"), concern.sentence, "\n", (f"– {concern.advice}", "dim"))
            drawn.add_row(Text("doubt", style="yellow"), said)
        return drawn


def _title(analysis: Analysis, table: MetricTable) -> Text:
    role = "" if table.role == "primary" else f"{table.role}: "
    return Text.assemble((f"{role}{table.title}", "bold"), (f" · {procedure(analysis, table)}", "dim"))


def _table(analysis: Analysis, table: MetricTable) -> Table:
    two = len(analysis.levels) == TWO_ARMS
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    factors = conditions(analysis)
    for factor in factors:
        drawn.add_column(Text(factor), no_wrap=True)
    if not two:
        drawn.add_column("arm", no_wrap=True)
    first, second = analysis.levels[0], analysis.levels[1] if two else "mean"
    baseline = first if first == "baseline" else f"{first} (baseline)"
    for name in (baseline, second, "ratio", f"{numbers.percent(analysis.confidence)} interval"):
        drawn.add_column(Text(name), justify="right", no_wrap=True)
    drawn.add_column("verdict", no_wrap=True)
    for row in table.rows:
        compared = row.comparison
        cells = [row.levels[factor] for factor in factors] + ([] if two else [row.arm.arm])
        cells += [
            table.scale.value(row.baseline.mean),
            table.scale.value(row.arm.mean),
            *change(compared, table.scale),
        ]
        word = Text(verdict(compared, table.definition, margin=analysis.margin), style=STYLES[kind(compared)])
        drawn.add_row(*(Text(cell) for cell in cells), word)
    return drawn
