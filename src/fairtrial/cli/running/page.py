"""`fairtrial run --page`: the page's process beside the run, and what it cost the run."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.record.events import PageServed
from fairtrial.record.models import Plan
from fairtrial.run.processes import ticks
from fairtrial.settings.affinity import Affinity, processors
from fairtrial.study.resolved import ResolvedTrial, Section

PROGRAM: Final = (sys.executable, "-c", "from fairtrial.serve.companion import main; main()")
NEEDED: Final = ("starlette", "uvicorn", "jinja2")
STARTED_S: Final = 30.0


def require() -> None:
    """Raises PlaceError if the page's packages are not installed: before anything starts."""
    for name in NEEDED:
        if util.find_spec(name) is None:
            raise PlaceError(
                f"the page needs the package {name}", hint="install it with: pip install 'fairtrial[page]'"
            )


@dataclass(frozen=True)
class Page:
    """A page's process.

    Attributes:
        address: with the token.
        shared: whether it runs on processors that trials may use.
        began_s: when it was there, on the monotonic clock.
        began_ticks: of processor time that it had taken by then, before any trial.
    """

    process: subprocess.Popen[bytes]
    address: str
    shared: bool
    began_s: float
    began_ticks: int

    @classmethod
    def started(cls, run: Path, plan: Plan, *, hosts: Collection[Section] = ()) -> Page:
        """Starts one in a session of its own: it outlives the run, however that ends.

        Args:
            run: the record's directory.
            plan: its plan.
            hosts: places of a farm, each of which takes the place of the trials' own.

        Raises:
            PlaceError: it does not start.
        """
        own, shared = _processors(plan, os.sched_getaffinity(0), hosts=hosts)
        command = [*PROGRAM, str(run.resolve()), ",".join(map(str, own))]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with process.stdout as printed:
            is_there, _, _ = select.select([printed], [], [], STARTED_S)
            line = printed.readline() if is_there else b""
        if not line.endswith(b"\n"):
            process.kill()
            process.wait()
            raise PlaceError("the page did not start", hint="run without --page, and look with `fairtrial serve`")
        return cls(process, line.decode().strip(), shared, time.monotonic(), ticks(process.pid))

    def served(self) -> PageServed | None:
        """What it has cost until now; None if that can no longer be seen."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            taken = ticks(self.process.pid) - self.began_ticks
            return PageServed(
                processor_s=taken / os.sysconf("SC_CLK_TCK"),
                elapsed_s=round(time.monotonic() - self.began_s, 3),
                shared=self.shared,
            )
        return None


def _processors(plan: Plan, here: set[int], *, hosts: Collection[Section] = ()) -> tuple[list[int], bool]:
    """What the page may use of this machine, none for all; and whether trials may use it as well."""
    trials = [
        trial.model_copy(update={"place": place})
        for arms in plan.resolved.values()
        for trial in arms.values()
        for place in hosts or (trial.place,)
    ]
    used = set().union(*(_used(trial, here) for trial in trials))
    free = here - used
    return (sorted(free) if used else []), not free


def _used(trial: ResolvedTrial, here: set[int]) -> set[int]:
    """Processors of this machine that a trial may use; all of them, unless it says which."""
    if all(place.kind == "ssh" for place in (trial.place, *trial.clients)):
        return set()
    given = trial.settings.get("affinity")
    if trial.place.kind != "local" or trial.clients or given is None:
        return here
    affinity = Affinity.model_validate(given)
    if affinity.server is None or affinity.client is None:
        return here
    return {*processors(affinity.server), *processors(affinity.client)}
