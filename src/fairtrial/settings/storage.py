"""`storage`: what a trial's data lie on: a device of the trial's own, a file system on it, its options.

Owns which steps make and mount it. The device is made or taken, formatted and mounted at `storage` in the trial's
directory, all before the prepared data are copied there.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Step
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps import devices
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.devices import MIB
from fairtrial.settings.steps.effect import Effect, Phase, Requirement
from fairtrial.settings.steps.groups import require_root
from fairtrial.settings.steps.shared import printed, program, shell, write_file
from fairtrial.study.tree.quantities import Bytes, Seconds
from fairtrial.wire.facts import Facts

PHASE: Phase = "place"
PERSISTENT = re.compile(r"/dev/pmem\d+(\.\d+)?")
COUNTING = "/sys/block/{name}/queue/iostats"
LEAST_XFS = 300 * MIB  # mkfs.xfs refuses less
LEAST_LATENCY_S = 1e-6
MILLISECOND_S = 1e-3
ROUNDING = 1e-6  # of a decimal number of seconds

# Without sharing of blocks (XFS before Linux 6.0) and with blocks of a page (ext4), a file system can do DAX.
FORMAT = {"xfs": ("mkfs.xfs", "-q", "-f"), "ext4": ("mkfs.ext4", "-q", "-F")}
USUAL = {"xfs": ("-m", "reflink=0"), "ext4": ("-b", "4096")}
PACKAGES = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}

# What mount(8) itself acts upon: the kernel does not show it.
NOT_SHOWN = frozenset({"defaults"})

# The file system that is mounted there, and of the options asked for those in effect; all of them where one is not.
MOUNTED = """
wanted=$2
found=$(findmnt --raw -n -o FSTYPE -M "$1") || exit 0
shown=$(findmnt --raw -n -o OPTIONS -M "$1")
for option in $(echo "$wanted" | tr , ' '); do
    case ",$shown," in *",$option,"*) ;; *) echo "$found $shown"; exit 0 ;; esac
done
echo "$found $wanted"
"""


def _no_device(word: str) -> str:
    """A journal, log or real-time device of somebody else's would be formatted, too."""
    if not word or "/" in word or any(name in word for name in ("device=", "dev=")):
        raise ValueError(f"a word for mkfs may name no other device, found {word!r}")
    return word


