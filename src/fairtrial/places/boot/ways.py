"""Every way to boot a kernel once, and why one of them does not work on a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.places.boot.efi import Efi
from fairtrial.places.boot.grub import Grub
from fairtrial.places.boot.kexec import Kexec
from fairtrial.places.boot.looking import BootObservation
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.systemd_boot import SystemdBoot
from fairtrial.places.boot.way import Way, WayLack

FIELD: Final = "place.ssh.boot"
ROOT: Final = "0"
WAYS: Final[Mapping[str, Way]] = {way.name: way for way in (Kexec(), Grub(), SystemdBoot(), Efi())}


def require(boot: BootParameters, seen: BootObservation) -> Way:
    """The way that a study asks for, which works on this host.

    Raises:
        PlaceError: it does not, with the reason and those that do.
    """
    if (lack := _of_host(boot, seen) or WAYS[boot.by].lack(seen)) is None:
        return WAYS[boot.by]
    others = [name for name, way in WAYS.items() if _of_host(boot, seen) is None and way.lack(seen) is None]
    works = f"; what works on this host: `by: {'`, `by: '.join(others)}`" if others else ""
    raise PlaceError(lack.what, hint=lack.fix + works, field=f"{FIELD}.by")


def _of_host(boot: BootParameters, seen: BootObservation) -> WayLack | None:
    """What every way needs."""
    if seen["user"] != ROOT:
        return WayLack("only root can boot another kernel", "reach the host with `user: root`")
    if boot.kernel is None:
        return None
    if seen["secure_boot"] == "1":
        return WayLack("this host boots signed kernels only (Secure Boot)", "turn Secure Boot off in its firmware")
    if not seen.has("depmod", "tar") or not (seen.has("mkinitramfs") or seen.has("dracut")):
        return WayLack(
            "this host cannot make a kernel's initial file system: it needs depmod, tar, and mkinitramfs or dracut",
            "install kmod, tar and initramfs-tools there",
        )
    return None
