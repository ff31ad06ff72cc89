"""GRUB: an entry of our own in custom.cfg, booted once by `next_entry` in GRUB's environment block.

grub.cfg is not touched. GRUB must clear `next_entry` itself, before it starts the kernel; where it cannot write, it
would boot the entry for ever (grub-mkconfig's 00_header knows the same file systems and abstractions). It does not read
a file system's log either: what is written there alone, it does not see.
"""

from __future__ import annotations

import shlex
from typing import Final

from fairtrial.places.boot.looking import PATH, BootObservation
from fairtrial.places.boot.way import Entry, Way, WayLack, in_sh
from fairtrial.wire.open_place import OpenPlace

NAME: Final = "fairtrial-once"
OURS: Final = "# fairtrial: a kernel that is booted once; removed when the default kernel is back"
LOGGED: Final = ("ext2", "xfs")  # `ext2` is GRUB's word for ext3 and ext4, too
READ_ONLY: Final = ("btrfs", "cpiofs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs")
ENTRY: Final = """{ours}
menuentry 'fairtrial' --id {name} {{
    search --no-floppy --fs-uuid --set=root {uuid}
    linux {image} {words}
    initrd {initial}
}}
"""
# An empty `next_entry=` is what GRUB leaves; where it was not there before, it is not there afterwards.
FORGET: Final = f'{PATH} rm -f "$1/custom.cfg"; "$2-editenv" "$1/grubenv" unset next_entry; sync'
REBOOT: Final = f'{PATH} exec "$1-reboot" {NAME}'
# A freeze empties the log, where `sync` only writes to it. The sleeper thaws what nobody is left to thaw, also when it
# is ended with all that the session runs (TERM), perhaps before the freeze is complete; no later session ends it.
SLEEPER: Final = """
trap 'kill $! 2>/dev/null; exit' USR1
trap 'n=0; until fsfreeze --unfreeze "$1" || [ $n = 100 ]; do n=$((n + 1)); sleep 0.1; done; exit 0' TERM
sleep 60 & wait
fsfreeze --unfreeze "$1"
"""
SETTLE: Final = f"""{PATH}
sync
env -u FAIRTRIAL_SESSION setsid sh -c "$2" sh "$1" </dev/null >/dev/null 2>&1 &
fsfreeze --freeze "$1" || {{ kill -USR1 $!; exit 1; }}
fsfreeze --unfreeze "$1"
kill -USR1 $!
"""
RELATIVE: Final = f'{PATH} exec "$1-mkrelpath" "$2"'


class Grub(Way):
    """GRUB boots an entry once."""

    name = "grub"
    once = f"custom.cfg with the entry {NAME}, and next_entry in grubenv, in /boot/grub or /boot/grub2"

    def lack(self, seen: BootObservation) -> WayLack | None:
        """GRUB's programs, a configuration that boots once, and a /boot that GRUB can write to."""
        family, directory = seen.grub_family, seen["grub"]
        programs = [f"{family}-{each}" for each in ("reboot", "editenv", "probe", "mkrelpath")]
        missing = [program for program in (*programs, "fsfreeze") if not seen.has(program)]
        if missing:
            return WayLack(f"no {', '.join(missing)} on this host", "install grub2-common and util-linux there")
        if seen["systemd_boot"]:
            return WayLack("this host was started by systemd-boot", "use `by: systemd-boot`")
        if not directory:
            return WayLack("no grub.cfg in /boot/grub or /boot/grub2", "boot this host by GRUB, or another way")
        return _cannot_boot_once(seen)

    def arm(self, place: OpenPlace, seen: BootObservation, entry: Entry) -> None:
        """Writes the entry and has GRUB take it at its next start."""
        family = seen.grub_family
        image, initial = (in_sh(place, RELATIVE, family, path).strip() for path in (entry.image, entry.initial))
        text = custom(entry, image=image, initial=initial, uuid=seen["grub_uuid"])
        place.agent.put(f"{seen['grub']}/custom.cfg", text.encode())
        in_sh(place, REBOOT, family)
        _settle(place, seen)

    def disarm(self, place: OpenPlace, seen: BootObservation) -> None:
        """Takes both back."""
        if seen["custom"] == OURS:
            in_sh(place, FORGET, seen["grub"], seen.grub_family)
            _settle(place, seen)

    def armed(self, seen: BootObservation) -> str:
        """What GRUB has not cleared."""
        return f"next_entry={NAME} in {seen['grub']}/grubenv" if seen["grubenv/next_entry"] else ""


def custom(entry: Entry, *, image: str, initial: str, uuid: str) -> str:
    """custom.cfg: one entry.

    Args:
        entry: the boot.
        image: its kernel as GRUB sees it, from the root of the file system.
        initial: its initial file system, in the same way.
        uuid: of that file system.
    """
    words = " ".join(shlex.quote(word) for word in entry.command_line.split())
    return ENTRY.format(ours=OURS, name=NAME, uuid=uuid, image=image, initial=initial, words=words)


def _settle(place: OpenPlace, seen: BootObservation) -> None:
    """Has GRUB see what was written, though the power fails now."""
    if seen["grub_fs"] in LOGGED:
        in_sh(place, SETTLE, seen["grub"], SLEEPER, hint="use `by: kexec` on this host")


def _cannot_boot_once(seen: BootObservation) -> WayLack | None:
    """What of its configuration and of its file system keeps GRUB from booting an entry once."""
    directory = seen["grub"]
    if not (seen["grub_once"] and seen["grub_custom"]):
        return WayLack(
            f"{directory}/grub.cfg boots no entry once, or reads no custom.cfg",
            "set GRUB_DEFAULT=saved in /etc/default/grub and run update-grub there",
        )
    if (cannot := _cannot_write(seen)) is not None:
        return WayLack(
            f"GRUB cannot clear its one-shot entry: {cannot}; it would boot the test kernel for ever",
            "put /boot on a partition of its own with ext4 or XFS, or use `by: kexec`",
        )
    if seen["custom"] not in ("", OURS):
        return WayLack(f"{directory}/custom.cfg is your own", "move its entries to /etc/grub.d/40_custom")
    if seen["grubenv/next_entry"] not in ("", NAME):
        return WayLack(
            f"GRUB is about to boot {seen['grubenv/next_entry']} once already",
            f"restart the host, or run `{seen.grub_family}-editenv - unset next_entry` there",
        )
    return None


def _cannot_write(seen: BootObservation) -> str | None:
    if seen["grub_abstraction"]:
        return f"{seen['grub']} lies on {seen['grub_abstraction']}"
    if seen["grub_fs"] in READ_ONLY or not seen["grub_uuid"]:
        return f"it cannot write to {seen['grub_fs'] or 'an unknown file system'}"
    return None
