"""Two checkouts of a repository, `base` and `head`: built, and made the arms of a comparison or of a study.

A checkout is a directory, which is built in place, or a commit, whose build is kept (`fairtrial.bisect.commits`) with
that of the other: one of another day may be by another compiler, and has what programs left that ran in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial import study as language
from fairtrial.bisect import commits, compiling
from fairtrial.bisect.versions import COMMIT, IN_BLOCKS, placeholder
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, PlaceError, Problem

LABELS: Final = ("base", "head")
_HINT: Final = "see --base, --head and --build in the command's `--help`"


@dataclass(frozen=True)
class Checkouts:
    """What `--base`, `--head` and `--build` say.

    Attributes:
        base, head: a directory, or a commit of the repository of the current directory.
        build: shell command that builds a checkout, run in it; empty: nothing has to be built.
    """

    base: str
    head: str
    build: str = ""

    def built(self, *, resume: bool = False) -> tuple[str, str]:
        """Builds both, unless both are commits whose builds, made together, have stayed; their directories.

        With `resume`, a commit's build stays whatever became of the other's: trials have run on it.

        Raises:
            InputError: one of them is neither a directory nor a commit, both are the same, or one cannot be built.
            PlaceError: there is no git.
        """
        base, head = _Checkout.of("base", self.base), _Checkout.of("head", self.head)
        if base.identity == head.identity:
            problem = Problem(f"`{self.base}` and `{self.head}` are the same checkout", "--base, --head")
            raise InputError([problem], hint="name two: the change, and what it is compared with")
        together = f"{base.identity}\0{head.identity}"
        first, second = (_Build(each, self.build, together) for each in (base, head))
        lock = hashlib.sha256(f"{together}\0{self.build}".encode()).hexdigest()[:12]
        with commits.alone(commits.builds_directory() / f"pair-{lock}.lock"):  # who waited for it finds both
            if not (resume or (first.has_stayed() and second.has_stayed())):
                first.forget()
                second.forget()
            return first.made(), second.made()

    def levels(self, study: Path, *, size: str | None, overrides: Sequence[str], resume: bool = False) -> list[str]:
        """Assignments (`--set`) that make both the arm of a study, whose base trial names `{build}`; builds them.

        Raises:
            InputError: the study is wrong or names no `{build}`, trials do not run here, or as `built`.
        """
        arm = [f"arm={COMMIT}", "also_compare=[]"]
        given = [*overrides, *arm, IN_BLOCKS, *placeholder()]  # the placeholder is a setting, which a duet refuses
        loaded = language.load(study, catalogue=catalogue(), size=size, overrides=given)
        merged = compiling.read(language.dump(loaded))
        compiling.require_built(merged, study)
        levels = zip(LABELS, self.built(resume=resume), strict=True)
        return [
            *arm,
            *(f"factors.{COMMIT}.{label}={json.dumps(compiling.built(merged, where))}" for label, where in levels),
        ]


def named(base: str, head: str, *, build: str) -> Checkouts | None:
    """The checkouts that options name; None if they name none.

    Raises:
        InputError: one of the two is missing.
    """
    if not base and not head and not build:
        return None
    if not base or not head:
        missing = "--base" if not base else "--head"
        raise InputError(
            [Problem("required beside the other of --base and --head, and by --build", missing)], hint=_HINT
        )
    return Checkouts(base, head, build)


@dataclass(frozen=True)
class _Checkout:
    """One of the two.

    Attributes:
        label: `base` or `head`.
        identity: of a commit its hash, of a directory its path.
        repository: of a commit; None for a directory.
    """

    label: str
    identity: str
    repository: Path | None = None

    @classmethod
    def of(cls, label: str, name: str) -> _Checkout:
        """What a name means.

        Raises:
            InputError: neither a directory nor a commit, or both.
        """
        is_directory = Path(name).is_dir()
        try:
            repository = commits.top_level(Path())
            commit = commits.hash_of(repository, name)
        except (InputError, PlaceError) as error:
            if is_directory:
                return cls(label, str(Path(name).resolve()))
            if isinstance(error, PlaceError):
                raise
            said = error.problems[0].message
            message = f"`{name}` is neither a directory nor a commit of the repository here: {said}"
            hint = "check its spelling, or fetch more history: a shallow clone has few commits"
            raise InputError([Problem(message, f"--{label}")], hint=hint) from error
        if is_directory:  # a branch `docs`, or a directory `HEAD` that a change brings
            problem = Problem(f"`{name}` is a directory and a commit", f"--{label}")
            raise InputError([problem], hint=f"write ./{name} for the directory, a hash for the commit")
        return cls(label, commit, repository)


@dataclass(frozen=True)
class _Build:
    """What a command makes of one of the two.

    Attributes:
        together: both.
    """

    checkout: _Checkout
    command: str
    together: str

    @property
    def _kept(self) -> commits.Builds | None:
        """Of a commit; None for a directory."""
        repository = self.checkout.repository
        if repository is None:
            return None
        return commits.Builds(repository, self.command or ":", commits.builds_directory() / "logs", self.together)

    def has_stayed(self) -> bool:
        """Whether nothing is to do. A directory is built each time."""
        return self._kept.is_built(self.checkout.identity) if self._kept else not self.command

    def forget(self) -> None:
        """It is built anew."""
        if self._kept:
            self._kept.forget(self.checkout.identity)

    def made(self) -> str:
        """The checkout's directory, with what the command builds there.

        Raises:
            InputError: it cannot be built.
        """
        identity, label = self.checkout.identity, self.checkout.label
        log = commits.builds_directory() / "logs" / f"{identity if self._kept else label}.log"
        try:
            if self._kept:
                self._kept.build(identity)
            elif self.command:
                commits.run_build(self.command, Path(identity), log)
        except commits.UnbuildableError as error:
            problem = Problem(f"cannot build {label}: {error}", "--build")
            raise InputError([problem], hint=f"the build's whole output is in {log}") from error
        return str(self._kept.directory(identity)) if self._kept else identity
