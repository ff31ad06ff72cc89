"""Commands and questions as forks of a process that has imported everything: a fault costs no second of imports.

The process itself never uses a data frame, whose threads would not survive a fork.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from faulting import calls
from support.forking import be_fairtrial

PROGRAM = "/usr/bin/fairtrial"  # as its messages call it


class Command:
    """`fairtrial` with some arguments, in a session of its own; what it says goes to a file."""

    def __init__(
        self, arguments: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str], faults: Mapping[str, str]
    ) -> None:
        self.log = cwd / f"command-{time.monotonic_ns()}.log"
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _become(list(map(str, arguments)), cwd=cwd, environment=environment, faults=faults, log=self.log)
        self._ended = os.pidfd_open(self.pid)

    def wait(self, limit_s: float) -> int | None:
        """Its exit code, or minus a signal's number; None if it goes on."""
        if self.status is None and select.select([self._ended], [], [], max(0.0, limit_s))[0]:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._ended)
        return self.status

    def signal(self, number: int) -> None:
        """Sends one, if it goes on."""
        if self.status is None:
            signal.pidfd_send_signal(self._ended, number)

    @property
    def said(self) -> str:
        """What it has said."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""


def _become(
    arguments: list[str], *, cwd: Path, environment: Mapping[str, str], faults: Mapping[str, str], log: Path
) -> NoReturn:
    def set_up() -> None:
        os.setsid()
        os.chdir(cwd)
        os.environ.update(environment)
        nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
        for descriptor, standard in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(descriptor, standard)
        if "FAULT_CLOCK" not in faults:
            os.environ.pop("LD_PRELOAD", None)  # of what it starts; it has the library already
        if faults:
            calls.begin(faults)
        sys.argv = [PROGRAM, *arguments]

    be_fairtrial(set_up)


def asked(question: Callable[[], Any], *, limit_s: float = 120.0) -> Any:
    """What a fork of this process answers, as JSON; what it raises is an answer in words."""
    answer, written = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        try:
            said = json.dumps({"answer": question()})
        except BaseException:  # noqa: BLE001 - told by the answer
            said = json.dumps({"raised": traceback.format_exc()})
        with os.fdopen(written, "w") as file:
            file.write(said)
        os._exit(0)
    os.close(written)
    deadline, parts = time.monotonic() + limit_s, []
    while select.select([answer], [], [], max(0.0, deadline - time.monotonic()))[0] and (
        part := os.read(answer, 1 << 16)
    ):
        parts.append(part)
    os.close(answer)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    said = json.loads(b"".join(parts) or b'{"raised": "no answer in time"}')
    if "raised" in said:
        raise RuntimeError(said["raised"])
    return said["answer"]
