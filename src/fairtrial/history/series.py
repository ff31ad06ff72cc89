"""Series over many runs, straight from the records' files: one point per run, with the standard error of its trials.

DuckDB reads plan.json, journal.jsonl and trial.json where they lie; nothing is imported and nothing is kept. A point
is the mean of its trials' logarithms, taken back (of the values themselves where one is not positive), so that its
standard error is a share.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final, Self, TypeVar

import duckdb
from pydantic import BaseModel, Field, Json, ValidationError, model_validator

from fairtrial.analyse.expectations import expectations
from fairtrial.analyse.expectations import unmet as failed
from fairtrial.errors import InputError, Problem, RecordError
from fairtrial.metrics.frames import in_time, last_rounds
from fairtrial.record import reader
from fairtrial.record.events import Event, RunFinished, RunStarted
from fairtrial.record.models import (
    BlockVoided,
    Cell,
    Design,
    PlannedMetrics,
    PlannedTrial,
    RangeExpectation,
    TrialFinished,
)
from fairtrial.study.catalogue import Better
from fairtrial.study.tree.problems import listed
from fairtrial.words import first_problem

CELL: Final = "cell"
ARM: Final = "arm"
BY: Final = (CELL, ARM)  # what tells series apart unless asked otherwise
VERIFY: Final = "`fairtrial verify RUN` names the file that is cut off or changed"
INCOMPLETE: Final = "has no value in a cell or an arm that a series averages; `--by cell,arm` keeps them apart"
UNMET: Final = "without the cells that failed an expectation"
AGAIN: Final = "an A/A run: both arms are the baseline"
FULL_CONFIDENCE_N: Final = 2  # trials from which a standard error exists

Row = TypeVar("Row", bound=BaseModel)

_ALONE: Final = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}  # nothing is fetched
_GLOB: Final = re.compile(r"[*?\[]")  # in the name of a directory they are themselves
_PLANS: Final = """
SELECT filename, format_version, study, size, arm, factors, cells, metrics, design, expectations, against_itself
FROM read_json(?, filename = true, hive_partitioning = false, format = 'unstructured',
               maximum_object_size = 268435456, columns = {
    format_version: 'BIGINT', study: 'VARCHAR', size: 'VARCHAR', arm: 'VARCHAR', factors: 'JSON', cells: 'JSON',
    metrics: 'JSON', design: 'JSON', expectations: 'JSON', against_itself: 'BOOLEAN'})
"""
_JOURNALS: Final = """
SELECT filename, sequence, place, time, entry
FROM (SELECT *, row_number() OVER (PARTITION BY filename ORDER BY sequence NULLS LAST) - 1 AS place
      FROM read_json(?, filename = true, hive_partitioning = false, format = 'newline_delimited',
                     ignore_errors = true, columns = {
          sequence: 'BIGINT', time: 'VARCHAR', entry: 'JSON'}))
WHERE entry ->> 'event' IN ('run_started', 'run_finished', 'block_voided', 'looked', 'trial_finished')
ORDER BY filename, sequence
"""
_TRIALS: Final = """
SELECT filename, format_version, trial, levels, valid, scalars, subject, system_facts, options
FROM read_json(?, filename = true, hive_partitioning = false, format = 'unstructured',
               maximum_object_size = 268435456, columns = {
    format_version: 'BIGINT', trial: 'JSON', levels: 'JSON', valid: 'BOOLEAN', scalars: 'JSON', subject: 'JSON',
    system_facts: 'JSON', options: 'JSON'})
