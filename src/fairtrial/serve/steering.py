"""What a page with `--control` may do: steer the run that it shows, and start a study of one given folder.

A page starts nothing but `fairtrial run` on a file of that folder, as its plan was shown; it has no other command.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from fairtrial.errors import FairtrialError, InputError, PlaceError, Problem
from fairtrial.record.files import MERGED
from fairtrial.run import steering
from fairtrial.serve.rendering import environment
from fairtrial.words import first_problem

SEE_OTHER: Final = 303
MOST_BYTES: Final = 4096  # of a form: one word and a number
MOST_PRINTED: Final = 1 << 20
STARTED_S: Final = 20.0  # within which a run has a record, or has said why not
POLL_S: Final = 0.1
RECORD: Final = "record: "  # how `fairtrial run` says where its record is
PROGRAM: Final = (sys.executable, "-P", "-c", "from fairtrial.cli import main; main()")


@dataclass(frozen=True)
class Planned:
    """A study as it is now.

    Attributes:
        plan: as `fairtrial plan` prints it.
        merged: the study with all that it includes, as a record of its run keeps it.
    """

    plan: str
    merged: str

    @property
    def digest(self) -> str:
        """Of what would run."""
        return digest_of(self.merged.encode())


@dataclass
class Control:
    """What the page may do beyond showing.

    Attributes:
        studies: folder whose studies may be started; None if none may.
        planned: the plan of a study.
        children: runs that were started here and had not ended when the last one was.
    """

    studies: Path | None = None
    planned: Callable[[Path], Planned] = lambda path: Planned(str(path), str(path))
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1), init=False)
    children: list[subprocess.Popen[bytes]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        # Niceness belongs to a thread: what this one starts is not as nice as the page is going to be.
        self._starter.submit(os.getpriority, os.PRIO_PROCESS, 0).result()

    def names(self) -> list[str]:
        """Of the studies that may be started: regular files right in the folder."""
        if self.studies is None:
            return []
        return sorted(path.name for path in self.studies.glob("*.yaml") if stat.S_ISREG(path.lstat().st_mode))

    def study(self, name: str) -> tuple[Path, Planned]:
        """A study's file and its plan. Slow, for a thread.

        Raises:
            InputError: it is none of those that may be started, or it is wrong.
        """
        if self.studies is None or name not in self.names():
            raise InputError(
                [Problem("not a study of the folder that this page may start from", file=name)],
                hint="choose one that the page lists",
            )
        path = self.studies / name
        return path, self.planned(path)

    async def start(self, study: Path, *, runs: Path, digest: str) -> str:
        """Starts a run in a session of its own, which outlives the page; the name of its record.

        Raises:
            InputError: the run read a study of another digest; it is stopped.
            PlaceError: it ended, or waited, without a record; with what it printed.
        """
        self.children = [child for child in self.children if child.poll() is None]
        printed: IO[bytes]
        with tempfile.TemporaryFile() as printed:
            child = await asyncio.wrap_future(self._starter.submit(_started, study, runs, printed))
            self.children.append(child)
            threading.Thread(target=child.wait, daemon=True).start()  # a zombie would look as if it still ran
            deadline = time.monotonic() + STARTED_S
            while time.monotonic() < deadline:
                ended = child.poll() is not None
                said = _read(printed)
                for line in said.splitlines(keepends=True):
                    if line.startswith(RECORD) and line.endswith("\n"):
                        run = Path(line.removeprefix(RECORD).strip())
                        if digest_of((run / MERGED).read_bytes()) != digest:
                            child.send_signal(signal.SIGTERM)
                            raise _changed(study.name)
                        return run.name
                if ended:
                    raise PlaceError(
                        f"the run did not start: {said.strip()}", hint="fix what it says, and start it again"
                    )
                await asyncio.sleep(POLL_S)
        raise PlaceError("the run has no record yet", hint="look at the list of runs in a while")


def _changed(name: str) -> InputError:
    return InputError(
        [Problem("the study, or a file that it includes, has changed since its plan was shown", file=name)],
        hint="look at its plan again",
    )


def digest_of(merged: bytes) -> str:
    """Of a study with all that it includes."""
    return hashlib.sha256(merged).hexdigest()


def _started(study: Path, runs: Path, printed: IO[bytes]) -> subprocess.Popen[bytes]:
    command = [*PROGRAM, "run", str(study.resolve()), "--output", str(runs.resolve())]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
    )


def _read(printed: IO[bytes]) -> str:
    """Without moving the position, which the child shares."""
    return os.pread(printed.fileno(), MOST_PRINTED, 0).decode(errors="replace")


class Steering:
    """The addresses of a page that may do something. A request from another page never gets here: see the guard."""

    def __init__(self, runs: Path, control: Control, *, assets: Mapping[str, str], root: str = "") -> None:
        self.runs, self.control, self._root = runs, control, root
        self._shared = {"assets": assets, "scripts": ("page.js",), "control": control}

    def routes(self, name_of: Callable[[Request], str]) -> list[Route]:
        """All of them; `name_of` tells the run that an address names."""

        async def steer(request: Request) -> Response:
            name = name_of(request)
            await asyncio.to_thread(steering.ask, self.runs / name, _request(await _form(request)))
            return RedirectResponse(f"{self._root}/runs/{name}", status_code=SEE_OTHER)

        return [
            Route("/runs/{name}/steer", steer, methods=["POST"]),
            Route("/start", self.choose),
            Route("/start", self.start, methods=["POST"]),
        ]

    async def choose(self, request: Request) -> Response:
        """The studies that may be started, and the plan of the one that was chosen."""
        name = request.query_params.get("study", "")
        plan, digest, problem = "", "", ""
        if name:
            try:
                _path, planned = await asyncio.to_thread(self.control.study, name)
                plan, digest = planned.plan, planned.digest
            except FairtrialError as error:
                problem = f"{error}\n{error.hint}"
        html = (
            environment(self._root)
            .get_template("start.html.jinja")
            .render(self._shared, names=self.control.names(), name=name, plan=plan, digest=digest, problem=problem)
        )
        return HTMLResponse(html)

    async def start(self, request: Request) -> Response:
        """Starts the study whose plan was shown."""
        form = await _form(request)
        path, planned = await asyncio.to_thread(self.control.study, form.get("study", ""))
        if planned.digest != form.get("sha256"):
            raise _changed(path.name)
        name = await self.control.start(path, runs=self.runs, digest=planned.digest)
        return RedirectResponse(f"{self._root}/runs/{name}", status_code=SEE_OTHER)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form.

    Raises:
        InputError: it is not one.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise InputError([Problem("the form is too long", file=request.url.path)], hint="use the page's own form")
    return {name: values[-1] for name, values in parse_qs(body.decode("ascii", errors="replace")).items()}


def _request(form: dict[str, str]) -> steering.Request:
    given: dict[str, Any] = {"act": form.get("act", "")}
    if given["act"] == "extend":
        given["blocks"] = form.get("blocks", "")
    try:
        return steering.Request.model_validate(given)
    except ValidationError as error:
        raise InputError([Problem(first_problem(error), file="the form")], hint="use the page's own buttons") from error
