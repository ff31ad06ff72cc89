"""`fairtrial studies`: which studies are ready, and the publications they re-run, from their raw data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from fairtrial.audit import ArmComparison, Audit, Dataset, Table
    from fairtrial.audit.models import TableDescription


SIZES = """\
  ci         minutes: checks that everything is in place, too short for a verdict
  laptop     the study as written (default)
  published  the scale of the publication that the study re-runs
  large      longer windows and more blocks, for a study that does not re-run a publication
"""


def listing() -> None:
    """Prints every ready study with the sizes that this machine can run, and every publication with its title."""
    from fairtrial import audit as publications
    from fairtrial.cli import doctor
    from fairtrial.errors import PlaceError
    from fairtrial.report.text import columns
    from fairtrial.studies import ready
    from fairtrial.study.resolved import Section

    local = Section({doctor.LOCAL: {}})
    try:
        with doctor.looked_at(local, boots=False) as (place, observed):
            studies = list(ready.ready(place, observed, at=local))
    except PlaceError as error:  # names are worth having without it
        studies = []
        typer.echo(f"cannot determine what this machine can run: {error}", err=True)
    here = {each.study.name: ", ".join(each.here) or "none" for each in studies}
    width = max(map(len, [*here.values(), "unknown"]))
    typer.echo(f"ready studies: fairtrial run {ready.bundled()[0].parent}/NAME.yaml --size SIZE")
    typer.echo(SIZES)
    typer.echo(f"  {'study':22}  {'runs here':{width}}  question")
    for study in [each.study for each in studies] or map(ready.described, ready.bundled()):
        typer.echo(f"  {study.name:22}  {here.get(study.name, 'unknown'):{width}}  {study.question}")
    lacks = [each for each in studies if each.lacks]
    if lacks:
        typer.echo("\nwhat the others lack; `fairtrial doctor STUDY` says how to fix it")
    for each in lacks:
        said = "; ".join(f"{size}: {lack.what}" for size, lack in each.lacks.items())
        for line in columns.prose(f"{each.study.name}: {said}", indent="  "):
            typer.echo(line)
    typer.echo("\npublished data: fairtrial studies published NAME")
    for name in publications.names():
        description = publications.load(name).description
        typer.echo(f"  {name:22}  {description.title}")


def published(name: str) -> None:
    """Prints every table of a publication, recomputed, and where the publication disagrees with its own data.

    Raises:
        InputError: there is no publication of that name.
    """
    from fairtrial import audit as publications

    typer.echo("\n".join(render(publications.load(name))))


def render(dataset: Dataset) -> Iterator[str]:
    """The whole output, line by line."""
    from fairtrial import audit as publications
    from fairtrial.report.text import columns

    yield dataset.description.title
    yield f"source: {dataset.description.source}"
    yield (
        "Intervals are second minus first; t is first minus second, as R prints it. Trials are treated as independent."
    )
    for table in publications.tables(dataset):
        yield from columns.heading(_title(dataset, table.description))
        yield ""
        yield from _grid(dataset, table.description, table.comparisons)
        yield ""
        yield from _tests(table)
        if table.description.pairs:
            yield ""
            yield from _pairs(table.comparisons)
    yield from _interactions(dataset)
    yield from columns.heading("Where the publication disagrees with its own data")
    audit = publications.audit(dataset)
    yield from _disagreements(audit)
    yield from columns.heading("What else a reader should know")
    yield ""
    for fact in audit.problems:
        yield from columns.prose(f"- {fact}", indent="  ")


def _title(dataset: Dataset, table: TableDescription) -> str:
    metric = dataset.description.metrics[table.metric]
    first, *others = dataset.levels(table.contrast)
    return f"{table.name}: {metric.label}, {metric.unit}, {metric.better} is better, {first} / {' / '.join(others)}"


def _grid(dataset: Dataset, table: TableDescription, comparisons: Sequence[ArmComparison]) -> Iterator[str]:
    """Means side by side, the interval of their difference below, as the publications print them."""
    metric = dataset.description.metrics[table.metric]
    columns = dataset.levels(table.columns) if table.columns else ("",)
    first, *others = dataset.levels(table.contrast)
    rows = []
    for row in dataset.levels(table.rows):
        for second in others:
            fields = [
                next(
                    each
                    for each in comparisons
                    if each.second == second and _is_at(each, table, row=row, column=column)
                )
                for column in columns
            ]
            extra = f": {first} / {second}" if len(others) > 1 else ""
            means = [" / ".join(f"{mean:.{metric.mean_decimals}f}" for mean in each.means) for each in fields]
            bounds = [
                f"[{each.units.low:.{metric.interval_decimals}f}, {each.units.high:.{metric.interval_decimals}f}]"
                for each in fields
            ]
            rows += [[_named(dataset, table.rows, row) + extra, *means], ["", *bounds]]
    heads = [_named(dataset, table.columns, column) if table.columns else "first / second" for column in columns]
    return _boxed([["mean [95 % CI]", *heads], *rows])


def _is_at(each: ArmComparison, table: TableDescription, *, row: str, column: str) -> bool:
    return each.at == {table.rows: row} | ({table.columns: column} if table.columns else {})


def _named(dataset: Dataset, factor: str, level: str) -> str:
    """A level in the publication's words: `100: low concurrency`."""
    meaning = dataset.description.factors[factor].levels[level]
    label = dataset.description.factors[factor].label
    return f"{level}: {meaning}" if meaning else f"{label} {level}"


