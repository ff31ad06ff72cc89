"""From a study and what is asked of it to the versions of a history: a factor's levels, builds of a server, commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final

from fairtrial import servers
from fairtrial import study as language
from fairtrial.bisect import commits, compiling
from fairtrial.bisect.deciding import MOST_BLOCKS
from fairtrial.bisect.models import Bisection, Version
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study import Study, workload_place
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tree.problems import did_you_mean, listed

SERVER: Final = "server"
COMMIT: Final = "commit"
PLACEHOLDER: Final = "BISECT_LEVEL"  # a variable that tells two levels apart until the real ones are known
IN_BLOCKS: Final = "trials.order=randomised_blocks"  # whatever the study's order: a query is a block of two trials
_HINT: Final = "see `fairtrial bisect --help`"


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        study: its file.
        over: the factor; `commit` with commits.
        first, last: names of the ends (`--from`, `--to`); empty with commits.
        commits: `good..bad`; empty without.
        build: command line that builds a commit.
        repository: where the commits are; this directory where it is None.
        at: `FACTOR=LEVEL` of other factors; their first level where it is not named.
        blocks: the most before the confirmation; `MOST_BLOCKS` where it is None.
    """

    study: Path
    over: str = ""
    first: str = ""
    last: str = ""
    commits: str = ""
    build: str = ""
    repository: Path | None = None
    at: Sequence[str] = ()
    size: str | None = None
    overrides: Sequence[str] = ()
    blocks: int | None = None


def asked(request: Request) -> tuple[Bisection, dict[str, Any]]:
    """The question, and the study complete, as plain values.

    Raises:
        InputError: the study is wrong, or it and the options do not fit together.
    """
    _check(request)
    over = COMMIT if request.commits else request.over
    study = _loaded(request, over)
    merged = compiling.read(language.dump(study))
    merged["factors"] |= {  # values as the levels that they stand for
        each.name: {name: workload_place.back(plain(tree)) for name, tree in each.levels}
        for each in study.factors
        if each.numeric is not None
    }
    merged["expect"] = _expected(study)
    versions = _commits(request, merged) if request.commits else _levels(request, study, merged)
    metric = study.file.metrics.primary[0]
    definition = study.definitions[metric]
    question = Bisection(
        fairtrial_version=version_of("fairtrial"),
        study=study.name,
        over=over,
        versions=versions,
        pinned=_pinned(request, study, over),
        metric=metric,
        unit=definition.unit,
        better=definition.better,
        seed=study.trials.seed,
        margin=study.trials.margin,
        resolution=definition.resolution,
        total=definition.total,
        blocks=request.blocks or MOST_BLOCKS,
        alpha=(1 - study.trials.confidence) / len(study.file.metrics.primary),
        build=request.build,
        repository=str(_repository(request).resolve()) if request.commits else "",
    )
    return question, merged


def _expected(study: Study) -> dict[str, dict[str, str]]:
    """What the study expects, by levels as their factors name them, however they are written."""
    found: dict[str, dict[str, str]] = {}
    for each in study.expectations:
        found.setdefault(f"{each.factor}.{each.level}", {})[each.metric] = each.text
    return found


def _repository(request: Request) -> Path:
    return Path() if request.repository is None else request.repository


def _check(request: Request) -> None:
    if request.commits:
        if not request.build:
            raise _wrong("--commits needs a command that builds a commit", "--build", "for example --build 'make -j2'")
        if request.over or request.first or request.last:
            raise _wrong("--commits names the versions itself", "--over, --from, --to", "leave these out")
    elif not (request.over and request.first and request.last):
        raise _wrong("expected --over, --from and --to, or --commits", "bisect", "for example --over server")


def _loaded(request: Request, over: str) -> Study:
    """The study; where it has no such factor, with one that stands for it while the study is checked."""
    as_written = [*request.overrides, f"arm={over}", "also_compare=[]", IN_BLOCKS]
    if not request.commits:
        try:
            return _load(request, as_written)
        except InputError as error:
            if over != SERVER:
                raise _unsearchable(request, over, error) from None
    return _load(request, [*as_written, *placeholder(over)])


