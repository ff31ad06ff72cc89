"""Recomputes what a record and its report say from the raw files, and lists what differs.

Scalars come from the workload's and the sampler's own functions, given only the trial's raw files; report.json from
`analyse`, given only plan.json and the recomputed scalars.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

from fairtrial import completeness, foreign, interpreters
from fairtrial.analyse.selection import FEWEST_LEVELS
from fairtrial.analyse.sequential import SequentialRun, follow
from fairtrial.errors import FairtrialError, RecordError
from fairtrial.metrics import drive, first_reader, parquet, per_transaction, telemetry
from fairtrial.metrics.telemetry import counters
from fairtrial.record import Record
from fairtrial.record.models import BlockVoided, LookTaken, PlannedMetrics, TrialFinished, TrialRecord, Window
from fairtrial.record.reader import MOST_BYTES
from fairtrial.report import PAGE, page_of, plain
from fairtrial.report.analysing import analysed
from fairtrial.report.background import place_facts
from fairtrial.report.document import REPORT_FORMAT_VERSION, finite, origin
from fairtrial.report.scene import Scene
from fairtrial.study.resolved import Section
from fairtrial.workloads import agreement, workload_of

RELATIVE_TOLERANCE: Final = 1e-9  # another build of NumPy may sum in another order, no more
REPORT: Final = "report.json"
PRINTED: Final = ("report.txt", PAGE, "raw_data.csv", "raw_data.r")  # what people read of a report
FEWEST_SHARED: Final = 200  # trials: a process takes a second to start
CHUNK: Final = 32


def recompute(record: Record) -> list[str]:
    """Compares every stored scalar, report.json, the text, the page and the raw data with what the record's files give.

    So does it what the journal says: that the run is finished, which trial made a block void, and what a stopping rule
    decided.

    figures/*.svg are drawn from the same numbers and are not compared: drawing takes as long as all else.

    Returns:
        One sentence per mismatch; empty if every number follows from the raw files.
    """
    mismatches: list[str] = []
    again: list[TrialRecord] = []
    for trial, made in zip(record.committed, _each(record), strict=True):
        disagreeing = [text for text in made.contradictions if text not in trial.invalid_reason]
        mismatches += [f"trials/{trial.trial.id}/{text}" for text in disagreeing]
        scalars = made.scalars
        if scalars is None:
            if trial.valid or trial.scalars:  # that its figures cannot be computed is why another is invalid
                mismatches.append(f"trials/{trial.trial.id}: cannot be recomputed: {made.error}")
            again.append(trial)
            continue
        disagreeing = differences(trial.scalars, scalars)
        if trial.scalars or trial.valid:  # an invalid trial may have been stopped before it had any
            mismatches += [f"trials/{trial.trial.id}/trial.json: {text}" for text in disagreeing]
        again.append(trial.model_copy(update={"scalars": scalars}) if disagreeing else trial)
    again = [trial for trial in again if not trial.trial.diagnostic]
    mismatches += completeness.unfinished(record)
    mismatches += _void(record)
    mismatches += _decisions(record, tuple(again))
    known = tuple(mismatches)
    for directory in _reports(record):
        name = directory.relative_to(record.directory)
        mismatches += [f"{name}/{text}" for text in _report(record, again, directory, known=known)]
    return mismatches


def _void(record: Record) -> Iterator[str]:
    """Blocks whose reason to be void does not name the trial that was; other reasons only the controller knew."""
    finished = {each.trial.id: each.trial for each in record.committed}
    invalid: dict[tuple[str, int], str] = {}
    for event in record.events:
        if isinstance(event, TrialFinished) and not event.valid and not (trial := finished[event.trial]).diagnostic:
            invalid.setdefault((trial.cell, trial.block), trial.id)
        if isinstance(event, BlockVoided) and (name := invalid.pop((event.cell, event.block), "")) not in event.reason:
            said = f"block {event.block} of {event.cell} is void ({event.reason})"
            yield f"journal.jsonl: {said}, but {name} is what was invalid"


def _decisions(record: Record, trials: tuple[TrialRecord, ...]) -> list[str]:
    """Where the journal's decisions to stop a cell are not what its rule makes of the trials until then."""
    run = follow(record.plan, trials, voided=record.voided_blocks)
    if run is None:
        return []
    looks = [event for event in record.events if isinstance(event, LookTaken)]
    stored = {cell.cell: (cell.blocks, cell.reason) for look in looks for cell in look.cells if cell.decision == "stop"}
    computed = {cell.cell: (cell.blocks, cell.reason) for cell in run.stops.values()}
    looked_at = max((look.round for look in looks), default=0)
    late = {name for name, stop in run.stops.items() if stop.round > looked_at}  # killed before it could look
    mismatches = [
        f"journal.jsonl: cell {name} stopped with {_stop(stored.get(name))} but recomputed {_stop(computed.get(name))}"
        for name in dict.fromkeys([*stored, *computed])
        if stored.get(name) != computed.get(name) and name not in late - stored.keys()
    ]
    return mismatches or [text for look in looks for text in _look(look, run)]


def _look(look: LookTaken, run: SequentialRun) -> list[str]:
    """Where the figures that a look decided by are not those of the trials until then."""
    again = run.looks[look.round - 1] if look.round <= len(run.looks) else ()
    stored, computed = (
        {cell.cell: cell.model_dump(exclude={"decision", "reason"}) for cell in cells} for cells in (look.cells, again)
    )
    return [f"journal.jsonl: look after round {look.round}: {text}" for text in differences(stored, computed)]


def _stop(stop: tuple[int, str] | None) -> str:
    return "no decision" if stop is None else f"{stop[0]} blocks ({stop[1]})"


def _reports(record: Record) -> list[Path]:
    """The study's own report and those of other factors, if they were written."""
    whole = record.directory / "report"
    return [
        directory
        for directory in (whole, *sorted(whole.glob("by-*")))
        if any((directory / name).exists() for name in (REPORT, *PRINTED))
    ]


@dataclass(frozen=True)
class RawTrial:
    """What of a trial its raw files are read by.

    Attributes:
        directory: the trial's.
        ticks_per_s: of its place, which processes' times are told in; None where the journal does not say.
    """

    directory: Path
    window: Window | None
    workload: Section
    telemetry: Sequence[str]
    ticks_per_s: float | None


@dataclass(frozen=True)
class MadeAgain:
    """What a trial's raw files give.

    Attributes:
        scalars: None if they cannot be computed; then `error` says why.
        contradictions: between its files, a sentence each.
    """

    scalars: dict[str, float] | None
    contradictions: Sequence[str] = ()
    error: str = ""


def _each(record: Record) -> Iterator[MadeAgain]:
    """Of every committed trial, in order; of many by as many processes as there are processors."""
    raw = [
        RawTrial(
            directory=record.trial_directory(trial.trial.id),
            window=trial.window,
            workload=trial.resolved.workload,
            telemetry=trial.telemetry,
            ticks_per_s=place_facts(record, trial).get("ticks_per_s"),
        )
        for trial in record.committed
    ]
    make = partial(made_again, metrics=record.plan.metrics)
    workers = len(os.sched_getaffinity(0))
    if workers == 1 or len(raw) < FEWEST_SHARED:
        yield from map(make, raw)
        return
    guarded = first_reader.has_begun()
    with interpreters.safe_path():  # the record may be the current directory
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(guarded,))
        made = pool.map(make, raw, chunksize=CHUNK)  # starts all
    with pool:
        yield from made


def _begin(guarded: bool) -> None:  # noqa: FBT001 - a pool gives it by position
    """A process leaves Ctrl-C to the one that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if guarded:
        parquet.begin_first_reader()


def made_again(trial: RawTrial, *, metrics: PlannedMetrics) -> MadeAgain:
    """A trial's scalars from its raw files, as the run computes them, and whether these tell one story."""
    if trial.window is None:
        return MadeAgain({})
    contradictions: list[str] = []
    try:
        workload = workload_of(trial.workload)
        common = telemetry.scalars(trial.directory, trial.window, ticks_per_s=trial.ticks_per_s, metrics=metrics)
        scalars = per_transaction.joined(common.scalars, workload.scalars(trial.directory, trial.window))
        # What the run asked when it committed the trial, and the sums it wrote: scalars read some of its files only.
        contradictions += _of_window(trial.directory, trial.window)
        contradictions += agreement.contradictions(trial.directory, workload)
        contradictions += counters.contradictions(trial.directory, window=trial.window, sources=trial.telemetry)
    except (FairtrialError, OSError, ValueError, LookupError, ArithmeticError, TypeError) as error:
        return MadeAgain(None, error=str(error))
    return MadeAgain(scalars, contradictions)


def _of_window(directory: Path, window: Window) -> list[str]:
    """Where the load's own account is of another window: of several clients, both are the first one's, by its clock."""
    path = directory / drive.FILE
    told = from_json(foreign.read(path)) if path.exists() else None
    own, expected = told.get("window") if isinstance(told, dict) else None, window.model_dump()
    return [] if own in (None, expected) else [f"trial.json: window is {expected}, but {drive.FILE} says {own}"]


def _report(record: Record, trials: Sequence[TrialRecord], directory: Path, *, known: Sequence[str]) -> list[str]:
    """Where a report is not what these trials give; `known` is what was found of the trials themselves."""
    if not (directory / REPORT).exists():
        return [f"{REPORT}: missing; write it again with `fairtrial report`"]
    try:
        stored = from_json(foreign.read(directory / REPORT, most_bytes=MOST_BYTES))
        if unlike := _unlike(stored, record, directory):
            return [f"{REPORT}: {unlike}; write it again with `fairtrial report`"]
        contrast, old = stored["analysis"]["contrast"], _compared(stored)
        name = str(stored["record"]["name"])  # a record may be renamed after its report was written
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return [f"{REPORT}: cannot be read: {error!r}; write it again with `fairtrial report`"]
    scene = Scene(record=record, analysis=analysed(record, contrast=contrast, trials=trials), written_as=name)
    mismatches: list[str] = []
    for part, make in _parts(scene).items():
        try:
            mismatches += [f"{REPORT}: {part}{text}" for text in differences(old[part], finite(make()))]
        except RecordError as error:
            if not any(str(error) in text for text in known):
                mismatches.append(f"{REPORT}: {part or 'analysis'} cannot be recomputed: {error}")
    if mismatches or known:
        return mismatches
    printed = plain(scene)
    if (directory / PAGE).exists():  # it takes as long as all the others
        try:
            printed[PAGE] = page_of(scene)
        except RecordError as error:
            return [f"{PAGE}: cannot be recomputed: {error}"]
    return [
        f"{file}: does not match {REPORT}, or another version wrote it; write it again with `fairtrial report`"
        for file, content in printed.items()
        if (directory / file).exists() and not foreign.holds(directory / file, content.encode())
    ]


def _unlike(report: Any, record: Record, directory: Path) -> str:
    """Why a report cannot be compared: it is of another format, or compares another factor than its directory says."""
    if (version := report["format_version"]) != REPORT_FORMAT_VERSION:
        return f"expected format {REPORT_FORMAT_VERSION}, found {version}"
    contrast = report["analysis"]["contrast"]
    own = record.plan.arm if directory.name == "report" else directory.name.removeprefix("by-")
    if contrast != own or len(record.plan.factors.get(own, ())) < FEWEST_LEVELS:
        return f"compares {contrast!r}: expected the factor {own}, which has two levels or more"
    return ""


def _compared(report: Any) -> dict[str, Any]:
    """What of a report.json the record decides, by how a difference names it: all but the directory's name."""
    return {
        "": report["analysis"],
        "record.": {name: each for name, each in report["record"].items() if name not in ("name", "fidelity")},
        "fidelity": report["record"]["fidelity"],
        "diagnostics": report["diagnostics"],
        "latency_shift": report["latency_shift"],
    }


def _parts(scene: Scene) -> dict[str, Callable[[], Any]]:
    """The same, computed: each by itself, as one raw file that cannot be read leaves the others to compare."""
    return {
        "": lambda: scene.analysis.model_dump(mode="json"),
        "record.": lambda: origin(scene),
        "fidelity": lambda: _dumped(scene.fidelity),
        "diagnostics": lambda: _dumped(scene.diagnostics),
        "latency_shift": lambda: _dumped(scene.curves),
    }


def _dumped(models: Iterable[BaseModel]) -> list[Any]:
    return [each.model_dump(mode="json") for each in models]


def differences(stored: Any, computed: Any) -> list[str]:
    """Where two JSON trees differ, as sentences; numbers within `RELATIVE_TOLERANCE` agree."""
    return [f"{path or 'value'} is {old} but recomputed {new}" for path, old, new in _walk(stored, computed, path="")]


def _walk(stored: Any, computed: Any, *, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*stored, *computed]):
            yield from _walk(
                stored.get(key, _MISSING), computed.get(key, _MISSING), path=f"{path}.{key}".removeprefix(".")
            )
    elif isinstance(stored, list) and isinstance(computed, list):
        if len(stored) != len(computed):
            yield f"{path} (length)", str(len(stored)), str(len(computed))
        for index, (old, new) in enumerate(zip(stored, computed, strict=False)):
            yield from _walk(old, new, path=f"{path}[{index}]")
    elif not _agree(stored, computed):
        yield path, _said(stored), _said(computed)


def _agree(stored: Any, computed: Any) -> bool:
    numbers = (int, float)
    if isinstance(stored, numbers) and isinstance(computed, numbers) and not isinstance(stored, bool):
        return math.isclose(stored, computed, rel_tol=RELATIVE_TOLERANCE, abs_tol=0.0) or (
            math.isnan(stored) and math.isnan(computed)
        )
    return bool(stored == computed)


class _Missing:
    """What a tree has at a path that only the other tree has."""


_MISSING: Final = _Missing()


def _said(value: Any) -> str:
    return "missing" if value is _MISSING else repr(value)
