"""Runs a room's tests on one mutant after another, in a clone that nobody else uses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mutation.rooms import steps
from mutation.sites import applied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutation.rooms import Room, Step
    from mutation.sites import Mutant

KILLED, SURVIVED, TIMED_OUT, NOT_COMPILED, GONE = "killed", "survived", "timed out", "does not compile", "gone"
COUNTED = (KILLED, SURVIVED, TIMED_OUT)
SLOWER = 4  # a mutant may take so many times the time of the crate's tests without one, and `longest_s` more
LONGEST_S = 3600.0  # of a compilation, of a room's tests that all end in time
BUILT = "src/fairtrial/locks/libfairtrial_locks.so"  # of scripts/build-locks; git does not know it
# A mutant may signal the wrong processes or leave some behind: it sees only its own, which end with it.
ALONE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
BY_TIME = "from pytest-timeout"
FAILED = re.compile(r"^(?:(?:FAILED|ERROR) (?P<python>\S.*?)(?: - .*)?|---- (?P<rust>\S+) stdout ----)$", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """What became of a step: `outcome` is one of the above, `failed` names tests."""

    outcome: str
    seconds: float
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What became of a mutant; `by` is the first test that failed."""

    room: str
    language: str
    mutant: Mutant
    line: int
    outcome: str
    seconds: float
    by: str = ""


class Scratch:
    """A clone of a commit, in which mutants are put."""

    def __init__(self, origin: Path, commit: str, root: Path) -> None:
        self.origin = origin
        self.root = root
        self._usual: dict[Step, Ran] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        if not root.exists():
            _git("clone", "--quiet", "--shared", "--no-checkout", str(origin), str(root))
        _git("-C", str(root), "fetch", "--quiet", str(origin), commit)
        _git("-C", str(root), "checkout", "--quiet", "--force", "--detach", commit)

    def stop(self) -> None:
        """Ends what runs; whoever waits for it gets an error instead of an outcome."""
        self._stopped = True
        if self._process:
            _kill(self._process)

    def refresh(self) -> None:
        """Brings what is made and not in git to the origin's state."""
        if (self.origin / ".venv").is_dir() and not (self.root / ".venv").exists():
            (self.root / ".venv").symlink_to(self.origin / ".venv")
        if (self.origin / BUILT).exists():
            shutil.copy2(self.origin / BUILT, self.root / BUILT)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """With the mutant in its file."""
        path = self.root / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(applied(mutant, source) or source, encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")

    def usual(self, step: Step) -> Ran:
        """Without a mutant, once: how long it takes and what fails even so."""
        if step not in self._usual:
            ran = self._usual[step] = self.run(step, limit_s=LONGEST_S)
            if ran.outcome != SURVIVED and not ran.failed:
                raise RuntimeError(f"without a mutant: {ran.outcome}: {' '.join(step.run)}")
            if ran.failed:
                print(f"left out, failed without a mutant: {' '.join(ran.failed)}", flush=True)
        return self._usual[step]

    def run(self, step: Step, *, limit_s: float, skipped: tuple[str, ...] = ()) -> Ran:
        """Compiles if the step does, then tests."""
        started = time.monotonic()
        if step.build and self._status(step.build, LONGEST_S)[0] != 0:
            return Ran(NOT_COMPILED, time.monotonic() - started)
        tested = time.monotonic()
        skips = tuple(word for name in skipped for word in (step.skip, name))
        status, output = self._status((*step.run, *skips), limit_s)
        seconds = time.monotonic() - tested
        if status is None:
            return Ran(TIMED_OUT, seconds)
        failed = tuple(match["python"] or match["rust"] for match in FAILED.finditer(output))
        outcome = SURVIVED if status == 0 else TIMED_OUT if BY_TIME in output else KILLED
        return Ran(outcome, seconds, failed)

    def _status(self, command: tuple[str, ...], limit_s: float) -> tuple[int | None, str]:
        """Exit status, None after the limit, and what was printed."""
        with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as own:
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.root / "src"),
                "PYTHONDONTWRITEBYTECODE": "1",  # a mutant of the same second and size would go unnoticed
                "CARGO_PROFILE_DEV_DEBUG": "0",  # nobody reads the backtraces, and linking takes half the time
                "TMPDIR": own,
            }
            output = Path(own) / "output"
            with output.open("wb") as sink:
                process = self._process = subprocess.Popen(
                    (*_alone(), *command),
                    cwd=self.root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    start_new_session=True,
                )
                if self._stopped:  # while it started, when there was no process to end yet
                    _kill(process)
                try:
                    status: int | None = process.wait(limit_s)
                except subprocess.TimeoutExpired:
                    status = None
                finally:
                    _kill(process)
                    process.wait()
            if self._stopped:
                raise RuntimeError("stopped")
            return status, output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With its group: what it started and did not wait for is gone, too."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@cache
def _alone() -> tuple[str, ...]:
    """Only root may, and not in every container."""
    return ALONE if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0 else ()


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


class Tests:
    """A room's tests in a scratch."""

    def __init__(self, scratch: Scratch, room: Room, longest_s: float) -> None:
        self.scratch = scratch
        self.room = room
        self.longest_s = longest_s
        self.left_out: tuple[str, ...] = ()
        scratch.refresh()

    def result(self, mutant: Mutant, line: int) -> Result:
        """Runs the steps until one fails; a test that fails without the mutant, too, is left out from then on."""
        started = time.monotonic()
        while True:
            step, ran = self._first_failure(mutant)
            first = next(iter(ran.failed), "")
            if "::" not in first or not step.one:
                break
            if self.scratch.run(replace(step, run=(*step.one, first)), limit_s=LONGEST_S).outcome == SURVIVED:
                break
            print(f"left out, failed without a mutant: {first}", flush=True)
            self.left_out += (first,)
        seconds = round(time.monotonic() - started, 1)
        return Result(self.room.name, self.room.language, mutant, line, ran.outcome, seconds, first)

    def _first_failure(self, mutant: Mutant) -> tuple[Step, Ran]:
        """Without the mutant first where one test alone is not cheap to repeat."""
        every = steps(self.scratch.root, self.room, mutant, longest_s=self.longest_s)
        step, ran = every[0], Ran(SURVIVED, 0.0)
        for step in every:
            without = Ran(SURVIVED, LONGEST_S / SLOWER) if step.one else self.scratch.usual(step)
            limit_s = self.longest_s + SLOWER * without.seconds
            with self.scratch.mutated(mutant):
                ran = self.scratch.run(step, limit_s=limit_s, skipped=without.failed + self.left_out)
            if ran.outcome != SURVIVED:
                break
        return step, ran


def tried(results: Iterable[Result], *, least: int) -> Iterator[Result]:
    """Results until `least` of them count."""
    counted = 0
    for result in results:
        yield result
        counted += result.outcome in COUNTED
        if counted == least:
            return
