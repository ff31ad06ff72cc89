"""Block devices that a trial makes for itself, and how each goes away: by its name, whatever had been made by then.

Every script that takes away works from names in the trial's directory and does nothing where nothing is left: the agent
may have died anywhere inside the one that makes.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from fairtrial.protocol.generated import Step
from fairtrial.settings.steps.effect import Requirement
from fairtrial.settings.steps.shared import printed, program, shell

MIB = 1 << 20
NULL_BLK = "/sys/kernel/config/nullb"
MAPPER = "/dev/mapper"
MODULE_HINT = "load it there (`modprobe {module}`), or take `place: {{vm: {{kernel: debian-6.1}}}}`"

# Direct: what the file system on the device holds in memory is not held a second time below it.
LOOP = """
device=$(losetup --find --show --direct-io=on -- "$1")
ln -sfn "$device" "$2"
"""
NO_LOOP = """
for device in $(losetup --noheadings --output NAME --associated "$1"); do losetup --detach "$device"; done
rm -f "$2"
"""
# A guest has no udev that would make the device's name.
NAMES = "[ -e /run/udev/control ] || export DM_DISABLE_UDEV=1\n"
# Sectors of 512 bytes; reads and writes are held back alike.
DELAY = f"""{NAMES}
device=$(readlink -f "$2")
dmsetup create "$1" --table "0 $(blockdev --getsz "$device") delay $device 0 $3"
"""
NO_DELAY = NAMES + 'if dmsetup info "$1" >/dev/null 2>&1; then dmsetup remove --retry "$1"; fi'
SHOW_DELAY = 'if dmsetup info "$1" >/dev/null 2>&1; then dmsetup table "$1" | cut -d " " -f 3,6; fi'
NULL = """
mkdir "$1"
echo "$3" >"$1/size"
echo 1 >"$1/memory_backed"
echo 2 >"$1/irqmode"
echo "$4" >"$1/completion_nsec"
echo 1 >"$1/power"
device=/dev/${1##*/}
if [ ! -b "$device" ]; then device=/dev/nullb$(cat "$1/index"); fi
ln -sfn "$device" "$2"
"""
NO_NULL = """
if [ -d "$1" ]; then
    echo 0 >"$1/power"
    rmdir "$1"
fi
rm -f "$2"
"""
SHOW_NULL = 'if [ -d "$1" ]; then cd "$1"; cat size memory_backed irqmode completion_nsec power; fi'


def file(trial: PurePosixPath, size: int, *, latency_s: float | None) -> tuple[str, list[Step], list[Requirement]]:
    """A file in the trial's directory, all of its blocks there, as a device.

    Returns:
        The device's name, the steps that make it, and what they need.
    """
    image, link = f"{trial}/storage.image", f"{trial}/storage.device"
    steps = [
        program(["fallocate", "--length", str(size), image], name="storage.file", undo=["rm", "-f", image]),
        program(shell(LOOP, image, link), name="storage.loop", undo=shell(NO_LOOP, image, link)),
    ]
    hint = MODULE_HINT.format(module="loop")
    needs = [
        Requirement("storage", "losetup", "install mount there"),
        Requirement("storage", "/dev/loop-control", hint),
    ]
    if latency_s is None:
        return link, steps, needs
    name, delay_ms = f"fairtrial-{trial.name}", round(latency_s * 1000)
    steps.append(
        program(
            shell(DELAY, name, link, str(delay_ms)),
            name="storage.latency",
            undo=shell(NO_DELAY, name),
            check=printed(shell(SHOW_DELAY, name), f"delay {delay_ms}"),
        )
    )
    hint = MODULE_HINT.format(module="dm_delay")
    needs += [
        Requirement("storage.latency", "dmsetup", "install dmsetup there"),
        Requirement("storage.latency", "/sys/module/dm_delay", hint),
    ]
    return f"{MAPPER}/{name}", steps, needs


def null_blk(trial: PurePosixPath, size: int, *, latency_s: float | None) -> tuple[str, list[Step], list[Requirement]]:
    """Memory behind the block layer: requests take their time by a timer, and nothing else.

    Returns:
        As `file`.
    """
    item, link = f"{NULL_BLK}/fairtrial-{trial.name}", f"{trial}/storage.device"
    mebibytes, latency_ns = str(-(-size // MIB)), str(round((latency_s or 0) * 1e9))
    made = program(
        shell(NULL, item, link, mebibytes, latency_ns),
        name="storage.null_blk",
        undo=shell(NO_NULL, item, link),
        check=printed(shell(SHOW_NULL, item), f"{mebibytes} 1 2 {latency_ns} 1"),
    )
    return link, [made], [Requirement("storage", NULL_BLK, MODULE_HINT.format(module="null_blk"))]
