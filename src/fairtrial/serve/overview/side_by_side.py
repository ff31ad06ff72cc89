"""Runs of one study beside each other: first what differs between them, then what each found. Knows no HTML.

Figures are those of the stored reports. What compares runs is `history.gating`, with its doubt; nothing here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial.errors import FairtrialError, RecordError
from fairtrial.history.gating import by_baseline
from fairtrial.plan.differences import differences
from fairtrial.record import Record, read
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.report import numbers, tables
from fairtrial.report.background import background, shown
from fairtrial.report.in_effect import apart
from fairtrial.report.tables import MetricTable
from fairtrial.serve.overview.summarising import StoredReport, stored_report

RUN: Final = "\nrun"  # a factor that no study can have: names can be printed
PLANNED: Final = ("size", "fairtrial_version", "telemetry_interval_ms", "telemetry_lock_waits", "against_itself")


@dataclass(frozen=True)
class Group:
    """Things of one sort that differ: a name, then each run's value."""

    title: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Estimate:
    """What one run says of a comparison.

    Attributes:
        kind: of its verdict, for its colour.
    """

    change: str
    interval: str
    word: str
    kind: str


@dataclass(frozen=True)
class MetricBeside:
    """A primary metric: a row for each comparison, with each run's estimate, or None where it has none."""

    title: str
    rows: tuple[tuple[str, tuple[Estimate | None, ...]], ...]


@dataclass(frozen=True)
class Between:
    """One run's arms against the same arms of the first run."""

    run: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class SideBySide:
    """All that the page says.

    Attributes:
        started: of each run.
        notes: why a run has no figures, and the like.
        doubt: about comparing runs at all.
    """

    runs: tuple[str, ...]
    started: tuple[str, ...]
    groups: tuple[Group, ...]
    metrics: tuple[MetricBeside, ...]
    between: tuple[Between, ...]
    notes: tuple[str, ...]
    doubt: str


def side_by_side(directories: Sequence[Path]) -> SideBySide:
    """Reads the runs, which are of one study.

    Raises:
        FairtrialError: one of them is not a record, or a damaged one.
    """
    records = [read(directory) for directory in directories]
    notes: list[str] = []
    reports = [_report(record, notes) for record in records]
    between, doubt = _between(records, notes)
    return SideBySide(
        runs=tuple(record.directory.name for record in records),
        started=tuple(record.journal[0].time if record.journal else "" for record in records),
        groups=tuple(group for group in _groups(records) if group.rows),
        metrics=tuple(_metrics(records[0].plan, reports)),
        between=tuple(between),
        notes=tuple(notes),
        doubt=doubt,
    )


def _report(record: Record, notes: list[str]) -> StoredReport | None:
    name = record.directory.name
    try:
        report = stored_report(record.directory)
    except RecordError as error:
        notes.append(str(error))
        return None
    if not record.finished:
        notes.append(f"{name} is not finished: no verdict yet")
        return None
    if report is None:
        notes.append(f"{name} has no report: write it with: fairtrial report {record.directory}")
    return report


def _groups(records: Sequence[Record]) -> Iterator[Group]:
    """What differs, from the ground up."""
    yield Group("Places", _places(records))
    yield Group("Systems", _read_back(records, lambda trial: trial.system_facts))
    yield Group("Plan", _plans(records))
    yield Group("Settings as read back", _read_back(records, _settings))
    yield Group("Options in effect", _read_back(records, lambda trial: trial.options))


