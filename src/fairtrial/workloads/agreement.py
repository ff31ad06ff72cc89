"""Whether a trial's raw files tell the same story. The run asks when it commits a trial, and `verify` asks again."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pydantic_core import from_json

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.metrics import drive, latency
from fairtrial.metrics.latency import merged_latency
from fairtrial.metrics.series import timeline
from fairtrial.workloads.workload import Workload


def contradictions(directory: Path, workload: Workload[Any]) -> list[str]:
    """Where the files in `directory` disagree, a sentence each; empty if nowhere.

    Args:
        directory: of a trial that measured, with its latencies added up.
        workload: what wrote the files.

    Raises:
        PlaceError: what a program printed is not that program's output.
        RecordError: a file is missing, cut or damaged.
    """
    try:
        return [*merged_latency.contradictions(directory), *workload.contradictions(directory)]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"cannot compare the files: {error!r}", hint="restore the trial from a backup") from error


@dataclass(frozen=True)
class FigurePair:
    """A figure of `result.json` beside what a program's own file gives.

    Attributes:
        words: what is said of it, with braces in its place.
        tolerance: the difference that rounding explains.
        form: how it is written in a sentence.
    """

    words: str
    stored: Any
    expected: Any
    tolerance: float = 0.0
    form: str = "{}"

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        if self.tolerance:
            return bool(abs(self.stored - self.expected) <= self.tolerance)
        return bool(self.stored == self.expected)


def stored(directory: Path) -> dict[str, Any]:
    """`result.json` as it is, whatever was changed in it."""
    values: dict[str, Any] = from_json(foreign.read(directory / drive.FILE))
    return values


def differing(compared: Iterable[FigurePair], source: str) -> Iterator[str]:
    """Figures that are not what `source` gives, a sentence each."""
    for each in compared:
        if not each.agrees:
            own, expected = (each.form.format(figure) for figure in (each.stored, each.expected))
            yield f"{drive.FILE}: {each.words.format(own)}, but {source} gives {expected}"


@dataclass(frozen=True)
class ExpectedFiles:
    """What the files that were made from one of a program's own must hold.

    Attributes:
        source: the file's name.
        figures: of `result.json`, by name.
        logs: of latencies, by the name of their file.
        timeline: None of a file that does not tell its intervals.
    """

    source: str
    figures: Mapping[str, Any]
    logs: Mapping[str, str] = field(default_factory=dict)
    timeline: bytes | None = None

    def contradictions(self, directory: Path, own: Mapping[str, Any]) -> Iterator[str]:
        """Where a trial's files give something else, a sentence each; `own` is its `result.json`."""
        compared = (FigurePair(f"{name} is {{}}", own.get(name), expected) for name, expected in self.figures.items())
        yield from differing(compared, self.source)
        for file, text in self.logs.items():
            with tempfile.TemporaryDirectory() as scratch:
                (Path(scratch) / file).write_text(text, encoding="utf-8")
                fresh = latency.read(Path(scratch), file=file)
            logged = latency.read(directory, file=file)
            for kind in dict.fromkeys([*fresh, *logged]):
                classes = _classes(logged.get(kind))
                if classes != _classes(fresh.get(kind)):
                    yield f"{file}: {sum(classes.values())} of {kind} in other classes than {self.source} gives"
        if self.timeline is not None and not pl.read_parquet(io.BytesIO(self.timeline)).equals(
            timeline.read(directory)
        ):
            yield f"{timeline.FILE}: other intervals than {self.source} gives"


def _classes(log: latency.Distribution | None) -> dict[int, int]:
    return {} if log is None else dict(zip(log.highest_ns.tolist(), log.counts.tolist(), strict=True))
