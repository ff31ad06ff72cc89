"""A bad neighbour: runs a command, takes its processors for random spans and stops its process group now and then.

Processors are taken for up to --busy seconds by --spinners processes each, with pauses of up to the same length. The
command's process group is stopped (SIGSTOP) for up to --stop seconds, about once a minute; what the command starts in
sessions of its own, such as agents and servers, goes on. Spans are drawn from --seed. However this script ends, short
of SIGKILL, it continues the group; its exit code is the command's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Ends with its parent, even if that was killed.
SPINNER = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"


@dataclass
class Nuisance:
    """Something that begins and ends again and again.

    Attributes:
        spans: how long it is off, then how long it is on, and so on, seconds.
        due_s: when it changes next, on this process's clock.
    """

    spans: Iterator[float]
    is_on: bool = False
    due_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.due_s += next(self.spans)

    def change(self) -> bool:
        """Turns it on or off; whether it is on."""
        self.is_on = not self.is_on
        self.due_s = time.monotonic() + next(self.spans)
        return self.is_on


def spans(seed: str, *, pause_s: float, length_s: float) -> Iterator[float]:
    """Random pauses and lengths in turn, each between nothing and its limit; the same for the same seed."""
    draw = random.Random(seed)
    while True:
        yield draw.uniform(0, pause_s)
        yield draw.uniform(0, length_s)


class Companion:
    """The command, and what is done to it."""

    def __init__(self, command: Sequence[str], asked: argparse.Namespace) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDING, signal.SIGCHLD))
        self._spinners: list[subprocess.Popen[bytes]] = []
        self._per_processor: int = asked.spinners
        self._busy = Nuisance(spans(f"{asked.seed} busy", pause_s=asked.busy, length_s=asked.busy))
        self._stopped = Nuisance(spans(f"{asked.seed} stop", pause_s=asked.between, length_s=asked.stop))
        self.command = _started(command, process_group=0)

    def run(self) -> int:
        """Until the command ends; its exit code, or 128 and the signal that ended it."""
        try:
            while (code := self.command.poll()) is None:
                due_s = min(self._busy.due_s, self._stopped.due_s)
                heard = signal.sigtimedwait((*ENDING, signal.SIGCHLD), max(0.0, due_s - time.monotonic()))
                if heard is None:
                    self._change()
                elif heard.si_signo in ENDING:
                    self._to_group(signal.SIGCONT)
                    self._to_group(heard.si_signo)
            return code if code >= 0 else 128 - code
        finally:
            self._to_group(signal.SIGCONT)
            self._rest()

    def _change(self) -> None:
        now_s = time.monotonic()
        if self._stopped.due_s <= now_s:
            self._to_group(signal.SIGSTOP if self._stopped.change() else signal.SIGCONT)
        if self._busy.due_s <= now_s:
            if self._busy.change():
                count = self._per_processor * len(os.sched_getaffinity(0))
                self._spinners = [_started([sys.executable, "-c", SPINNER]) for _ in range(count)]
            else:
                self._rest()

    def _rest(self) -> None:
        for spinner in self._spinners:
            spinner.kill()
            spinner.wait()
        self._spinners = []

    def _to_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.command.pid, number)


def _started(command: Sequence[str], *, process_group: int | None = None) -> subprocess.Popen[bytes]:
    def listen() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ENDING, signal.SIGCHLD))

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        process_group=process_group,
        preexec_fn=listen,  # noqa: PLW1509 - no threads
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1", help="spans are drawn from it")
    parser.add_argument("--busy", type=float, default=30.0, help="longest span without processors, seconds")
    parser.add_argument("--stop", type=float, default=5.0, help="longest stop, seconds")
    parser.add_argument("--between", type=float, default=120.0, help="longest time between two stops, seconds")
    parser.add_argument("--spinners", type=int, default=2, help="processes that take each processor")
    parser.add_argument("command", nargs="+", help="behind --")
    asked = parser.parse_args()
    sys.exit(Companion(asked.command, asked).run())


if __name__ == "__main__":
    main()
