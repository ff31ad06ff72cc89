"""Settings applied at a real place by its agent, as a trial applies them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial import settings
from fairtrial.catalogue import catalogue
from fairtrial.protocol.generated import Step
from fairtrial.settings import Effect, TrialContext
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

PHASES = ("place", "before_server", "after_server", "before_ramp_up")


def validated(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values as a plan holds them."""
    adapters = {name: kind.parameters for name, kind in catalogue().settings.items()}
    return {
        name: adapters[name].dump_python(adapters[name].validate_python(value), mode="json")
        for name, value in given.items()
    }


def effect_of(facts: Facts, directory: Path | PurePosixPath, **given: Any) -> Effect:
    """What settings come to in a trial that has this directory."""
    return effect_for(TrialContext(PurePosixPath(directory)), facts, **given)


def effect_for(trial: TrialContext, facts: Facts, **given: Any) -> Effect:
    """What they come to in a trial whose load runs wherever it does."""
    return settings.effects(validated(given), facts, trial)


def phases_of(effect: Effect, directory: Path | PurePosixPath) -> list[tuple[PurePosixPath, list[Step]]]:
    """Steps in the order of a trial, phase by phase, each with the directory that has to be there before."""
    first = PurePosixPath(directory)
    needed = dict.fromkeys(PHASES, effect.data_directory or first / "data") | {PHASES[0]: first}
    return [(needed[phase], [step for when, step in effect.steps if when == phase]) for phase in PHASES]


def apply(place: OpenPlace, directory: Path | PurePosixPath, **given: Any) -> tuple[Effect, dict[str, str]]:
    """Applies settings in the order of a trial; returns the effect and what was read back, by the steps' names."""
    effect = effect_of(place.facts, directory, **given)
    read_back: dict[str, str] = {}
    made = None
    for needed, steps in phases_of(effect, directory):
        if needed != made:
            place.require(["mkdir", "-p", str(needed)], hint="is there room?")
            made = needed
        for step in steps:
            changed = place.agent.change(step)
            if changed.read_back is not None:
                read_back[step.name] = " ".join(changed.read_back.split())
    return effect, read_back


def ran(place: OpenPlace, argv: Sequence[str], *, groups: Sequence[str] = ()) -> tuple[int | None, int | None, str]:
    """Runs a program in control groups: its exit code, the signal that ended it, and what it said."""
    lines: list[str] = []
    process = place.agent.spawn("server", argv, groups=groups, on_line=lambda _stream, text: lines.append(text))
    exited = process.wait(place.limits.short_s)
    return exited.code, exited.signal, "\n".join(lines)


def seconds(told: str) -> float:
    """How long dd says it took."""
    (found,) = re.findall(r"([0-9.e-]+) s,", told)
    return float(found)
