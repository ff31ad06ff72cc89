"""`fairtrial studies beside`: a run in the tables of the publication that its study re-runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairtrial.cli.terminal import say
from fairtrial.errors import InputError, Problem

if TYPE_CHECKING:
    from fairtrial.analyse.models import Analysis, Comparison
    from fairtrial.audit import RerunComparison
    from fairtrial.record import Record
    from fairtrial.study.catalogue import MetricDefinition

HEADER: Final = ("at", "published, %", "re-run, %", "re-run's verdict", "agreement")


def beside(directory: Path) -> None:
    """Prints the publication's tables with what the run found in each field.

    Raises:
        InputError: the run's study re-runs no publication.
        FairtrialError: not a record, or a damaged one.
    """
    from fairtrial import record

    say("\n".join(render(record.read(directory))))


def render(record: Record) -> Iterator[str]:
    """The whole output, line by line."""
    from fairtrial import audit as publications
    from fairtrial.report.analysing import analysed
    from fairtrial.report.text import columns

    known = publications.rerun_by(record.plan.study)
    if known is None:
        problem = Problem(
            f"the study `{record.plan.study}` does not re-run a publication with raw data", str(record.directory)
        )
        raise InputError(
            [problem], hint="`fairtrial studies` lists publications; docs/reference/publications names their re-runs"
        )
    name, rerun = known
    dataset = publications.load(name)
    several = [name for name, levels in record.plan.factors.items() if len(levels) > 1]  # a size may leave one
    contrasts = [factor.name for factor in rerun.factors.values() if factor.name in several]
    analyses = {contrast: analysed(record, contrast=contrast) for contrast in contrasts}
    rows = publications.beside(dataset, rerun, analyses)
    yield f"published: {dataset.description.title} ({dataset.description.source})"
    yield f"re-run:    {record.directory.name}" + _how(record)
    yield "Changes from the first level to the second: 95 % intervals of the ratio minus 1. A published change is"
    yield "significant after Holm over its table, a change of the re-run by its verdict. Equivalence rests on the"
    yield "interval of its own tests, shown with its confidence level. A comparison without a verdict (unfinished run,"
    yield "too few blocks, missed condition), or of a clock's metric under emulation, counts neither for nor against"
    yield "the publication."
    for table, metric in dict.fromkeys((row.table, row.metric) for row in rows):
        of = [row for row in rows if (row.table, row.metric) == (table, metric)]
        yield from columns.heading(f"{table}: published {of[0].published.metric}, re-run {metric}")
        yield ""
        definition = analyses[record.plan.arm].metrics.get(metric)
        yield from columns.table(HEADER, [_row(row, definition) for row in of], left=1)
    yield from columns.heading("Agreement")
    yield ""
    yield from _counted(rows, record, analyses[record.plan.arm])
    for note in rerun.notes:
        yield from columns.prose(f"- {note}", indent="  ")


def _how(record: Record) -> str:
    accelerators = {opened.facts.get("accelerator") for opened in record.places}
    return f", size {record.plan.size}" * bool(record.plan.size) + ", under emulation" * ("tcg" in accelerators)


def _row(row: RerunComparison, definition: MetricDefinition | None) -> list[str]:
    from fairtrial.audit.comparisons import place

    low, high = row.published.ratio_percent
    also = "".join(f", {level}" for level in row.also.values())
    return [place(row.at) + also, f"[{low:.1f}, {high:.1f}]", here(row.comparison), _verdict(row, definition), row.said]


def here(comparison: Comparison | None) -> str:
    """The interval that decided, as changes in percent; with its level where that is not the comparison's."""
    from fairtrial.report.tables import decided

    if comparison is None or comparison.ratio.estimate is None:
        return "–"
    interval, confidence = decided(comparison)
    if interval.low is None or interval.high is None:
        return f"{100 * (comparison.ratio.estimate - 1):.1f}"
    level = "" if confidence == comparison.confidence else f" at {100 * confidence:g} %"
    return f"[{100 * (interval.low - 1):.1f}, {100 * (interval.high - 1):.1f}]{level}"


def _verdict(row: RerunComparison, definition: MetricDefinition | None) -> str:
    from fairtrial.report.tables import word

    return "–" if row.comparison is None or definition is None else word(row.comparison.verdict, definition)


def _counted(rows: Sequence[RerunComparison], record: Record, analysis: Analysis) -> Iterator[str]:
    """How often both say the same, by metric, and what the comparison rests on."""
    from fairtrial.words import counted

    for metric in dict.fromkeys(row.metric for row in rows):
        of = [row for row in rows if row.metric == metric]
        said = [f"{sum(row.said == each for row in of)} {each}" for each in dict.fromkeys(row.said for row in of)]
        yield f"{metric}: {', '.join(said)}"
    yield f"{counted(analysis.counts.valid, 'valid trial')} of {record.plan.study}"
