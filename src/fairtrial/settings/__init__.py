"""Settings: one file per kind; each turns a value and a place's facts into an effect, purely.

A settings module exports `KIND` (its name and the type of its value) and `effect(value, facts)`. It must not touch a
place: the run applies the effect through the agent, which reads back, records and undoes. Among the facts is
`trial_directory`: the trial's own at the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Protocol

from fairtrial.settings import (
    affinity,
    drop_caches,
    environment,
    governor,
    io_limit,
    locks,
    lru_gen,
    memory,
    numa,
    purge_governor,
    storage,
    swap,
    swappiness,
    sysctl,
    sysfs,
    transparent_huge_pages,
)
from fairtrial.settings.steps import groups
from fairtrial.settings.steps.effect import Effect, merged
from fairtrial.study.catalogue import Kind

__all__ = ["SETTINGS", "Effect", "Setting", "effects"]


class Setting(Protocol):
    """What a settings module offers."""

    KIND: Kind

    def effect(self, value: Any, facts: Mapping[str, Any]) -> Effect:
        """What `value` means at a place with these facts."""


SETTINGS: Mapping[str, Setting] = {
    module.KIND.name: module
    for module in (
        affinity,
        drop_caches,
        environment,
        governor,
        io_limit,
        locks,
        lru_gen,
        memory,
        numa,
        purge_governor,
        storage,
        swap,
        swappiness,
        sysctl,
        sysfs,
        transparent_huge_pages,
    )
}
ANY_TRIAL = PurePosixPath("/var/lib/fairtrial/work/trial")  # for who asks what settings need, before there are trials


def effects(
    settings: Mapping[str, Any], facts: Mapping[str, Any], *, trial_directory: PurePosixPath = ANY_TRIAL
) -> Effect:
    """The effect of all of a trial's settings, in the order of the registry.

    Args:
        settings: values by kind.
        facts: the place's.
        trial_directory: of the trial at the place; names of what settings make there are derived from it.

    Raises:
        PlaceError: the place cannot do what a setting asks, by its facts.
    """
    facts = {**facts, "trial_directory": str(trial_directory)}
    return groups.made(
        merged(setting.effect(settings[name], facts) for name, setting in SETTINGS.items() if name in settings), facts
    )
