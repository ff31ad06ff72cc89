"""Arrivals that were recorded: one number of seconds per line, checked here, sent to the place as whole nanoseconds.

A plan holds a file's path and hash, never its numbers; a file that changes after the study was read is an error.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, WithJsonSchema

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.problems import FILE_OF

MOST: Final = 5_000_000  # arrivals of a file, as the engine's own limit: 40 MB there
LONGEST_LINE: Final = 100  # characters; a number of seconds needs 30
LONGEST_S: Final = Decimal(31_536_000)  # a year, as of every length in the engine
LATEST_S: Final = Decimal(10**18)  # decimals of 28 digits hold nanoseconds up to here
NANOSECONDS: Final = 9  # digits
_FILES_KEPT: Final = 4  # levels of a study that name files, read once per cell else


class Recording(BaseModel):
    """A file of times, as a plan holds it.

    Attributes:
        path: absolute, on the controller.
        sha256: of the file.
        arrivals: how many times it holds.
        length_s: from the first to the last.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    sha256: str
    arrivals: int
    length_s: float


def recorded(path: Path) -> Recording:
    """Reads and checks a file.

    Raises:
        ValueError: it cannot be read, or some line is no time; with the line.
    """
    try:
        status = path.stat()
        return _recorded(path.resolve(), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error


@lru_cache(maxsize=_FILES_KEPT)
def _recorded(path: Path, _mtime_ns: int, _size: int) -> Recording:
    times, digest = _read(path)
    return Recording(path=str(path), sha256=digest, arrivals=len(times), length_s=times[-1] / 1e9)


def content(recording: Recording) -> bytes:
    """The file as the engine takes it: little-endian 64-bit nanoseconds since the first arrival.

    Raises:
        InputError: it is not what it was when the study was read.
    """
    hint = "restore the file, or start a new run"
    try:
        times, digest = _read(Path(recording.path))
    except (OSError, ValueError) as error:
        raise InputError([Problem(f"is no longer readable: {error}", recording.path)], hint=hint) from error
    if digest != recording.sha256:
        raise InputError([Problem("has changed since the study was read", recording.path)], hint=hint)
    if sys.byteorder == "big":
        times.byteswap()
    return times.tobytes()


def _read(path: Path) -> tuple[array[int], str]:
    """Nanoseconds since the first, and the file's SHA-256."""
    digest = hashlib.sha256()
    times: array[int] = array("q")
    first = before = None
    with path.open("rb") as lines:
        for number, time_s in _times(lines, digest, path=path):
            if before is not None and time_s < before:
                raise ValueError(f"{path}:{number}: expected times that do not decrease, found {time_s} after {before}")
            first, before = (time_s if first is None else first), time_s
            if time_s - first > LONGEST_S:
                raise ValueError(f"{path}:{number}: {time_s} is more than a year after the first, {first}")
            if len(times) == MOST:
                raise ValueError(f"{path}:{number}: more than {MOST} times")
            times.append(int((time_s - first).scaleb(NANOSECONDS)))
    if not times:
        raise ValueError(f"{path} has no times: expected one number of seconds per line")
    return times, digest.hexdigest()


def _times(lines: Any, digest: Any, *, path: Path) -> Iterator[tuple[int, Decimal]]:
    """Line numbers and seconds; empty lines and those that begin with `#` are passed over."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        digest.update(line)
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{path}:{number}: longer than {LONGEST_LINE} characters; expected a number of seconds")
        text = line.strip().decode("utf-8", "replace")
        if not text or text.startswith("#"):
            continue
        try:
            time_s = Decimal(text)
        except InvalidOperation:
            time_s = Decimal("NaN")
        if not (time_s.is_finite() and -LATEST_S < time_s < LATEST_S):
            raise ValueError(f"{path}:{number}: expected a number of seconds, found {text!r}")
        yield number, time_s


def _from_study(value: object, info: ValidationInfo) -> object:
    """A path becomes a recording, seen from the study file that names it."""
    if not isinstance(value, str):
        return value
    file_of = (info.context or {}).get(FILE_OF)
    beside = Path(file_of("arrivals", "replay", "file")).parent if file_of else Path()
    return recorded(beside / value)


RecordingFile = Annotated[
    Recording,
    BeforeValidator(_from_study),
    WithJsonSchema({"type": "string", "description": "File of times."}),
]
