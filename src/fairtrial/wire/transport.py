"""Bytes to an agent and back, however they travel."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from fairtrial.wire.limits import Limits

READ_BYTES = 256 * 1024
KILL_S = 5.0
SAID_BYTES = 16 * 1024  # of what ssh or the agent said on standard error
MOST_SAID_BYTES = 1 << 20  # that lie on this machine's disk for it


class Transport(Protocol):
    """A stream of bytes. `close` may come from any thread and ends a `read` or `write` in another."""

    def read(self) -> bytes:
        """Waits for bytes; b"" at the end of the stream or after `close`."""

    def write(self, data: bytes) -> None:
        """Writes all of it.

        Raises:
            OSError: the other side is gone, or `close` was called.
        """

    def close(self) -> None:
        """Ends the stream; waits until the far side has given its place back, as far as that can be seen."""

    def said(self) -> str:
        """What the program that carries the stream said for people, if anything (ssh's own words)."""


class PipeTransport:
    """The standard input and output of a program: the agent itself, or ssh with an agent at its other end.

    Args:
        argv: the program.
        environment: variables that it gets beside this process's.
        limits: of the stream.
        is_agent: whether it is the agent, or may run it as its child: it undoes what it changed before it ends.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        is_agent: bool = False,
    ) -> None:
        self._limits = limits or Limits.from_environment()
        self._is_agent = is_agent
        self._heard = time.monotonic()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the program
        # A session of its own: Ctrl-C in a terminal is for the control plane, which then ends the stream in order.
        self._program = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **self._limits.environment(), **(environment or {})},
            start_new_session=True,
            bufsize=0,
        )
        if self._program.stdin is None or self._program.stdout is None:
            raise AssertionError("both were asked for")
        self._input, self._output = self._program.stdin, self._program.stdout
        os.set_blocking(self._input.fileno(), False)
        self._closed_read, self._closed_write = os.pipe()
        self._closed = False
        self._said = ""
        self._ahead = b""  # read, and not given out yet
        self._reading, self._writing, self._closing = threading.Lock(), threading.Lock(), threading.Lock()

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return self._program.pid

    def read(self) -> bytes:
        """Waits for bytes; b"" at the end of the stream or after `close`."""
        with self._reading:
            if self._closed:
                return b""
            if self._ahead:
                ahead, self._ahead = self._ahead, b""
                return ahead
            return self._read(None)

    def skip(self, mark: bytes, *, most_bytes: int, limit_s: float) -> None:
        """Skips what comes before a mark, and the mark, unless the stream ends first, which `read` then tells.

        Raises:
            TimeoutError: the mark does not come in time.
            ValueError: it is not among so many bytes.
        """
        deadline = time.monotonic() + limit_s
        with self._reading:
            came = b""
            while mark not in came:
                if len(came) > most_bytes:
                    raise ValueError(f"no mark within {most_bytes} bytes")
                if not (data := self._read(max(0.0, deadline - time.monotonic()))):
                    return
                came += data
            self._ahead = came.partition(mark)[2]

    def _read(self, limit_s: float | None) -> bytes:
        ready, _, _ = select.select([self._output.fileno(), self._closed_read], [], [], limit_s)
        if not ready:
            raise TimeoutError(f"nothing came within {limit_s:g} s")
        self._heard = time.monotonic()
        return b"" if self._closed_read in ready else os.read(self._output.fileno(), READ_BYTES)

    def write(self, data: bytes) -> None:
        """Writes all of it.

        Raises:
            OSError: the other side is gone, or `close` was called.
        """
        left = memoryview(data)
        with self._writing:
            self._forget_errors()
            while left:
                if self._closed or select.select([self._closed_read], [self._input.fileno()], [])[0]:
                    raise BrokenPipeError("the stream was closed")
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(self._input.fileno(), left) :]

    def _forget_errors(self) -> None:
        """All but the first of what was said: a host that says things without end fills no disk of this machine's.

        The program writes on where this leaves off, as both have one file open.
        """
        if not self._closed and os.fstat(self._errors.fileno()).st_size > MOST_SAID_BYTES:
            os.ftruncate(self._errors.fileno(), SAID_BYTES)
            os.lseek(self._errors.fileno(), SAID_BYTES, os.SEEK_SET)

    def close(self) -> None:
        """Closes the program's input and waits for its end; kills it if it hangs.

        An agent hangs only if it had been silent: one that was heard goes on undoing, and ends by itself.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            undoes = self._is_agent and time.monotonic() - self._heard < self._limits.silence_s
            os.write(self._closed_write, b"x")  # wakes a `read` or `write`, which give their locks back
            with self._writing:
                self._input.close()
            with self._reading:
                self._output.close()
            os.close(self._closed_read)
            os.close(self._closed_write)
        try:
            self._program.wait(self._limits.end_s)
        except subprocess.TimeoutExpired:
            if not undoes:
                self._kill()
        self._said = self.said()
        self._errors.close()

    def _kill(self) -> None:
        with contextlib.suppress(PermissionError):  # what runs as another user
            os.killpg(self._program.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel ends it once its I/O is over
            self._program.wait(KILL_S)

    def said(self) -> str:
        """What the program said on standard error."""
        if self._errors.closed:
            return self._said
        return os.pread(self._errors.fileno(), SAID_BYTES, 0).decode(errors="replace").strip()