def _places(records: Sequence[Record]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    each = [_facts(record) for record in records]
    return _differing(each)


def _facts(record: Record) -> dict[str, str]:
    """Of every place: what it is, and each finding that is not fine."""
    facts: dict[str, str] = {}
    for place in background(record, contrast=record.plan.arm).places:
        facts |= {f"{place.name}: {fact.label}": fact.value for fact in place.facts}
        facts |= {f"{place.name}: {each['name']}": f"{each['grade']}: {each['value']}" for each in place.cautions}
    return facts


def _plans(records: Sequence[Record]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    names = [record.directory.name for record in records]
    own = _differing([_planned(record.plan) for record in records])
    both = set.intersection(*({(c, a) for c, arms in each.plan.resolved.items() for a in arms} for each in records))
    trials = {
        f"{cell}, {arm}": {name: record.plan.resolved[cell][arm] for name, record in zip(names, records, strict=True)}
        for cell, arm in sorted(both)
    }
    changed = tuple((each.path, tuple(shown(each.values.get(name)) for name in names)) for each in differences(trials))
    return own + changed


def _planned(plan: Plan) -> dict[str, str]:
    own = {name: shown(getattr(plan, name)) for name in PLANNED}
    design = {f"design.{name}": shown(value) for name, value in plan.design.model_dump(mode="json").items()}
    levels = {f"levels of {factor}": ", ".join(names) for factor, names in plan.factors.items()}
    return own | design | levels


def _differing(each: Sequence[Mapping[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    names = dict.fromkeys(name for values in each for name in values)
    rows = ((name, tuple(values.get(name, numbers.ABSENT) for values in each)) for name in names)
    return tuple((name, values) for name, values in rows if len(set(values)) > 1)


def _settings(trial: TrialRecord) -> dict[str, str]:
    return {each.name: each.asked if each.read_back is None else each.read_back for each in trial.effective}


def _read_back(
    records: Sequence[Record], values: Callable[[TrialRecord], dict[str, str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Values that differ between runs under otherwise equal conditions: the run stands in for a factor."""
    names = [record.directory.name for record in records]
    trials = [
        trial.model_copy(update={"levels": {**trial.levels, RUN: name}, "options": values(trial)})
        for name, record in zip(names, records, strict=True)
        for trial in record.trials
        if trial.valid
    ]
    return tuple((name, tuple(row[run] for run in names)) for name, row in apart(trials, contrast=RUN, levels=names))


def _metrics(plan: Plan, reports: Sequence[StoredReport | None]) -> Iterator[MetricBeside]:
    by_run = [
        {} if each is None else {t.definition.name: t for t in tables.metric_tables(each.analysis)} for each in reports
    ]
    for metric in plan.metrics.primary:
        found = [tables_of.get(metric) for tables_of in by_run]
        first = next((table for table in found if table is not None), None)
        if first is None:
            continue
        each = [{} if table is None else dict(_estimates(table)) for table in found]
        rows = dict.fromkeys(name for estimates in each for name in estimates)
        definition = first.definition
        yield MetricBeside(
            title=f"{definition.label}, {definition.better} is better",
            rows=tuple((name, tuple(estimates.get(name) for estimates in each)) for name in rows),
        )


def _estimates(table: MetricTable) -> Iterator[tuple[str, Estimate]]:
    for row in table.rows:
        comparison = row.comparison
        change, interval = tables.change(comparison, table.scale)
        where = f" · {tables.cell_label(row.levels)}" if row.levels else ""
        yield (
            f"{comparison.arm} / {comparison.baseline}{where}",
            Estimate(change, interval, tables.word(comparison.verdict, table.definition), comparison.verdict),
        )


def _between(records: Sequence[Record], notes: list[str]) -> tuple[list[Between], str]:
    """Each later run's arms against those of the first; and what has to be said about that."""
    baseline, *others = records
    found, doubt = [], ""
    for record in others:
        try:
            gate = by_baseline(
                record, baseline, metrics=record.plan.metrics.primary, alpha=1 - record.plan.design.confidence
            )
        except (FairtrialError, KeyError) as error:
            notes.append(f"{record.directory.name} cannot be held against {baseline.directory.name}: {error}")
            continue
        doubt = "; ".join(gate.notes)
        rows = tuple((each.series, each.metric, each.message) for each in gate.checks)
        found.append(Between(record.directory.name, rows))
    return found, doubt
