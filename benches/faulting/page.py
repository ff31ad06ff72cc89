"""`fairtrial serve` beside a run, and somebody who looks at it: each a process that a fault can end or stop."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from http.client import HTTPException
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

from faulting.origin import Command
from faulting.stands import Stand

STARTS_S, ANSWERS_S = 30.0, 30.0
ADDRESS = re.compile(r"^page: (\S+)$", re.MULTILINE)


class Page:
    """`fairtrial serve` of a stand's runs. `visitor`: a process that asks for all of it, again and again."""

    def __init__(self, here: Stand) -> None:
        self.runs = here.output / "runs"
        self.runs.mkdir()
        words = ["serve", self.runs, "--no-browser"]
        self.command = Command(words, cwd=here.directory, environment=here.environment, faults={})
        deadline = time.monotonic() + STARTS_S
        while not (found := ADDRESS.search(self.command.said)):
            if self.command.wait(0.02) is not None or time.monotonic() > deadline:
                self.command.signal(signal.SIGKILL)
                raise RuntimeError(f"no page: {self.command.said}")
        self.address = found[1]
        self.visitor = os.fork()
        if self.visitor == 0:
            try:
                _look_on(self.address, self.runs)
            finally:
                os._exit(1)

    @property
    def pids(self) -> dict[str, int]:
        """Processes that faults are done to."""
        return {"serve": self.command.pid, "visitor": self.visitor}

    def answers(self) -> bool:
        """Whether it shows the list of runs."""
        with contextlib.suppress(OSError, HTTPException):
            return _read(_browser(), self.address).startswith(b"<!doctype html>")
        return False

    def end(self) -> None:
        """Ends both."""
        self.command.signal(signal.SIGKILL)
        self.command.wait(STARTS_S)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.visitor, signal.SIGKILL)
        os.waitpid(self.visitor, 0)


def _browser() -> OpenerDirector:
    return build_opener(HTTPCookieProcessor(CookieJar()))


def _read(browser: OpenerDirector, address: str, most: int = -1) -> bytes:
    with browser.open(address, timeout=ANSWERS_S) as answer:
        return bytes(answer.read(most))


def _look_on(address: str, runs: Path) -> None:
    """The list, each run's page, and the beginning of what is new of it, which is cut off."""
    browser, top = _browser(), address.partition("?")[0]
    while True:
        with contextlib.suppress(OSError, HTTPException):
            _read(browser, address)
            for run in runs.iterdir():
                _read(browser, f"{top}runs/{run.name}")
                _read(browser, f"{top}runs/{run.name}/events", 1)
        time.sleep(0.02)
