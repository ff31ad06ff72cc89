"""A program that is run to its end within a time limit, and what it has started, which ends with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

KILL_S: Final = 5.0  # the kernel ends it once its I/O is over; what runs as another user may not be killed at all


def finished(argv: Sequence[str], data: bytes = b"", *, limit_s: float) -> subprocess.CompletedProcess[bytes]:
    """Runs a program, which reads `data`, in a session of its own.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it was killed, with all of its process group.
    """
    pipe = subprocess.PIPE
    program = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        stdout, stderr = program.communicate(data, limit_s)
    except BaseException:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(KILL_S)
        for stream in filter(None, (program.stdin, program.stdout, program.stderr)):
            with contextlib.suppress(OSError):
                stream.close()
        raise
    return subprocess.CompletedProcess(argv, program.returncode, stdout, stderr)
