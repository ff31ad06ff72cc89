"""systemd-boot: an entry file of our own, booted once by the firmware variable LoaderEntryOneShot."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from fairtrial.places.boot.looking import PATH, BootObservation
from fairtrial.places.boot.way import Entry, Way, WayLack, in_sh
from fairtrial.wire.open_place import OpenPlace

FILE: Final = "fairtrial-once.conf"
ENTRY: Final = """title fairtrial
linux {image}
initrd {initial}
options {words}
"""
ONCE: Final = f"{PATH} exec bootctl set-oneshot {FILE}"
FORGET: Final = f"{PATH} rm -f \"$1/loader/entries/{FILE}\"; bootctl set-oneshot ''; sync"


class SystemdBoot(Way):
    """systemd-boot boots an entry once."""

    name = "systemd-boot"
    kernels = "{partition of systemd-boot}/fairtrial"
    once = f"{{partition of systemd-boot}}/loader/entries/{FILE}, and the firmware's variable LoaderEntryOneShot"

    def lack(self, seen: BootObservation) -> WayLack | None:
        """systemd-boot itself, its program, and a default that does not depend on which entries there are."""
        if not seen["systemd_boot"]:
            return WayLack("this host was not started by systemd-boot", "use `by: kexec`, or another way")
        if not seen.has("bootctl"):
            return WayLack("no bootctl on this host", "install systemd-boot there")
        default = seen["default"]
        if not default or default.startswith("@") or fnmatchcase(FILE, default):
            return WayLack(
                f"systemd-boot's default ({default or 'none is set'}) depends on which entries there are",
                "name one in loader.conf on the EFI system partition: `default ENTRY.conf`",
            )
        return None

    def directory(self, seen: BootObservation) -> str:
        """On the partition that systemd-boot reads."""
        return f"{seen['boot']}/fairtrial"

    def arm(self, place: OpenPlace, seen: BootObservation, entry: Entry) -> None:
        """Writes the entry and has systemd-boot take it at its next start."""
        image, initial = (path.removeprefix(seen["boot"]) for path in (entry.image, entry.initial))
        text = ENTRY.format(image=image, initial=initial, words=entry.command_line)
        place.agent.put(f"{seen['boot']}/loader/entries/{FILE}", text.encode())
        in_sh(place, ONCE)

    def disarm(self, place: OpenPlace, seen: BootObservation) -> None:
        """Takes both back."""
        in_sh(place, FORGET, seen["boot"])

    def armed(self, seen: BootObservation) -> str:
        """What systemd-boot has not cleared."""
        return "LoaderEntryOneShot" if seen["oneshot"] else ""
