"""Commits of a git history, and their builds: each in a checkout of its own, kept by commit and command.

The user's repository is read only: a checkout is a clone that shares its objects (git-clone(1), --shared).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial import disks
from fairtrial.caching import cache_directory
from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.record.files import write_synced

LONGEST_BUILD_S: Final = 4 * 3600.0
_LAST_LINES, _MOST_CHARACTERS = 3, 300
# Of `git rev-parse --local-env-vars`, those that say which repository it is; its configuration stays.
_WHERE: Final = {
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
}


@dataclass(frozen=True)
class Commit:
    """A commit: its whole hash, a name as short as the repository allows, and the first line of its message."""

    hash: str
    name: str
    subject: str


class UnbuildableError(Exception):
    """The build command failed on a commit; the message says how."""


def history(repository: Path, span: str) -> list[Commit]:
    """Commits from `good` to `bad`, `good` first, along first parents.

    Args:
        repository: a directory in it.
        span: `good..bad`.

    Raises:
        InputError: not a span, or not one of this repository.
    """
    good, dots, bad = span.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise _wrong(f"expected GOOD..BAD, found `{span}`", "for example --commits v1.0..HEAD")
    first, last = (hash_of(repository, name) for name in (good, bad))
    if _git(repository, "merge-base", first, last).strip() != first:
        raise _wrong(f"{good} is not an ancestor of {bad}", f"begin at their merge base: `git merge-base {good} {bad}`")
    if first not in _git(repository, "rev-list", "--first-parent", last).split():
        said = f"{good} was merged into {bad}'s branch from another one: commits before the merge do not have it"
        raise _wrong(said, f"begin at a commit of `git log --first-parent {bad}`")
    form = ("log", "-z", "--format=%H%x00%h%x00%s")  # a subject may hold any character that ends lines
    told = _git(repository, *form, "--no-walk", first)
    told += _git(repository, *form, "--first-parent", "--reverse", f"{first}..{last}")
    parts = told.removesuffix("\0").split("\0")
    commits = [Commit(*parts[start : start + 3]) for start in range(0, len(parts), 3)]
    if len(commits) < 2:  # noqa: PLR2004 - two ends
        raise _wrong(f"no commit between {good} and {bad}", "give a good commit and a later bad one")
    return commits


def top_level(directory: Path) -> Path:
    """The working tree that a directory is in.

    Raises:
        InputError: it is in none.
    """
    return Path(_git(directory, "rev-parse", "--show-toplevel").strip())


def hash_of(repository: Path, name: str) -> str:
    """The hash of a commit.

    Raises:
        InputError: the repository has no such commit.
    """
    return _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()


@dataclass(frozen=True)
class Builds:
    """Builds of a repository's commits by one command.

    Attributes:
        repository: a directory in it.
        command: run by a shell in each checkout.
        logs: where what it prints is kept.
        together: what they are built together with, and kept apart from other builds for; empty for nothing.
    """

    repository: Path
    command: str
    logs: Path
    together: str = ""

    def directory(self, commit: str) -> Path:
        """Where a commit is built, and stays."""
        key = "\0".join(filter(None, (commit, self.command, self.together)))
        return builds_directory() / f"{commit[:12]}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"

    def is_built(self, commit: str) -> bool:
        """Whether it is, and has stayed."""
        directory = self.directory(commit)
        return directory.with_suffix(".json").exists() and directory.is_dir()

    def forget(self, commit: str) -> None:
        """It is built from a new checkout the next time."""
        self.directory(commit).with_suffix(".json").unlink(missing_ok=True)

    def build(self, commit: str) -> float:
        """Builds a commit unless it is built; the seconds that took, 0 if it was.

        Raises:
            UnbuildableError: the command failed, or took too long.
            PlaceError: the commit cannot be checked out.
        """
        directory = self.directory(commit)
        with alone(directory.with_suffix(".lock")):
            if self.is_built(commit):
                return 0.0
            began = time.monotonic()
            shutil.rmtree(directory, ignore_errors=True)
            top = _git(self.repository, "rev-parse", "--show-cdup").strip() or "."  # `clone` does not look upwards
            _git(self.repository, "clone", "--quiet", "--shared", "--no-checkout", top, str(directory))
            _git(directory, "checkout", "--quiet", "--detach", commit)
            run_build(self.command, directory, self.logs / f"{commit}.log")
            seconds = time.monotonic() - began
            disks.sync_around(directory)  # the mark is durable at once, and a power failure may not leave it alone
            told = {"commit": commit, "command": self.command, "seconds": seconds}
            write_synced(directory.with_suffix(".json"), json.dumps(told).encode() + b"\n")
            return seconds


def run_build(command: str, directory: Path, log: Path) -> None:
    """Runs a build command by a shell in a checkout; what it prints goes to `log`.

    Raises:
        UnbuildableError: it failed, or took too long.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=directory,
            env=_elsewhere(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(LONGEST_BUILD_S)
        except subprocess.TimeoutExpired as error:
            raise UnbuildableError(f"`{command}` ran longer than {LONGEST_BUILD_S:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):  # what it left running would load the trials
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code != 0:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LAST_LINES:]
        words = " / ".join(said)[-_MOST_CHARACTERS:]
        raise UnbuildableError(f"`{command}` ended with code {code}" + (f": {words}" if words else ""))


def builds_directory() -> Path:
    """Where builds stay, with locks and logs beside them."""
    return cache_directory() / "builds"


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """One process at a time: another bisection may want the same commit."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _elsewhere() -> dict[str, str]:
    """The environment without what git tells hooks and aliases: by `GIT_DIR`, a checkout would move the user's HEAD."""
    return {name: value for name, value in os.environ.items() if name not in _WHERE}


def _git(repository: Path, *words: str) -> str:
    try:
        command = ["git", "-C", str(repository), *words]
        done = subprocess.run(
            command, check=False, capture_output=True, encoding="utf-8", errors="replace", env=_elsewhere()
        )
    except FileNotFoundError as error:
        raise PlaceError("git is not on PATH", hint="install git") from error
    if done.returncode != 0:
        said = done.stderr.strip() or f"code {done.returncode}"
        raise _wrong(f"`git {' '.join(words[:1])}` in {repository} failed: {said}", f"`{words[-1]}` must exist there")
    return done.stdout


def _wrong(message: str, suggestion: str) -> InputError:
    return InputError([Problem(message, "--commits", suggestion=suggestion)], hint="see `fairtrial bisect --help`")