"""


@dataclass(frozen=True)
class SeriesPoint:
    """One run in one series.

    Attributes:
        run: the run's name, which acknowledgements use.
        time: when it began, as the record or the file has it.
        estimate: in the metric's unit.
        standard_error: of its logarithm (of the value where the series has values that are not positive); None if
            unknown.
        n: trials behind it.
        facts: what ran: versions, hashes, builds, options as read back.
    """

    run: str
    time: str
    estimate: float
    standard_error: float | None = None
    n: int = 1
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """Points of one metric in time order.

    Attributes:
        name: study and levels in words.
        better: None if the source does not say.
        margin: change that matters, as a share; None if the source does not say.
        role: of the newest run: `primary`, `secondary`, `guardrail`, or empty.
        in_units: whether some trial has no logarithm; then all points are means in the unit, with their errors.
        newest: the newest run of all that should have a point here, whether it has one or not; empty if none should.
        unmet: whether the newest run has no point because a cell failed an expectation in it.
        unplanned: whether the newest run neither plans nor measures it.
        incomplete: runs with values, but not of every cell and arm that a point is the mean of.
        resolution: as in the metric's definition; 0 if the source does not say.
    """

    name: str
    metric: str
    unit: str
    better: Better | None
    points: tuple[SeriesPoint, ...]
    margin: float | None = None
    role: str = ""
    in_units: bool = False
    newest: str = ""
    unmet: bool = False
    unplanned: bool = False
    incomplete: tuple[str, ...] = ()
    resolution: float = 0.0

    @property
    def positive(self) -> bool:
        """Whether every estimate is looked at on the logarithmic scale."""
        return not self.in_units and all(point.estimate > 0 for point in self.points)


@dataclass(frozen=True)
class Runs:
    """What was read.

    Attributes:
        left_out: runs that give no points, or none to some series, with the reason.
        measured: metrics that the other runs have values of; those with a role first.
    """

    series: tuple[Series, ...]
    left_out: dict[str, str]
    measured: tuple[str, ...] = ()


class _PlanRow(BaseModel):
    """What series need of a plan."""

    study: str
    size: str | None
    arm: str
    factors: Json[dict[str, list[str]]]
    cells: Json[list[Cell]]
    metrics: Json[PlannedMetrics]
    design: Json[Design]
    expectations: Json[list[RangeExpectation]]
    against_itself: bool | None = None

    @model_validator(mode="after")
    def _has_its_arm(self) -> Self:
        if self.arm not in self.factors:
            raise ValueError(f"the arm {self.arm!r} is none of the factors")
        return self

    @property
    def orders(self) -> dict[str, list[str]]:
        """Levels by factor, cells and arms, each in the plan's order."""
        return {**self.factors, CELL: [cell.name for cell in self.cells], ARM: self.factors[self.arm]}

    @property
    def roles(self) -> dict[str, str]:
        """Role by metric name; named twice, a metric keeps its stricter role, as in a report."""
        named = self.metrics
        groups = (("primary", named.primary), ("secondary", named.secondary), ("guardrail", named.guardrails))
        roles = {metric: role for role, metrics in reversed(groups) for metric in metrics}
        return {metric: roles[metric] for _, metrics in groups for metric in metrics}

    def margin(self, metric: str) -> float:
        """The design's, of a guardrail its own."""
        own = self.metrics.guardrail_margins if self.roles.get(metric) == "guardrail" else {}
        return own.get(metric, self.design.margin)


class _JournalRow(BaseModel):
    """An event, when it was written, its number, and how many lines that can be read have smaller ones."""

    sequence: int
    place: int
    time: str
    entry: Json[Annotated[Event, Field(discriminator="event")]]


class _TrialRow(BaseModel):
    """What series need of a trial."""

    trial: Json[PlannedTrial]
    levels: Json[dict[str, str]]
    valid: bool
    scalars: Json[dict[str, float | None]]
    subject: Json[dict[str, Any]]
    system_facts: Json[dict[str, Any]]
    options: Json[dict[str, str]]

    def key(self, by: Sequence[str]) -> tuple[str, ...]:
        """Its levels of what tells series apart."""
        own = {CELL: self.trial.cell, ARM: self.trial.arm}
        return tuple(own.get(name) or self.levels.get(name, "") for name in by)

    @property
    def facts(self) -> dict[str, Any]:
        """What ran in it."""
        return self.subject | self.system_facts | {f"option {name}": value for name, value in self.options.items()}


