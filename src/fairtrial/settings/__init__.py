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
from fairtrial.protocol.generated import WriteAction
from fairtrial.settings.affinity import AffinitySetting
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
from fairtrial.settings.storage import StorageSetting
from fairtrial.settings.swap import SwapSetting
from fairtrial.settings.swappiness import SwappinessSetting
from fairtrial.settings.sysctl import SysctlSetting
from fairtrial.settings.sysfs import SysfsSetting
from fairtrial.settings.transparent_huge_pages import TransparentHugePagesSetting
from fairtrial.study.catalogue import Kind
from fairtrial.study.resolved import Section
from fairtrial.wire.facts import Facts

__all__ = ["ANY_TRIAL", "SETTINGS", "Effect", "Setting", "TrialContext", "effects", "kind_of", "setting_of"]

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
BY_FILE = ("sysctl", "sysfs")  # whose keys name files, in more than one spelling
VM = "/proc/sys/vm/"
# Writing one file of a pair zeroes the other (Documentation/admin-guide/sysctl/vm.rst).
COUPLED = {
    f"{VM}dirty_ratio": f"{VM}dirty_bytes",
    f"{VM}dirty_background_ratio": f"{VM}dirty_background_bytes",
    f"{VM}overcommit_ratio": f"{VM}overcommit_kbytes",
}
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
    example = setting.example
    return Kind(
        name=setting.name,
        summary=setting.summary,
        parameters=TypeAdapter(setting.model),
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
        PlaceError: the place cannot do what a setting asks, by its facts.
        RecordError: this version has no such kind, or different values of it.
    """
    by_kind = {name: setting_of(Section({name: value})) for name, value in settings.items()}
    own = {name: by_kind[name].effect(facts, trial) for name in SETTINGS if name in by_kind}
    _require_one_writer(own)
    return groups.made(merged(own.values()), facts, trial)


def _require_one_writer(own: Mapping[str, Effect]) -> None:
    """Every file is written by one setting: of two, the later would win, and both would have been read back."""
    writers: dict[str, tuple[str, str]] = {}
    for name, effect in own.items():
        for _, step in effect.steps:
            if not isinstance(step.action, WriteAction) or step.check is None:
                continue
            path = step.action.path
            file = COUPLED.get(path, path)
            if file in writers and (writers[file][0] != name or name in BY_FILE):
                before, other = writers[file]
                what = f"both write {path}" if other == path else f"write {other} and {path}, which undo each other"
                raise PlaceError(f"settings.{before} and settings.{name} {what}", hint="leave one of the two out")
            writers[file] = name, path
