"""Driving the installed command as a user does, at a place of its own."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.forking import Started, forked
from support.kin import by_age

FAIRTRIAL = Path(sys.executable).with_name("fairtrial")
COMPILERS = re.compile(r"(.*-)?(c\+\+|g\+\+|c89|c99|cc|gcc|cpp|clang|ld|as|tcc)(-\d.*)?|cargo|rustc|rustup|maturin|zig")
PATIENCE_S = 300.0  # a server's installation, a load and the settling of a busy disk
CEILINGS = "CEILINGS_OF_TESTS"  # the variable that names their directory
SHORT_S, LONG_S = 0.02, 0.2  # between two looks: 4 times as long as one took, but not so long that what ends is missed

ALIKE = """\
study: alike
workload: {command: {run: echo took = 100, metrics: {took: {regex: 'took = ([0-9.]+)'}}}}
factors:
  version:
    v0: {workload: {command: {label: v0}}}
    v1: {workload: {command: {label: v1}}}
    v2: {workload: {command: {label: v2}}}
arm: version
metrics: {primary: took}
"""  # a study whose versions differ in nothing


@dataclass(frozen=True)
class Desk:
    """A directory with studies and runs, and a state directory that no other test shares."""

    directory: Path
    state: Path
    started: list[Started] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Of every command started here."""
        return {**os.environ, "FAIRTRIAL_STATE_DIRECTORY": str(self.state), "COLUMNS": "120", "NO_COLOR": "1"}

    def study(self, text: str, name: str = "study.yaml") -> Path:
        """Writes a study file."""
        path = self.directory / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def fairtrial(
        self, *arguments: str | Path, code: int | None = 0, drawn: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end and checks its exit code (None: any); a run draws no figures unless asked to."""
        done = forked(
            _words(arguments, drawn=drawn),
            cwd=self.directory,
            environment=self.environment,
            program=FAIRTRIAL,
        )
        if code is not None:
            assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str | Path) -> Started:
        """Starts a command and leaves it running, in a session of its own; a run draws no figures."""
        begun = Started(_words(arguments), cwd=self.directory, environment=self.environment, program=FAIRTRIAL)
        self.started.append(begun)
        return begun

    @property
    def runs(self) -> list[Path]:
        """Records written here, oldest first."""
        return sorted((self.directory / "runs").glob("*"))

    @property
    def run(self) -> Path:
        """The one record."""
        (found,) = self.runs
        return found

    def processes(self) -> dict[int, str]:
        """Every process that belongs to this desk, by its environment: process id → command line."""
        found: dict[int, str] = {}
        wanted = f"FAIRTRIAL_STATE_DIRECTORY={self.state}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def agent_pid(self) -> int:
        """The one agent of this desk; not a child of it that has not become its program yet and bears its words."""
        (pid,) = self.agent_pids()
        return pid

    def agent_pids(self) -> list[int]:
        """That agent, or none."""
        alike = [pid for pid, command in self.processes().items() if command.endswith("fairtrial-agent serve ")]
        return by_age(alike)[:1]


def _words(arguments: Sequence[str | Path], *, drawn: bool = False) -> list[str]:
    plain = ["--plain"] if arguments[:1] == ("run",) and not drawn else []
    return [*map(str, arguments), *plain]


def desk_in(directory: str) -> Desk:
    """One that `desk` has made, for a process that was told where."""
    return Desk(directory=Path(directory), state=Path(directory) / "state")


@contextmanager
def desk() -> Iterator[Desk]:
    """A desk below /tmp: short enough for Unix sockets, and readable by unprivileged servers."""
    directory = Path(tempfile.mkdtemp(prefix="ft-"))
    directory.chmod(0o755)
    state = directory / "state"
    state.mkdir(mode=0o755)
    kept = ceilings()
    for known in kept.glob("*.json"):
        shutil.copy(known, state)
    here = Desk(directory=directory, state=state)
    try:
        yield here
    finally:
        for begun in here.started:  # by a test that failed: else its open files are the next test's failure
            with begun:
                begun.kill()
        for found in state.glob("ceiling-*.json"):
            if not (kept / found.name).exists():
                shutil.copy(found, whole := kept / directory.name)
                whole.rename(kept / found.name)
        shutil.rmtree(directory, ignore_errors=True)


def ceilings() -> Path:
    """Where this process and those it starts keep what the load engine can do at most here.

    Two processors are busy for a second to find it out.
    """
    if CEILINGS not in os.environ:
        os.environ[CEILINGS] = tempfile.mkdtemp(prefix="ceilings-")
        atexit.register(shutil.rmtree, os.environ[CEILINGS], ignore_errors=True)
    return Path(os.environ[CEILINGS])


def eventually(condition: Callable[[], object], what: str) -> None:
    """Waits until a condition holds, asking less often what is dear; fails with `what` after a generous while."""
    began_s = time.monotonic()
    deadline = began_s + PATIENCE_S
    while not condition():
        asked_s = time.monotonic()
        assert asked_s < deadline, what
        time.sleep(min(max(SHORT_S, 4 * (asked_s - began_s)), LONG_S))
        began_s = time.monotonic()


def without_compilers(directory: Path) -> str:
    """A PATH for a user who has no compiler: links in this directory to Debian's other programs."""
    directory.mkdir()
    for program in [*Path("/usr/bin").iterdir(), *Path("/usr/sbin").iterdir()]:
        link = directory / program.name
        if not COMPILERS.fullmatch(program.name) and not link.is_symlink():
            link.symlink_to(program)
    return str(directory)


def shell_program(path: Path, script: str) -> Path:
    """A file that a shell runs; where its directory is not there, that is made, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
