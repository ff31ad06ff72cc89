"""A search path among a trial's settings: it decides what runs, and the record names what is on the place's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.study import Study
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.tree.nodes import dotted
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.quantities import bare_program

FIELD: Final = ("settings", "environment", "PATH")
OF_ANYBODY: Final = ("command", "service")  # systems whose `run` is a command line of the study's
WHY: Final = "by it {} is found, and the record names the one on the place's own PATH"
HINT: Final = "give the program's full path in `run`"


def require_same(study: Study, resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> None:
    """Refuses arms with different search paths: they may run different programs under one hash.

    Raises:
        InputError: arms of a cell have.
    """
    problems = Problems()
    for arms in resolved.values():
        given = [_given(trial) for trial in arms.values() if _program(trial)]
        if len(set(given)) > 1:
            name = next(_program(trial) for trial in arms.values() if _given(trial) is not None and _program(trial))
            message = f"expected the same in every arm, found different ones: {WHY.format(f'`{name}`')}"
            problems.add(message, study.written.where("factors"), field=FIELD, suggestion=HINT)
    problems.raise_if_any()


def warnings(resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[str]:
    """One for each program that is found by a search path which all arms share."""
    trials = [trial for cell in resolved.values() for trial in cell.values()]
    names = dict.fromkeys(_program(trial) for trial in trials if _given(trial) is not None)
    return [f"{dotted(FIELD)}: {WHY.format(f'`{name}`')}; {HINT}" for name in names if name]


def _program(trial: ResolvedTrial) -> str:
    """The bare name that a trial's system is found by; empty if it has none."""
    parameters = trial.system.parameters
    run = parameters.get("run") if isinstance(parameters, dict) and trial.system.kind in OF_ANYBODY else None
    return bare_program(run) if isinstance(run, str) else ""


def _given(trial: ResolvedTrial) -> str | None:
    """The search path among a trial's settings; None if there is none."""
    environment = trial.settings.get("environment")
    path = environment.get("PATH") if isinstance(environment, dict) else None
    return path if isinstance(path, str) else None