@dataclass(frozen=True)
class _Run:
    """A run with the trials that estimates may use, or the reason why it has none."""

    directory: Path
    started: str
    plan: _PlanRow
    trials: list[_TrialRow]
    left_out: str = ""
    unmet: frozenset[str] = frozenset()  # cells that failed an expectation: none of their trials is among these

    @property
    def title(self) -> str:
        return f"{self.plan.study} ({self.plan.size})" if self.plan.size else self.plan.study

    @cached_property
    def facts(self) -> dict[str, str]:
        """What every trial says alike."""
        first, *others = (trial.facts for trial in self.trials)
        texts = {name: value for name, value in first.items() if isinstance(value, str)}
        return {name: value for name, value in texts.items() if all(each.get(name) == value for each in others)}

    def told_apart(self, by: Sequence[str]) -> dict[tuple[str, ...], list[_TrialRow]]:
        """Trials by their levels of what tells series apart."""
        groups: dict[tuple[str, ...], list[_TrialRow]] = defaultdict(list)
        for trial in self.trials:
            groups[trial.key(by)].append(trial)
        return groups


def record_directories(paths: Sequence[Path]) -> list[Path]:
    """Records among the paths and directly below them, each once, by name.

    Raises:
        InputError: a path is neither a record nor a directory of records.
    """
    directories: dict[Path, Path] = {}  # as they are named, by what they are
    for path in paths:
        here = [path] if (path / "plan.json").is_file() else sorted(each.parent for each in path.glob("*/plan.json"))
        if not here:
            problem = Problem(message="expected a run or a directory of runs", file=str(path))
            raise InputError([problem], hint="name a directory that `fairtrial run` wrote to, or a CSV file")
        for each in here:
            directories.setdefault(each.resolve(), each)
    return list(directories.values())


def read(directories: Sequence[Path], *, metrics: Sequence[str] = (), by: Sequence[str] = BY) -> Runs:
    """Reads every series of some records: of the metrics named, or those that the plans give a role.

    Trials of a run that share what tells series apart (`by`: `cell`, `arm` or factors) make one point.

    Raises:
        InputError: a name in `by` that no run has as a factor.
        RecordError: a record that cannot be read.
    """
    runs = _runs(directories)
    known = {CELL, ARM, *(factor for run in runs for factor in run.plan.factors)}
    if runs and (unknown := [name for name in by if name not in known]):
        problem = Problem(
            message=f"unknown factor `{unknown[0]}`; expected one of {listed(sorted(known))}", file="--by"
        )
        raise InputError([problem], hint="name factors of the study; the default is --by cell,arm")
    compared = [run for run in runs if not run.plan.against_itself]
    series = [
        each
        for title in dict.fromkeys(run.title for run in runs)
        for each in _of_study([run for run in compared if run.title == title], metrics=metrics, by=by)
    ]
    incomplete = dict.fromkeys((name for each in series for name in each.incomplete), INCOMPLETE)
    unmet = {run.directory.name: f"{UNMET}: {listed(sorted(run.unmet))}" for run in compared if run.unmet}
    return Runs(
        series=tuple(each for each in series if each.points),
        left_out=incomplete | {run.directory.name: run.left_out for run in runs if run.left_out} | unmet,
        measured=_measured([run for run in runs if not run.left_out]),
    )


def _measured(runs: Sequence[_Run]) -> tuple[str, ...]:
    trials = [trial for run in runs for trial in run.trials]
    valued = {name for trial in trials for name, value in trial.scalars.items() if value is not None}
    roles = dict.fromkeys(name for run in runs for name in run.plan.roles if name in valued)
    return tuple(roles | dict.fromkeys(sorted(valued)))


