"""What the probes of a diagnostic trial left: counts, profiles, outputs and files, from the trial's raw files. Pure.

Owns the names of those files and the formats of `perf stat` and `perf report`. Nothing here becomes a scalar: a probe
changes what it looks at, so that its trial's figures are no estimate of anything.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter, ValidationError
from pydantic_core import from_json

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.study.probes import ProbeKind
from fairtrial.words import cut

DIRECTORY: Final = "diagnostics"  # of a trial; `probes` belongs to searches for a rate
RUNS: Final = "probes.json"  # when each probe ran, and how it ended
SEPARATOR: Final = "\t"  # of perf's columns: events and symbols hold commas and semicolons
SYMBOLS_KEPT: Final = 40  # of a profile; below that each is a fraction of a percent
LINES_KEPT: Final = 400  # of an output in a report; the whole of it is in the trial's directory
LONGEST_LINE: Final = 300  # characters of a line, and of a symbol: names of C++ templates have thousands
MOST_BYTES: Final = 256 << 20  # of what a probe printed
MOST_COMPARED: Final = 10_000**2  # pairs of lines: eight seconds at worst
_COUNT, _EVENT, _COUNTER_COLUMNS = 0, 2, 3
_PROFILE_COLUMNS: Final = 4
_NATURAL: Final = TypeAdapter(NonNegativeInt)
_NOT_COUNTED: Final = ("<not supported>", "<not counted>")
_HINT: Final = "the trial's raw file was cut or changed: restore the record from a copy"


class StrictModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProbeRun(StrictModel):
    """One probe in one trial. Times are of the place's monotonic clock; null if it never started.

    Attributes:
        number: in the study's list, from 1.
        label: what reports call it.
        failure: why what it left cannot be believed; empty if it can.
    """

    number: int
    kind: ProbeKind
    label: str
    start_ns: int | None = None
    end_ns: int | None = None
    failure: str = ""

    @property
    def stem(self) -> str:
        """What the names of its files begin with."""
        return f"{self.number}-{self.kind}"

    @property
    def seconds(self) -> float | None:
        """How long it ran."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return (self.end_ns - self.start_ns) / 1e9


class Symbol(StrictModel):
    """One function of a profile: where it is from, and the share of all samples that fell into it."""

    symbol: str
    origin: str
    share: float


class ProbeFinding(StrictModel):
    """What one probe gave in one trial.

    Attributes:
        seconds: how long it ran; null for a file, which is read twice.
        counters: by event; null where the place cannot count it.
        samples: of a profile.
        symbols: its most frequent ones, most frequent first.
        lines: what a script or program printed; of a file, lines that are other afterwards (`-` before, `+` after).
        lines_left_out: how many lines there were beyond those.
    """

    number: int
    kind: ProbeKind
    label: str
    failure: str = ""
    seconds: float | None = None
    counters: dict[str, float | None] = {}
    samples: int = 0
    symbols: tuple[Symbol, ...] = ()
    lines: tuple[str, ...] = ()
    lines_left_out: int = 0


def write_runs(runs: list[ProbeRun]) -> bytes:
    """The content of `RUNS`."""
    return json.dumps([run.model_dump() for run in runs], indent=1).encode() + b"\n"


def read(directory: Path) -> list[ProbeFinding]:
    """What every probe of a trial gave; `directory` is the trial's. Empty if no probe got as far as starting.

    Raises:
        RecordError: a raw file is missing or damaged.
    """
    below = directory / DIRECTORY
    path = below / RUNS
    if not path.exists():
        return []
    try:
        runs = [ProbeRun.model_validate(run) for run in from_json(foreign.read(path))]
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint=_HINT) from error
    return [_finding(below, run) for run in runs]


def _finding(directory: Path, run: ProbeRun) -> ProbeFinding:
    finding = ProbeFinding(number=run.number, kind=run.kind, label=run.label, failure=run.failure, seconds=run.seconds)
    if run.failure:
        return finding  # what a broken probe left is kept, but says nothing
    match run.kind:
        case "perf_stat":
            return finding.model_copy(update={"counters": counters(_text(directory / f"{run.stem}.tsv"))})
        case "perf_record":
            samples, symbols = profile(_text(directory / f"{run.stem}.tsv"))
            return finding.model_copy(update={"samples": samples, "symbols": symbols})
        case "file":
            before, after = (_text(directory / f"{run.stem}.{when}.txt") for when in ("before", "after"))
            return finding.model_copy(update=_kept(list(changed(before, after))) | {"seconds": None})
        case _:
            return finding.model_copy(update=_kept(_text(directory / f"{run.stem}.txt").splitlines()))


def _text(path: Path) -> str:
    try:
        return foreign.read(path, most_bytes=MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}", hint=_HINT) from error


def _kept(lines: list[str]) -> dict[str, object]:
    """The first lines without blank ones around them, each short enough for a page."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    shown = tuple(cut(line.rstrip(), LONGEST_LINE) for line in lines[:LINES_KEPT])
    return {"lines": shown, "lines_left_out": len(lines) - len(shown)}


def _rows(text: str, columns: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            fields = [field.strip() for field in line.split(SEPARATOR)]
            if len(fields) >= columns:
                yield fields


def counters(text: str) -> dict[str, float | None]:
    """Counts of `perf stat -x`, by event; null where the place cannot count it.

    Raises:
        RecordError: a count is no number.
    """
    counts: dict[str, float | None] = {}
    for fields in _rows(text, _COUNTER_COLUMNS):
        try:
            counts[fields[_EVENT]] = None if fields[_COUNT] in _NOT_COUNTED else float(fields[_COUNT])
        except ValueError as error:
            raise RecordError(f"perf stat: {fields[_COUNT]!r} is no count", hint=_HINT) from error
    return counts


def profile(text: str) -> tuple[int, tuple[Symbol, ...]]:
    """Samples in all and the most frequent functions of `perf report -F sample,comm,dso,sym`, all programs together.

    Raises:
        RecordError: a number of samples is none.
    """
    counted: Counter[tuple[str, str]] = Counter()
    for samples, _program, origin, symbol in (fields[:_PROFILE_COLUMNS] for fields in _rows(text, _PROFILE_COLUMNS)):
        try:
            counted[cut(symbol, LONGEST_LINE), origin] += _NATURAL.validate_python(samples)
        except ValueError as error:
            raise RecordError(f"perf report: {samples!r} is no number of samples", hint=_HINT) from error
    total = counted.total()
    ordered = sorted((+counted).items(), key=lambda each: (-each[1], each[0]))[:SYMBOLS_KEPT]
    return total, tuple(Symbol(symbol=name[0], origin=name[1], share=count / total) for name, count in ordered)


def changed(before: str, after: str) -> Iterator[str]:
    """Lines that differ: `-` and the line before, `+` and the line after, in the file's order.

    Of files so long that their comparison would take minutes, each line is compared with the one at its place.
    """
    old, new = before.splitlines(), after.splitlines()
    if len(old) * len(new) > MOST_COMPARED:
        for pair in itertools.zip_longest(old, new):
            if pair[0] != pair[1]:
                yield from (f"{sign}{line}" for sign, line in zip("-+", pair, strict=True) if line is not None)
        return
    for line in difflib.unified_diff(old, new, n=0, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield line
