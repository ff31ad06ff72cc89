"""The firmware itself: a boot option outside BootOrder, booted once by BootNext. The kernel is an EFI program."""

from __future__ import annotations

from typing import Final

from fairtrial.places.boot.looking import OUR_ENTRIES, PATH, BootObservation
from fairtrial.places.boot.way import Entry, Way, WayLack, in_sh
from fairtrial.wire.open_place import OpenPlace

# `$1` is the partition's device, `$2` the kernel, `$3` its words; the number that the firmware gave comes back.
NEXT: Final = f"""{PATH}
disk=/dev/$(lsblk -no PKNAME "$1"); part=$(cat "/sys/class/block/${{1##*/}}/partition")
efibootmgr --create-only --disk "$disk" --part "$part" --label fairtrial --loader "$2" --unicode "$3" >/dev/null
number=$(efibootmgr | {OUR_ENTRIES} | tail -n 1)
exec efibootmgr --quiet --bootnext "$number"
"""
FORGET: Final = f"""{PATH}
for number in $1; do efibootmgr --quiet --bootnum "$number" --delete-bootnum; done
[ -z "$2" ] || efibootmgr --quiet --delete-bootnext
"""


class Efi(Way):
    """The firmware boots a kernel once."""

    name = "efi"
    kernels = "{EFI system partition}/fairtrial"
    once = "variables of the firmware: a boot option `fairtrial`, in no boot order, and BootNext"

    def lack(self, seen: BootObservation) -> WayLack | None:
        """UEFI firmware, efibootmgr, and an EFI system partition that can be written."""
        if not seen["efi"]:
            return WayLack("this host has no UEFI firmware, or was not started by it", "use `by: grub` or `by: kexec`")
        missing = [program for program in ("efibootmgr", "lsblk", "bootctl") if not seen.has(program)]
        if missing:
            return WayLack(f"no {', '.join(missing)} on this host", "install efibootmgr, util-linux and systemd there")
        if not (seen["esp"] and seen["esp_device"]):
            return WayLack("no EFI system partition is mounted on this host", "mount it at /boot/efi")
        if seen["bootnext"] and seen["bootnext"] not in seen["entries"].split():
            return WayLack(
                f"the firmware is about to boot {seen['bootnext']} once already", "run `efibootmgr -N` there"
            )
        return None

    def directory(self, seen: BootObservation) -> str:
        """On the partition that the firmware reads."""
        return f"{seen['esp']}/fairtrial"

    def arm(self, place: OpenPlace, seen: BootObservation, entry: Entry) -> None:
        """Makes a boot option that is in no order, and has the firmware take it at its next start."""
        image, initial = (path.removeprefix(seen["esp"]).replace("/", "\\") for path in (entry.image, entry.initial))
        self.disarm(place, seen)  # of a run that was killed
        in_sh(place, NEXT, seen["esp_device"], image, f"initrd={initial} {entry.command_line}")

    def disarm(self, place: OpenPlace, seen: BootObservation) -> None:
        """Deletes the option."""
        in_sh(place, FORGET, seen["entries"], seen["bootnext"])

    def armed(self, seen: BootObservation) -> str:
        """What the firmware has not cleared."""
        return f"BootNext {seen['bootnext']}" if seen["bootnext"] else ""