def _of_study(runs: Sequence[_Run], *, metrics: Sequence[str], by: Sequence[str]) -> Iterator[Series]:
    ordered = sorted(runs, key=lambda run: (run.started, run.directory.name))
    chosen = [run for run in ordered if not run.left_out]
    if not chosen:
        return
    newest = chosen[-1].plan
    definitions = {name: each for run in chosen for name, each in run.plan.metrics.definitions.items()}
    told_apart = [run.told_apart(by) for run in chosen]
    keys = sorted({key for trials in told_apart for key in trials}, key=lambda key: _rank(newest, key, by))
    for metric in metrics or newest.roles:
        definition = definitions.get(metric)
        for key in keys:
            valued = [
                (run, own)
                for run, trials in zip(chosen, told_apart, strict=True)
                if (own := _values(trials.get(key, ()), metric))
            ]
            averaged = _averaged(valued)
            whole = [
                (run, {group: values for group, values in own.items() if group in averaged})
                for run, own in valued
                if averaged <= own.keys()
            ]
            wanted = _expects(ordered[-1].plan, metric, key=key, by=by)
            logs = all(value > 0 for _, groups in whole for group in groups.values() for value in group)
            if averaged:
                yield Series(
                    name=" · ".join([chosen[-1].title, *(level for level in key if level != "all")]),
                    metric=metric,
                    unit="" if definition is None else definition.unit,
                    better=None if definition is None else definition.better,
                    points=tuple(_point(run, groups, logs=logs) for run, groups in whole),
                    margin=newest.margin(metric),
                    role=newest.roles.get(metric, ""),
                    in_units=not logs,
                    newest=ordered[-1].directory.name if wanted else "",
                    unmet=wanted and any(cell in ordered[-1].unmet for cell, _ in averaged),
                    unplanned=not wanted and valued[-1][0] is not ordered[-1],
                    incomplete=tuple(run.directory.name for run, own in valued if not averaged <= own.keys()),
                    resolution=0.0 if definition is None else definition.resolution,
                )


def _averaged(valued: Sequence[tuple[_Run, Mapping[tuple[str, str], object]]]) -> set[tuple[str, str]]:
    """Cells and arms that every point of a series is the mean of: those with values that the newest run plans."""
    if not valued:
        return set()
    newest = valued[-1][0].plan
    planned = {(cell.name, arm) for cell in newest.cells for arm in newest.factors[newest.arm]}
    return planned & {group for _, own in valued for group in own}


def _expects(plan: _PlanRow, metric: str, *, key: tuple[str, ...], by: Sequence[str]) -> bool:
    """Whether a run of this plan gives a series a point, if nothing goes wrong."""
    levels = all(level in plan.orders.get(name, [""]) for name, level in zip(by, key, strict=True))
    return levels and metric in plan.metrics.definitions


def _rank(plan: _PlanRow, key: tuple[str, ...], by: Sequence[str]) -> list[tuple[int, str]]:
    """Where a series stands: cells and levels in the plan's order, what it does not know behind them by name."""
    known = [plan.orders.get(name, []) for name in by]
    return [
        (order.index(level) if level in order else len(order), level) for order, level in zip(known, key, strict=True)
    ]


def _values(trials: Iterable[_TrialRow], metric: str) -> dict[tuple[str, str], list[float]]:
    """Values of one series' trials, by cell and arm."""
    boots: dict[tuple[str, str, int], list[float]] = defaultdict(list)  # a boot may have several trials of a cell
    for trial in trials:
        value = trial.scalars.get(metric)
        if value is not None and math.isfinite(value):
            boots[trial.trial.cell, trial.trial.arm, trial.trial.block].append(value)
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (cell, arm, _block), values in boots.items():
        groups[cell, arm].append(fmean(values))
    return dict(groups)


def _point(run: _Run, groups: Mapping[tuple[str, str], Sequence[float]], *, logs: bool) -> SeriesPoint:
    """Trials of one cell and arm first, then the mean over those: a cell with more trials weighs no more."""
    means, errors = zip(*(_mean(values, logs=logs) for values in groups.values()), strict=True)
    centre = math.fsum(means) / len(means)
    known = all(error is not None for error in errors)
    return SeriesPoint(
        run=run.directory.name,
        time=run.started,
        estimate=math.exp(centre) if logs else centre,
        standard_error=math.hypot(*errors) / len(means) if known else None,
        n=sum(map(len, groups.values())),
        facts=run.facts,
    )


def _mean(values: Sequence[float], *, logs: bool) -> tuple[float, float | None]:
    """Mean and its standard error."""
    scaled = [math.log(value) for value in values] if logs else list(values)
    mean = math.fsum(scaled) / len(scaled)
    if len(scaled) < FULL_CONFIDENCE_N:
        return mean, None
    return mean, math.hypot(*(each - mean for each in scaled)) / math.sqrt(len(scaled) * (len(scaled) - 1))