def _boxed(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The tables of mailing lists: a rule under the head and after each pair of lines."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    yield rule
    for number, row in enumerate(rows):
        yield "|" + "|".join(f" {cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)) + "|"
        if number % 2 == 0:
            yield rule


def _tests(table: Table) -> Iterator[str]:
    """Welch's test as R prints it, and intervals of the change in percent: the publication's and the ratio's."""
    from fairtrial.audit.checking import r_line
    from fairtrial.audit.comparisons import place
    from fairtrial.audit.r_printing import p_value
    from fairtrial.report.text import columns

    several = len({each.second for each in table.comparisons}) > 1
    rows = []
    for each, p_adjusted in zip(table.comparisons, table.p_adjusted, strict=True):
        line = r_line(each)
        rows.append(
            [
                place(each.at) + (f", {each.second}" if several else ""),
                line["t"],
                line["df"],
                line["p"],
                _percent(each.percent),
                _percent(each.ratio_percent),
                p_value(p_adjusted),
            ]
        )
    header = ["at", "t", "df", "p", "% of first mean", "ratio − 1, %", "Holm p"]
    yield from columns.table(header, rows, left=1)


def _percent(bounds: tuple[float, float]) -> str:
    return f"[{bounds[0]:.2f}, {bounds[1]:.2f}]"


def _pairs(comparisons: Sequence[ArmComparison]) -> Iterator[str]:
    """Change in percent by trial number."""
    from fairtrial.audit.comparisons import place

    yield "change by trial, trials paired by number:"
    for each in comparisons:
        yield f"  {place(each.at)}: " + ", ".join(f"{change:.2f} %" for change in each.pair_percent)


def _interactions(dataset: Dataset) -> Iterator[str]:
    """What the design could have claimed about conditions; nothing where trials are too few for a claim."""
    from fairtrial.audit.interactions import analysed
    from fairtrial.report.designs import interactions
    from fairtrial.report.text import columns

    analysis = analysed(dataset)
    if all(each.f is None or each.reason for each in analysis.interactions):
        return
    yield from columns.heading(interactions.TITLE)
    yield ""
    for sentence in interactions.sentences(analysis):
        yield from columns.prose(f"- {sentence}", indent="  ")
    for rows in (interactions.tests(analysis), interactions.levels(analysis), interactions.pairs(analysis)):
        if rows.rows:
            yield ""
            yield from columns.table(rows.header, rows.rows, left=rows.left)
    yield ""
    yield from columns.prose(interactions.NOTE)


def _disagreements(audit: Audit) -> Iterator[str]:
    from fairtrial.audit.findings import EXPLAINED
    from fairtrial.report.text import columns

    yield ""
    agreed, contradicted = audit.count("confirmed"), [each for each in audit.findings if each.kind is not None]
    yield f"{agreed + len(contradicted)} printed figures and statements checked, {agreed} follow from the data."
    for kind in dict.fromkeys(each.kind for each in contradicted if each.kind is not None):
        findings = [each for each in contradicted if each.kind == kind]
        yield ""
        yield f"{EXPLAINED[kind]} ({len(findings)}):"
        rows = [[each.where, each.what, each.printed, each.computed] for each in findings]
        yield from columns.table(["where", "what", "printed", "data"], rows, left=2)
