"""Settings that contradict each other: of two that write one file, the later would win, and both be read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fairtrial.protocol.generated import WriteAction
from fairtrial.settings.steps.effect import Effect

BY_FILE: Final = frozenset({"sysctl", "sysfs"})  # whose keys name files, in more than one spelling
PRELOADED: Final = "LD_PRELOAD"
VM: Final = "/proc/sys/vm/"
# Writing one file of a pair zeroes the other (Documentation/admin-guide/sysctl/vm.rst).
COUPLED: Final = {
    f"{VM}dirty_ratio": f"{VM}dirty_bytes",
    f"{VM}dirty_background_ratio": f"{VM}dirty_background_bytes",
    f"{VM}overcommit_ratio": f"{VM}overcommit_kbytes",
}
HINT: Final = "leave one of the two out"


@dataclass(frozen=True)
class Conflict:
    """Two settings of which one undoes the other, or two entries of one.

    Attributes:
        name: of the later setting.
        key: of the entry, if its keys name files; else empty.
        message: which two, and what they both do.
    """

    name: str
    key: str
    message: str


def conflicts(own: Mapping[str, Effect]) -> Iterator[Conflict]:
    """Those among the effects of a trial's settings, by kind, in the order in which they are applied."""
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
                yield Conflict(name, step.name if name in BY_FILE else "", f"{_both(before, name)} {what}")
            writers[file] = name, path
    preloading = [name for name, effect in own.items() if PRELOADED in effect.environment]
    for before, name in pairwise(preloading):
        yield Conflict(name, "", f"{_both(before, name)} both set {PRELOADED}")


def _both(one: str, other: str) -> str:
    return f"settings.{one} and settings.{other}" if one != other else f"two entries of settings.{one}"