def _runs(directories: Sequence[Path]) -> list[_Run]:
    """Every run: finished ones with their used trials, the others with the reason."""
    for each in directories:
        reader.refuse_links(each)
    plan_files = [each / "plan.json" for each in directories]
    plans = {path.parent: row for path, row in _each_once(plan_files, _rows(_PlanRow, _PLANS, plan_files))}
    events: dict[Path, list[_JournalRow]] = defaultdict(list)
    journals = [path for each in directories if (path := each / "journal.jsonl").is_file()]
    for path, line in _rows(_JournalRow, _JOURNALS, journals):
        if line.sequence != line.place:
            raise RecordError(f"cannot read {path}: a line before number {line.sequence} is damaged", hint=VERIFY)
        events[path.parent].append(line)
    finished = {each for each in directories if any(isinstance(line.entry, RunFinished) for line in events[each])}
    files = [
        reader.trial_file(each, line.entry.trial)
        for each in directories
        if each in finished
        for line in events[each]
        if isinstance(line.entry, TrialFinished)
    ]
    trials: dict[Path, list[_TrialRow]] = defaultdict(list)
    for path, trial in _each_once(files, _rows(_TrialRow, _TRIALS, files)):
        trials[path.parents[2]].append(trial)
    return [
        _run(each, plans[each], events=events[each], trials=trials[each], finished=each in finished)
        for each in directories
    ]


def _run(
    directory: Path, plan: _PlanRow, *, events: Sequence[_JournalRow], trials: Sequence[_TrialRow], finished: bool
) -> _Run:
    entries = [line.entry for line in events]
    lost = {(entry.cell, entry.block) for entry in entries if isinstance(entry, BlockVoided)}
    usable = [each for each in trials if not each.trial.diagnostic]
    lost |= {(each.trial.cell, each.trial.block) for each in usable if not each.valid}
    ends = last_rounds(entries)
    usable = [each for each in usable if in_time(each.trial, ends)]
    measured = {each.trial.cell for each in usable if each.valid}  # without a valid trial there is nothing to expect of
    unmet = failed(expectations(plan, usable)) & measured if finished else frozenset[str]()
    used = [each for each in usable if (each.trial.cell, each.trial.block) not in lost and each.trial.cell not in unmet]
    started = next((line.time for line in events if isinstance(line.entry, RunStarted)), "")
    reason = ("" if used else "no trial counts towards estimates") if finished else "unfinished"
    reason = AGAIN if plan.against_itself else reason
    return _Run(directory, started, plan=plan, trials=used, left_out=reason, unmet=unmet)


def _each_once(files: Sequence[Path], rows: Iterable[tuple[Path, Row]]) -> Iterator[tuple[Path, Row]]:
    """The rows of files that have one each.

    Raises:
        RecordError: an empty file, of which a query says nothing.
    """
    seen: set[Path] = set()
    for path, row in rows:
        seen.add(path)
        yield path, row
    for path in files:
        if path not in seen:
            raise RecordError(f"cannot read {path}: the file is empty", hint=VERIFY)


def _rows(row: type[Row], query: str, files: Sequence[Path]) -> Iterator[tuple[Path, Row]]:
    """Rows of a query over files, each with its file.

    Raises:
        RecordError: a file is missing or is not what it should be.
    """
    if not files:
        return
    try:
        with duckdb.connect(":memory:", config=dict(_ALONE)) as connection:
            cursor = connection.execute(query, [[_GLOB.sub(r"[\g<0>]", str(file)) for file in files]])
            names = [column[0] for column in cursor.description]
            for values in cursor.fetchall():
                fields = dict(zip(names, values, strict=True))
                path = Path(fields.pop("filename"))
                reader.require_version(path, fields.pop("format_version", None))
                yield path, _validated(row, fields, path)
    except duckdb.Error as error:
        raise RecordError(f"cannot read a record: {str(error).splitlines()[0]}", hint=VERIFY) from error


def _validated(row: type[Row], fields: Mapping[str, Any], path: Path) -> Row:
    try:
        return row.model_validate(fields)
    except ValidationError as error:
        raise RecordError(f"cannot read {path}: {first_problem(error)}", hint=VERIFY) from error
