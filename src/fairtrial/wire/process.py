"""A process at a place."""

from __future__ import annotations

import contextlib
import signal as signals
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from fairtrial.errors import StreamLostError, StuckError
from fairtrial.protocol import generated as wire

LINES_KEPT = 100_000  # of a process that nobody listens to: beyond this the oldest are dropped
CHARACTERS_KEPT = 16 << 20  # of all these lines
CHARACTERS_HEARD = 1 << 30  # of lines that somebody listens to, who may keep them: a month of a line every second
LINE_CHARACTERS = 64  # what keeping a line takes beside its own
POLL_S = 0.02
STUCK = "look at the place's disks, network file systems and kernel log; when it has ended, start again or `--resume`"

OnLine = Callable[[str, str], None]


class SendSignal(Protocol):
    """How a signal gets to a process."""

    def __call__(self, process: int, number: int, /, *, group: bool = False) -> None:
        """Sends a signal to a process by the agent's number for it."""


def how(exited: wire.Exited) -> str:
    """How a process ended, in words: `exit code 3`, `signal SIGKILL`."""
    if exited.signal is None:
        return f"exit code {exited.code}"
    try:
        return f"signal {signals.Signals(exited.signal).name}"
    except ValueError:  # those of real time have no names
        return f"signal {exited.signal}"


class Process:
    """A process the agent started.

    Attributes:
        name: what messages call it.
        pid: the kernel's process id at the place.
        number: the agent's number for it.
        started_ns: when it was started, on the place's monotonic clock.
        was_killed: whether `stop` killed it at its limit; a SIGKILL before that is somebody else's.
    """

    def __init__(self, name: str, on_line: OnLine | None, *, send_signal: SendSignal, kill_s: float) -> None:
        self.name = name
        self.pid = 0
        self.number = 0
        self.started_ns = 0
        self.was_killed = False
        self._send_signal = send_signal
        self._kill_s = kill_s
        self._on_line = on_line
        self._changed = threading.Condition()
        self._lines: deque[tuple[str, str]] = deque()
        self._characters = 0  # of `_lines`, or heard
        self._exited: wire.Exited | None = None
        self._loss: StreamLostError | None = None

    @property
    def exited(self) -> wire.Exited | None:
        """How it ended; None while it runs (or the stream was lost)."""
        return self._exited

    def wait(self, timeout_s: float | None = None) -> wire.Exited:
        """Waits for its end; all its lines have come by then.

        Raises:
            TimeoutError: it still runs.
            StreamLostError: the stream ended first.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._exited is not None or self._loss is not None, timeout_s)
            if self._exited is not None:
                return self._exited
            if self._loss is not None:
                raise StreamLostError(str(self._loss), hint=self._loss.hint)
        raise TimeoutError(f"{self.name} is still running after {timeout_s:g} s")

    def wait_until(self, said: threading.Event) -> None:
        """Waits until it has said something, or has ended.

        Raises:
            StreamLostError: the stream ended first.
        """
        while not said.wait(POLL_S):
            with contextlib.suppress(TimeoutError):
                self.wait(0)
                return

    def lines(self) -> Iterator[tuple[str, str]]:
        """Its lines as (`stdout` or `stderr`, text), as they come, until it ends. Not together with `on_line`.

        Raises:
            StreamLostError: the stream ended first.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._exited is not None or self._loss is not None)
                if self._lines:
                    line = self._oldest()
                elif self._exited is not None:
                    return
                else:
                    raise StreamLostError(str(self._loss), hint=self._loss.hint if self._loss else "")
            yield line

    def signal(self, number: int, *, group: bool = False) -> None:
        """Sends a signal to it, or to its process group; one that has ended gets none."""
        self._send_signal(self.number, number, group=group)

    def stop(self, limit_s: float, *, group: bool = False) -> wire.Exited:
        """Asks it, or its process group, to end by one SIGTERM; after `limit_s` the whole group is killed.

        A second SIGTERM means "now" to some programs, which then do not write what they should.

        Raises:
            StuckError: it does not even end when killed.
        """
        if self._exited is None:
            self.signal(signals.SIGTERM, group=group)
            try:
                return self.wait(limit_s)
            except TimeoutError:
                self.was_killed = True
                self.signal(signals.SIGKILL, group=True)
        try:
            return self.wait(self._kill_s)
        except TimeoutError:
            message = f"{self.name} (process {self.pid}) has not ended {self._kill_s:g} s after it was killed"
            raise StuckError(message, hint=STUCK) from None

    def started(self, spawned: wire.Spawned) -> None:
        """The stream's thread: it runs."""
        self.pid, self.number, self.started_ns = spawned.pid, spawned.process, spawned.time_ns

    def wrote(self, line: wire.OutputLine) -> None:
        """The stream's thread: it wrote a line.

        Raises:
            ValueError: it writes without end, and somebody listens.
        """
        if self._on_line is not None:
            self._characters += len(line.line) + LINE_CHARACTERS
            if self._characters > CHARACTERS_HEARD:
                raise ValueError(f"{self.name} wrote more than {CHARACTERS_HEARD:,} characters")
            self._on_line(line.stream, line.line)
            return
        with self._changed:
            self._lines.append((line.stream, line.line))
            self._characters += len(line.line)
            while len(self._lines) > LINES_KEPT or self._characters > CHARACTERS_KEPT:
                self._oldest()
            self._changed.notify_all()

    def _oldest(self) -> tuple[str, str]:
        line = self._lines.popleft()
        self._characters -= len(line[1])
        return line

    def ended(self, exited: wire.Exited) -> None:
        """The stream's thread: it ended."""
        with self._changed:
            self._exited = exited
            self._changed.notify_all()

    def lost(self, error: StreamLostError) -> None:
        """The stream's thread: nothing more will be heard of it."""
        with self._changed:
            self._loss = error
            self._changed.notify_all()
