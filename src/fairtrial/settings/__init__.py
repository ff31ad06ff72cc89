"""Settings: one class per kind (see `setting.Setting`), and others' by entry points of the group `fairtrial.settings`.

Each turns a value, a place's facts and a trial into an effect, purely.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.plugins import Kinds, chosen
from fairtrial.settings.affinity import AffinitySetting
from fairtrial.settings.conflicts import HINT, conflicts
from fairtrial.settings.drop_caches import DropCachesSetting
from fairtrial.settings.environment import EnvironmentSetting
from fairtrial.settings.governor import GovernorSetting
from fairtrial.settings.io_limit import IoLimitSetting
from fairtrial.settings.locks import LocksSetting
from fairtrial.settings.lru_gen import LruGenSetting
from fairtrial.settings.memory import MemorySetting
from fairtrial.settings.numa import NumaSetting
from fairtrial.settings.purge_governor import PurgeGovernorSetting
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps import groups
from fairtrial.settings.steps.context import ANY_TRIAL, TrialContext
from fairtrial.settings.steps.effect import Effect, merged
from fairtrial.settings.steps.imagined import IMAGINED
from fairtrial.settings.storage import StorageSetting
from fairtrial.settings.swap import SwapSetting
from fairtrial.settings.swappiness import SwappinessSetting
from fairtrial.settings.sysctl import SysctlSetting
from fairtrial.settings.sysfs import SysfsSetting
from fairtrial.settings.transparent_huge_pages import TransparentHugePagesSetting
from fairtrial.study.catalogue import Kind
from fairtrial.study.resolved import Section
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.facts import Facts

__all__ = ["ANY_TRIAL", "SETTINGS", "Effect", "Setting", "TrialContext", "check", "effects", "kind_of", "setting_of"]

_OWN = (  # in the order in which effects are applied; those of other packages follow
    AffinitySetting,
    DropCachesSetting,
    EnvironmentSetting,
    GovernorSetting,
    IoLimitSetting,
    LocksSetting,
    LruGenSetting,
    MemorySetting,
    NumaSetting,
    PurgeGovernorSetting,
    StorageSetting,
    SwapSetting,
    SwappinessSetting,
    SysctlSetting,
    SysfsSetting,
    TransparentHugePagesSetting,
)
SETTINGS: Mapping[str, type[Setting[Any]]] = Kinds(_OWN, base=Setting, group="fairtrial.settings")


@cache
def setting_of(section: Section) -> Setting[Any]:
    """The setting of a kind and a value as in a resolved trial, validated once.

    Raises:
        RecordError: this version has no such kind, or different values of it.
    """
    return chosen(SETTINGS, section, what="setting")


def kind_of(setting: type[Setting[Any]]) -> Kind:
    """A setting as the study language sees it."""
    example, adapter = setting.example, TypeAdapter(setting.model)
    return Kind(
        name=setting.name,
        summary=setting.summary,
        parameters=adapter,
        disk_bytes=lambda value: setting(adapter.validate_python(value)).disk_bytes(),
        example=dict(example) if isinstance(example, Mapping) else example,
        systems=setting.systems,
    )


def effects(settings: Mapping[str, JsonValue], facts: Facts, trial: TrialContext) -> Effect:
    """The effect of all of a trial's settings, in the order of the registry.

    Args:
        settings: values by kind, as a resolved trial holds them.
        facts: the place's.
        trial: that they are set for.

    Raises:
        PlaceError: the place cannot do what a setting asks, by its facts, two settings contradict each other, or two
            processor sets are given to one process.
        RecordError: this version has no such kind, or different values of it.
    """
    by_kind = {name: setting_of(Section({name: value})) for name, value in settings.items()}
    own = {name: by_kind[name].effect(facts, trial) for name in SETTINGS if name in by_kind}
    for conflict in conflicts(own):
        raise PlaceError(conflict.message, hint=HINT, field=f"settings.{conflict.name}")
    effect = groups.made(merged(own.values()), facts, trial)
    sets = {effect.server_processors, effect.client_processors} - {None}
    if trial.load == "within" and len(sets) > 1:
        raise PlaceError(
            "settings.affinity names two processor sets, but system and load are one process here",
            hint="give `server` or `client`, not both",
            field="settings.affinity",
        )
    return effect


def check(settings: Mapping[str, JsonValue], branch: Branch, problems: Problems) -> None:
    """Notes settings that contradict each other wherever they are set; what hangs on a place is left to `effects`.

    Args:
        settings: values by kind, as a resolved trial holds them.
        branch: where they stand in the study.
        problems: takes them.
    """
    own = {name: _imagined(Section({name: settings[name]})) for name in SETTINGS if name in settings}
    for conflict in conflicts({name: effect for name, effect in own.items() if effect is not None}):
        entries = branch.below(conflict.name).node.entries
        keys = [conflict.name, *([conflict.key] if conflict.key in entries else [])]
        at = branch.node if len(keys) == 1 else branch.below(conflict.name).node
        problems.add(conflict.message, at.where(keys[-1]), field=branch.field(*keys), suggestion=HINT)


@cache
def _imagined(section: Section) -> Effect | None:
    """The effect of one setting at a place that can do anything; None if even that cannot."""
    try:
        return setting_of(section).effect(IMAGINED, ANY_TRIAL)
    except PlaceError:
        return None
