"""What a reader may do with foreign bytes: give a result, or the project's own error; and in how much time and memory.

An error names what is wrong in a few lines that any terminal can print, and what to do. Time is the processor's, since
a busy machine must not fail a reader; memory is what the process had resident at most beyond what it had before.
"""

from __future__ import annotations

import contextlib
import io
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial.errors import FairtrialError

MOST_S: Final = 1.0
MOST_BYTES: Final = 256 << 20
MOST_WORDS: Final = 64 << 10  # characters of an error: a megabyte of somebody else's bytes hides what is wrong
STATUS: Final = Path("/proc/self/status")
CLEAR: Final = Path("/proc/self/clear_refs")
RESET_PEAK: Final = "5"  # proc(5)

Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes:
        name: of it, and of its corpus.
        kind: what its input is made of, which decides how it is mutated: see `mutating`.
        seeds: real inputs.
        read: reads content, with an empty directory for files.
        most_s: processor seconds of one read; more than `MOST_S` only where a read does more than read.
        refusals: errors of its own that its callers turn into the project's.
    """

    name: str
    kind: str
    seeds: Callable[[], Sequence[bytes]]
    read: Read
    most_s: float = MOST_S
    refusals: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What came of one input; `fault` is empty where that is as it should be, else a word and what shows it."""

    fault: str = ""
    what: str = ""
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """What tells faults apart: the kind and, of a crash, where it was."""
        return self.fault, self.what.rpartition('  File "')[2].partition("\n")[0]


def judge(target: Target, content: bytes, directory: Path) -> Verdict:
    """Reads content by a target and says what was wrong with that."""
    before = _reset_peak()
    began = time.process_time()
    fault = what = ""
    try:
        with _quiet():
            target.read(content, directory)
    except FairtrialError as error:
        fault, what = _worded(str(error), error.hint)
    except target.refusals:
        pass
    except MemoryError:
        fault, what = "memory", traceback.format_exc()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        fault, what = "crash", traceback.format_exc()
    seconds = time.process_time() - began
    grown = _resident("VmHWM") - before
    if not fault and seconds > target.most_s:
        fault, what = "slow", f"{seconds:.1f} s of a processor"
    if not fault and grown > MOST_BYTES:
        fault, what = "memory", f"{grown >> 20} MiB"
    return Verdict(fault, what, seconds)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what a reader prints, and with warnings as outside of tests, where they are no errors."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def _worded(message: str, hint: str) -> tuple[str, str]:
    if not message.strip() or not hint.strip():
        return "wording", "an error without a message or a hint"
    if len(message) > MOST_WORDS:
        return "wording", f"an error of {len(message)} characters: {message[:200]}"
    try:
        (message + hint).encode()
    except UnicodeEncodeError as error:
        return "wording", f"an error that cannot be printed: {error}"
    return "", ""


def _reset_peak() -> int:
    CLEAR.write_text(RESET_PEAK, encoding="ascii")
    return _resident("VmRSS")


def _resident(name: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) << 10
