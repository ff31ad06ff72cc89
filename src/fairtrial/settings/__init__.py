"""Settings: one file per kind; each turns a value and a place's facts into an effect, purely.

A settings module exports `KIND` (its name and the type of its value) and `effect(value, facts)`. It must not touch a
place: the run applies the effect through the agent, which reads back, records and undoes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from fairtrial.settings import affinity, drop_caches, environment, sysctl, sysfs
from fairtrial.settings.effect import Effect, merged
from fairtrial.study.catalogue import Kind

__all__ = ["SETTINGS", "Effect", "Setting", "effects"]


class Setting(Protocol):
    """What a settings module offers."""

    KIND: Kind

    def effect(self, value: Any, facts: Mapping[str, Any]) -> Effect:
        """What `value` means at a place with these facts."""


SETTINGS: Mapping[str, Setting] = {
    module.KIND.name: module for module in (affinity, drop_caches, environment, sysctl, sysfs)
}


def effects(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> Effect:
    """The effect of all of a trial's settings, in the order of the registry."""
    return merged(setting.effect(settings[name], facts) for name, setting in SETTINGS.items() if name in settings)
