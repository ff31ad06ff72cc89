"""A process of its own to judge in: what hangs or takes all memory ends it, and not the tests.

It reads frames (four bytes of length, then a target's name, a newline and content) and answers each with a line.
"""

from __future__ import annotations

import json
import os
import resource
import select
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final, Self

from support.fuzzing.judging import Target, Verdict, judge

LENGTH: Final = struct.Struct(">I")
HANG_S: Final = 20.0  # of a processor, of which one read takes a second at most, and to start a few
ASLEEP: Final = 15  # times as long by the clock on the wall, for what waits for ever: a busy machine is slow
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
ADDRESSES: Final = 8 << 30  # libraries map far more than they use; this is where a machine would begin to swap
TESTS: Final = Path(__file__).parents[2]


class Child:
    """The process, started again after each input that ended it."""

    def __init__(self, hang_s: float = HANG_S) -> None:
        self._hang_s = hang_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

    def judge(self, name: str, content: bytes) -> Verdict:
        """As `judging.judge`, and `hang` or `death` of an input that the process does not survive."""
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        frame = name.encode() + b"\n" + content
        process.stdin.write(LENGTH.pack(len(frame)) + frame)
        process.stdin.flush()
        if not self._answers(process):
            self._end()
            return Verdict("hang", f"no answer within {self._hang_s:g} s of a processor", self._hang_s)
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self._end()
            return Verdict("death", f"the process ended with {code}")
        return Verdict(**json.loads(line))

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.stdout is not None
        until_s = time.monotonic() + ASLEEP * self._hang_s
        busy_s = _busy_s(process.pid) + self._hang_s
        while not select.select([process.stdout], [], [], self._hang_s / 10)[0]:
            if _busy_s(process.pid) > busy_s or time.monotonic() > until_s:
                return False
        return True

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        argv = [sys.executable, "-m", "support.fuzzing.child"]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _busy_s(pid: int) -> float:
    """Processor time of a process that has not been waited for."""
    ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / TICKS_PER_S


def answer(targets: dict[str, Target]) -> None:
    """Judges frame after frame until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    source, target = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whatever libraries print is no answer
    while head := source.read(LENGTH.size):
        name, _, content = source.read(*LENGTH.unpack(head)).partition(b"\n")
        with tempfile.TemporaryDirectory() as directory:
            verdict = judge(targets[name.decode()], content, Path(directory))
        target.write(json.dumps(asdict(verdict)) + "\n")
        target.flush()


if __name__ == "__main__":
    from support.fuzzing.targets import TARGETS

    answer(TARGETS)
