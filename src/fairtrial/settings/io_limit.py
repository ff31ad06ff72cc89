"""`io_limit`: how fast the server may read and write the device that holds its data (control groups).

Sources: Documentation/admin-guide/cgroup-v2.rst, "IO"; Documentation/admin-guide/cgroup-v1/blkio-controller.rst.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial.protocol.generated import Step
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, GroupLimit, Requirement
from fairtrial.settings.steps.groups import controller
from fairtrial.settings.steps.shared import printed, program, shell
from fairtrial.study.tree.quantities import Bytes, WholeRate
from fairtrial.wire.facts import Facts

# By field: its key in io.max, its file in version 1.
RATES = {
    "read_bytes_per_s": ("rbps", "read_bps"),
    "write_bytes_per_s": ("wbps", "write_bps"),
    "reads_per_s": ("riops", "read_iops"),
    "writes_per_s": ("wiops", "write_iops"),
}

# The kernel limits whole devices only. A file system without one (tmpfs, overlay, btrfs) has number 0 as major.
DEVICE = """
device=$(findmnt -n -o MAJ:MIN -T "$1" | tr -d ' ')
if [ ! -e "/sys/dev/block/$device" ]; then
    echo "$1 lies on $(findmnt -n -o FSTYPE -T "$1"), which has no block device that could be limited" >&2
    exit 1
fi
if [ -e "/sys/dev/block/$device/partition" ]; then device=$(cat "/sys/dev/block/$device/../dev"); fi
"""
SET = DEVICE + 'echo "$device $3" > "$2"'
SHOW = DEVICE + 'sed -n "s/^$device //p" "$2"'


class IoLimit(BaseModel):
    """Rates of the server; one left out is not limited."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read_bytes_per_s: Bytes | None = Field(None, gt=0, description="Bytes read.")
    write_bytes_per_s: Bytes | None = Field(None, gt=0, description="Bytes written.")
    reads_per_s: WholeRate | None = Field(None, description="Requests that read, a whole number per second.")
    writes_per_s: WholeRate | None = Field(None, description="Requests that write, a whole number per second.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in RATES):
            raise ValueError(f"give one of {', '.join(RATES)}")
        return self


class IoLimitSetting(Setting[IoLimit]):
    """One file of the server's group in version 2, one per rate in version 1."""

    name = "io_limit"
    summary = (
        "How fast the server may use the device that holds its data, by a control group of its own. In version 1 of "
        "control groups, what is written back from the page cache is not limited."
    )
    model = IoLimit
    example = MappingProxyType({"read_bytes_per_s": "100MiB", "writes_per_s": "500/s"})
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, facts: Facts, _trial: TrialContext) -> Effect:
        """The files of the group.

        Raises:
            PlaceError: the place has no such controller, or the agent is not root.
        """
        name = "io" if "io" in facts.controllers else "blkio"
        version = controller(name, facts, setting=self.name).version
        rates = {field: int(rate) for field in RATES if (rate := getattr(self.value, field)) is not None}
        if version == 1:
            files = [
                (f"io_limit.{field}", f"blkio.throttle.{RATES[field][1]}_device", str(rate))
                for field, rate in rates.items()
            ]
        else:
            keys = {key: rates.get(field, "max") for field, (key, _) in RATES.items()}
            files = [("io_limit", "io.max", " ".join(f"{key}={rate}" for key, rate in keys.items()))]
        hint = "install util-linux there"
        return Effect(
            limits=tuple(GroupLimit("server", name, _written(*file)) for file in files),
            needs=(Requirement(self.name, "findmnt", hint),),
        )


def _written(name: str, file: str, text: str) -> Callable[[str, str], Step]:
    def step(directory: str, data: str) -> Step:
        path = f"{directory}/{file}"
        return program(shell(SET, data, path, text), name=name, check=printed(shell(SHOW, data, path), text))

    return step
