"""`swap`: swap space that the place has for the trial, in a file or in compressed memory (swapon(8), zram)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fairtrial.protocol.generated import Step
from fairtrial.settings.setting import Setting, shorthand
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.devices import MIB
from fairtrial.settings.steps.effect import Effect, Requirement, before_server
from fairtrial.settings.steps.groups import require_root
from fairtrial.settings.steps.shared import printed, program, shell
from fairtrial.study.tree.quantities import Bytes
from fairtrial.wire.facts import Facts

ZRAM = "/sys/class/zram-control/hot_add"
PRIORITY = "32767"  # the highest: swap that the place has already is not used before it

FILE = """
fallocate --length "$2" "$1"
chmod 600 "$1"
mkswap "$1" >/dev/null
"""
# The number is noted before the device holds anything: one that is lost in between takes no memory.
DEVICE = """
number=$(cat /sys/class/zram-control/hot_add)
ln -sfn "/dev/zram$number" "$1"
echo "$2" >"/sys/block/zram$number/disksize"
mkswap "$1" >/dev/null
"""
NO_DEVICE = """
[ -L "$1" ] || exit 0
device=$(readlink "$1")
number=${device#/dev/zram}
if [ -e "/sys/block/zram$number" ]; then echo "$number" >/sys/class/zram-control/hot_remove; fi
rm -f "$1"
"""
ON = 'swapon --priority "$2" "$1"'
# /proc/swaps has blanks in octal.
OFF = """
file=$(readlink -f "$1")
while read -r name _; do
    case "$(printf %b "$name")" in
    "$file") swapoff "$file" || exit 1 ;;
    "$file (deleted)") echo "$file was removed while it was in use as swap: only a reboot ends it" >&2; exit 1 ;;
    esac
done </proc/swaps
"""
# Undoing goes on after `swapoff` has failed: swap in a file that is gone has no name to end it by.
NO_FILE = """
file=$(readlink -f "$1") || exit 0
while read -r name _; do
    [ "$(printf %b "$name")" != "$file" ] || { echo "$file is still in use as swap" >&2; exit 1; }
done </proc/swaps
rm -f "$1"
"""
SHOW = """
file=$(readlink -f "$1")
while read -r name _ size _; do [ "$(printf %b "$name")" != "$file" ] || echo "$size"; done </proc/swaps
"""


class Swap(BaseModel):
    """A size alone is that of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: Bytes = Field(ge=MIB, multiple_of=MIB, description="In whole MiB; the first page is its header.")
    on: Literal["file", "zram"] = Field(
        "file", description="A file in the state directory, or memory in which pages are held compressed."
    )


class SwapSetting(Setting[Swap]):
    """Two steps: the space is made, and it is used."""

    name = "swap"
    summary = "Swap space that the place has for the trial, used before any that it has already."
    model = Annotated[Swap, BeforeValidator(shorthand("size"), json_schema_input_type=Swap | Bytes)]
    example = MappingProxyType({"size": "1GiB", "on": "zram"})
    privilege = "CAP_SYS_ADMIN, CAP_DAC_OVERRIDE"

    def disk_bytes(self) -> int:
        """The file's."""
        return self.value.size if self.value.on == "file" else 0

    def effect(self, facts: Facts, trial: TrialContext) -> Effect:
        """The steps, and what they need.

        Raises:
            PlaceError: the agent is not root.
        """
        require_root(self.name, facts)
        path, size = f"{trial.directory}/swap", self.value.size
        needs = [Requirement(self.name, "mkswap", "install util-linux there")]
        if self.value.on == "zram":
            needs.append(Requirement(self.name, ZRAM, "load zram there (`modprobe zram`), or take `on: file`"))
            made = program(shell(DEVICE, path, str(size)), name="swap.zram", undo=shell(NO_DEVICE, path))
        else:
            made = program(shell(FILE, path, str(size)), name="swap.file", undo=shell(NO_FILE, path))
        effect = before_server([made, _used(path, size, page=facts.page_bytes)])
        return Effect(steps=effect.steps, needs=tuple(needs))


def _used(path: str, size: int, *, page: int) -> Step:
    kibibytes = str((size - page) // 1024)  # /proc/swaps counts without the header
    return program(
        shell(ON, path, PRIORITY), name="swap", undo=shell(OFF, path), check=printed(shell(SHOW, path), kibibytes)
    )