class Storage(BaseModel):
    """The device, the file system on it, and how it is mounted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Annotated[str, Field(pattern=r"^(pmem|file|null_blk|memory|/dev/[A-Za-z0-9/_.-]+)$")] = Field(
        description="`pmem`: the guest's persistent memory; `file`: a file in the state directory; `null_blk`: memory "
        "behind the block layer, with exact latency; `memory`: a file system in memory (tmpfs)."
    )
    size: Bytes | None = Field(None, ge=MIB, description="Of all but `pmem`, which has its own.")
    latency: Seconds | None = Field(
        None,
        ge=LEAST_LATENCY_S,
        description="Added to every request: of `file` in whole milliseconds (dm-delay), of `null_blk` from 1 µs.",
    )
    file_system: Literal["xfs", "ext4"] = Field("xfs", description="On it; `memory` is one itself.")
    mkfs: tuple[Annotated[str, AfterValidator(_no_device)], ...] | None = Field(
        None, description="Words for mkfs instead of `-m reflink=0` (XFS) or `-b 4096` (ext4), which DAX needs."
    )
    mount: Annotated[str, Field(pattern=r"^[A-Za-z0-9_=.:-]+(,[A-Za-z0-9_=.:-]+)*$")] | None = Field(
        None,
        description="Options of mount, as the kernel shows them: `dax=always,noatime`. One that it does not show "
        "afterwards is an error.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        is_persistent = self.device == "pmem" or self.device.startswith("/dev/")
        options = (self.mount or "").split(",")
        if is_persistent == (self.size is not None):
            raise ValueError(
                f"{self.device} has a size of its own" if is_persistent else f"{self.device} needs a `size`"
            )
        if self.latency is not None:
            self._has_latency(self.latency)
        if self.device == "memory" and self.mkfs is not None:
            raise ValueError("memory is not formatted: no `mkfs`")
        if self.device in {"file", "null_blk"} and self.file_system == "xfs" and (self.size or 0) < LEAST_XFS:
            raise ValueError(f"XFS needs at least {LEAST_XFS // MIB}MiB")
        if not is_persistent and {"dax", "dax=always", "dax=inode"} & set(options):
            raise ValueError("only persistent memory can do DAX: `device: pmem`")
        return self

    def _has_latency(self, latency_s: float) -> None:
        if self.device not in {"file", "null_blk"}:
            raise ValueError(f"{self.device} takes no latency: only `file` and `null_blk` do")
        milliseconds = latency_s / MILLISECOND_S
        if self.device == "file" and abs(milliseconds - round(milliseconds)) > ROUNDING:
            raise ValueError("a file's latency is in whole milliseconds; `device: null_blk` takes microseconds")


class StorageSetting(Setting[Storage]):
    """Steps that make, format and mount it, before anything else happens at the place."""

    name = "storage"
    summary = (
        "What the trial's data lie on: persistent memory with or without DAX, a file, or memory, with a file system of "
        "its own that is made before the data are restored and gone after the trial. The load works there, too."
    )
    model = Storage
    example = MappingProxyType({"device": "pmem", "mount": "dax=always"})
    privilege = "CAP_SYS_ADMIN, CAP_DAC_OVERRIDE"

    def disk_bytes(self) -> int:
        """The file's, of which all blocks are there."""
        return (self.value.size or 0) if self.value.device == "file" else 0

    def effect(self, facts: Facts, trial: TrialContext) -> Effect:
        """The steps, and where the data lie then.

        Raises:
            PlaceError: not root, or a device that may hold somebody's data.
        """
        require_root(self.name, facts)
        value, at = self.value, trial.directory / "storage"
        device, steps, needs = _device(value, trial=trial.directory, facts=facts)
        options = value.mount or ""
        if value.device == "memory":
            kind, own_options = "tmpfs", ",".join(filter(None, [options, f"size={value.size}", "mode=755"]))
        else:
            kind, own_options = value.file_system, options
            steps = [*steps, _formatted(value, device)]
            needs = [*needs, Requirement(self.name, FORMAT[kind][0], f"install {PACKAGES[kind]} there")]
        steps = [*steps, *_mounted(kind, device, at=at, options=own_options, shown=options)]
        return Effect(
            steps=tuple((PHASE, step) for step in steps),
            needs=tuple(needs),
            data_directory=at / "data",  # not the mount point, which holds `lost+found` and cannot be replaced whole
        )


def _device(value: Storage, *, trial: PurePosixPath, facts: Facts) -> tuple[str, list[Step], list[Requirement]]:
    """What is mounted, how it is made, and what that needs."""
    name, size = value.device, value.size or 0
    if name == "memory":
        return "storage", [], []
    if name == "file":
        return devices.file(trial, size, latency_s=value.latency)
    if name == "null_blk":
        return devices.null_blk(trial, size, latency_s=value.latency)
    path = "/dev/pmem0" if name == "pmem" else name
    if not PERSISTENT.fullmatch(path) or facts.guest is None:
        raise PlaceError(
            f"settings.storage: {path} is not formatted at this place: it could hold somebody's data",
            hint="only a guest's persistent memory is (`place: {vm: {pmem: 1GiB}}`), and what a trial makes itself "
            "(`file`, `null_blk`, `memory`); to measure on another device, make a file system on it yourself and let "
            "the place's `state_directory` lie there",
        )
    hint = "give the guest some: `place: {vm: {pmem: 1GiB}}`"
    # Its driver counts requests only if told to; without DAX they shall be seen.
    counted = write_file(
        COUNTING.format(name=PurePosixPath(path).name), "1", name="storage.iostats", normalise="integer"
    )
    return path, [counted], [Requirement(StorageSetting.name, path, hint)]


def _formatted(value: Storage, device: str) -> Step:
    kind = value.file_system
    words = USUAL[kind] if value.mkfs is None else value.mkfs
    return program([*FORMAT[kind], *words, device], name="storage.mkfs")


def _mounted(kind: str, device: str, *, at: PurePosixPath, options: str, shown: str) -> list[Step]:
    expected = ",".join(option for option in shown.split(",") if option and option not in NOT_SHOWN)
    made = {
        "name": "storage.directory",
        "action": {"kind": "create", "path": str(at)},
        "inverse": {"kind": "restore"},
    }
    mounted = {
        "name": "storage.mount",
        "action": {"kind": "mount", "source": device, "target": str(at), "file_system": kind, "options": options},
        "check": printed(shell(MOUNTED, str(at), expected), f"{kind} {expected}"),
        "inverse": {"kind": "restore"},
    }
    return [Step.model_validate(made), Step.model_validate(mounted)]
