"""kexec: the running kernel starts the other one. Hardware is not reset, and no boot loader takes part."""

from __future__ import annotations

from fairtrial.places.boot.looking import PATH, BootObservation
from fairtrial.places.boot.way import Entry, Way, WayLack, in_sh
from fairtrial.wire.open_place import OpenPlace

LOAD = f'{PATH} exec kexec --load "$1" --kexec-syscall-auto --initrd="$2" --command-line="$3"'
UNLOAD = f"{PATH} ! command -v kexec >/dev/null || kexec --unload"


class Kexec(Way):
    """One kernel starts another."""

    name = "kexec"
    # systemd's own way unmounts file systems first; elsewhere the kernel makes them read-only.
    restart = (
        "systemctl --no-block kexec",
        "sync; echo s >/proc/sysrq-trigger; echo u >/proc/sysrq-trigger; sleep 1; kexec --exec",
    )
    rehearsed = False
    once = "the kernel that kexec has loaded"

    def lack(self, seen: BootObservation) -> WayLack | None:
        """The program, and a kernel that lets it."""
        if not seen.has("kexec"):
            return WayLack("no kexec on this host", "install kexec-tools there")
        if seen["kexec_disabled"] != "0":
            return WayLack(
                "this host's kernel does not load another (kernel.kexec_load_disabled)", "restart it; or use `by: grub`"
            )
        if seen["lockdown"] not in ("", "none"):
            return WayLack(f"this host's kernel is locked down ({seen['lockdown']})", "turn Secure Boot off there")
        return None

    def arm(self, place: OpenPlace, seen: BootObservation, entry: Entry) -> None:
        """Loads it."""
        del seen
        in_sh(place, LOAD, entry.image, entry.initial, entry.command_line)

    def disarm(self, place: OpenPlace, seen: BootObservation) -> None:
        """Unloads it, if it is still there."""
        del seen
        in_sh(place, UNLOAD)