def placeholder(over: str = COMMIT) -> list[str]:
    """Two levels that any trial can have."""
    return [
        f"factors.{over}.{name}={{settings: {{environment: {{{PLACEHOLDER}: {name}}}}}}}"
        for name in ("before", "after")
    ]


def name_of(study: Path) -> str:
    """A study's name, whether it has a factor to compare or not.

    Raises:
        InputError: it is wrong.
    """
    try:
        return language.load(study, catalogue=catalogue()).name
    except InputError:
        overrides = [f"arm={COMMIT}", IN_BLOCKS, *placeholder()]
        return language.load(study, catalogue=catalogue(), overrides=overrides).name


def _unsearchable(request: Request, over: str, error: InputError) -> InputError:
    """Why a study cannot be bisected over a factor: it has no such factor, or is wrong itself or with it as the arm."""
    study = _load(request, [*request.overrides, f"arm={COMMIT}", "also_compare=[]", IN_BLOCKS, *placeholder()])
    levels = {factor.name: factor.level_names for factor in study.factors if factor.name != COMMIT}
    if over not in levels:
        message = f"unknown factor `{over}`; expected one of {listed([*levels, SERVER])}"
        return _wrong(message, "--over", did_you_mean(over, levels))
    if len(levels[over]) > 1:
        return error
    return _wrong(f"factor `{over}` has only one level", "--over", "a history needs two at least")


def _load(request: Request, overrides: Sequence[str]) -> Study:
    try:
        study = language.load(request.study, catalogue=catalogue(), size=request.size, overrides=overrides)
    except InputError as error:
        if any(each.field.partition(".")[0] == "builds" for each in error.problems):
            raise _linked(request) from error
        raise
    if study.file.builds is not None:
        raise _linked(request)
    return study


def _linked(request: Request) -> InputError:
    return _wrong(
        "`builds` links the programs of the study's own arms, and each query has two others",
        str(request.study),
        "leave `builds` out",
    )


def _levels(request: Request, study: Study, merged: Mapping[str, Any]) -> list[Version]:
    """The levels between the two ends, in the order written, or, of a server, by version."""
    own = merged["factors"][request.over]
    if PLACEHOLDER in str(own):
        system = next(iter(study.base.tree("system").entries))
        own = {
            build.version: {"system": {system: {"version": build.version}}}
            for build in servers.builds()
            if build.system == system
        }
    names = list(own)
    numbers = next((each.numeric for each in study.factors if each.name == request.over), None)
    ends = []
    for option, text in (("--from", request.first), ("--to", request.last)):
        name = text if numbers is None else numbers.level(text) or text
        if name not in names:
            message = f"`{name}` is not a level of {request.over}; expected one of {listed(names)}"
            raise _wrong(message, option, did_you_mean(name, names))
        ends.append(names.index(name))
    first, last = ends
    if first == last:
        raise _wrong("both ends are the same level", "--from, --to", "give two")
    chosen = names[first : last + 1] if first < last else names[last : first + 1][::-1]
    return [Version(name=name, overlay=own[name]) for name in chosen]


def _commits(request: Request, merged: Mapping[str, Any]) -> list[Version]:
    """The commits; each level's overlay follows from where it is built."""
    compiling.require_built(merged, request.study)
    found = commits.history(_repository(request), request.commits)
    return [Version(name=each.name, commit=each.hash, subject=each.subject) for each in found]


def _pinned(request: Request, study: Study, over: str) -> dict[str, str]:
    others = {factor.name: factor for factor in study.factors if factor.name != over}
    pinned = {name: factor.level_names[0] for name, factor in others.items()}
    for each in request.at:
        name, _, text = each.partition("=")
        level = others[name].level(text) if name in others else None
        if level is None:
            known = [f"{factor.name}={level}" for factor in others.values() for level in factor.level_names]
            message = f"`{name}={text}` is not a level of another factor; expected one of {listed(known)}"
            raise _wrong(message, "--at", did_you_mean(f"{name}={text}", known))
        pinned[name] = level
    return pinned


def _wrong(message: str, where: str, suggestion: str) -> InputError:
    return InputError([Problem(message, where, suggestion=suggestion)], hint=_HINT)
