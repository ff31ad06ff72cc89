"""A kernel beside a host's own: its image, modules and initial file system, which stay there for the next trial."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial import disks, hashes
from fairtrial.errors import PlaceError
from fairtrial.places.boot.looking import PATH
from fairtrial.places.boot.way import in_sh
from fairtrial.places.vm.kernels import BUILT, Kernel
from fairtrial.wire.open_place import OpenPlace

INSTALL_S: Final = 1800.0  # hundreds of megabytes of modules, over a slow line to a slow disk
HASH_DIGITS: Final = 16
LISTS: Final = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
OF_PACKAGE: Final = "kernel/"  # other directories are what a machine adds, such as DKMS
COMPRESSED: Final = ("", ".xz", ".zst", ".gz")
# `$1` is the release, `$2` the hash of image and modules, `$3` our directory of this kernel, `$4` the image's hash.
# Modules of another build of the same release that a package put there are not ours to replace.
WHOLE: Final = """
if [ -e "$3/initrd" ] && [ "$(cat "/lib/modules/$1/.fairtrial" 2>/dev/null)" = "$2" ]; then echo whole
elif [ -d "/lib/modules/$1" ] && ! [ -e "/lib/modules/$1/.fairtrial" ]; then
    if [ "$(sha256sum <"/boot/vmlinuz-$1" | cut -d' ' -f1)" = "$4" ]; then echo installed; else echo another; fi
fi
"""
SAME: Final = 'cd "/lib/modules/$1" && sha256sum -c --quiet "$2"'
# `$4` are the modules.
MODULES: Final = """
new="/lib/modules/.fairtrial-$1"; rm -rf "$new"; mkdir -p "$new"
tar -xf "$4" -C "$new"; rm -f "$4"
printf %s "$2" >"$new/.fairtrial"
rm -f "$3/initrd"  # which says that all is there: of modules that were there before, too, until depmod has seen these
sync  # a power cut leaves no name without its content
rm -rf "/lib/modules/$1"; mv "$new" "/lib/modules/$1"
"""
INITIAL: Final = (
    PATH
    + """
depmod "$1"
if command -v mkinitramfs >/dev/null; then mkinitramfs -o "$3/.new" "$1"; else dracut --force --kver "$1" "$3/.new"; fi
sync
mv "$3/.new" "$3/initrd"
sync
"""
)


@dataclass(frozen=True)
class StagedKernel:
    """A kernel on a host.

    Attributes:
        image, initial: its files there.
        release: as `uname -r` will say it.
        source: where it came from.
        sha256: of the image; empty for the host's own.
        content_sha256: of the image and every module; empty for the host's own.
    """

    image: str
    initial: str
    release: str
    source: str
    sha256: str = ""
    content_sha256: str = ""


def stage(place: OpenPlace, kernel: Kernel, *, directory: str) -> StagedKernel:
    """Brings a kernel to a host unless it is there already; nothing boots it by itself.

    Args:
        place: the host.
        kernel: on this machine.
        directory: where the way to boot it looks for kernels.

    Raises:
        PlaceError: there is no room, the host has modules of another build of the same release that are not ours, or
            its own programs refuse, in their words.
    """
    sums = _sums(kernel)
    content = kernel.content_sha256(sums)
    own = f"{directory}/{content[:HASH_DIGITS]}"
    staged = StagedKernel(f"{own}/vmlinuz", f"{own}/initrd", kernel.release, kernel.source, kernel.sha256, content)
    words = (kernel.release, content, own)
    state = in_sh(place, WHOLE, *words, kernel.sha256).strip()
    if state == "whole":
        return staged
    if state == "another" or (state == "installed" and not _has_modules(place, kernel.release, sums)):
        raise PlaceError(
            f"this host has modules of another build that calls itself {kernel.release}",
            hint="build the kernel with a CONFIG_LOCALVERSION of its own, or remove the other's package there",
            field="place.ssh.boot.kernel",
        )
    if state == "installed" and _is_there(place, staged.initial):
        return staged
    place.agent.put(staged.image, kernel.image)
    if (config := _config(kernel)) is not None and not _is_there(place, f"/boot/config-{kernel.release}"):
        place.agent.put(f"/boot/config-{kernel.release}", config)  # mkinitramfs asks it what the kernel can unpack
    if state != "installed":
        _bring_modules(place, kernel, words)
    hint = "see what mkinitramfs or dracut says; is there room in /boot and /lib/modules?"
    place.require(["sh", "-euc", INITIAL, "sh", *words], hint=hint, timeout_s=INSTALL_S)
    return staged


def _config(kernel: Kernel) -> Path | None:
    """A kernel's configuration, beside its image or at the top of its build directory."""
    built = kernel.image.parent / "../../../.config"  # of arch/x86/boot/bzImage
    beside = kernel.image.parent / f"config-{kernel.release}"
    return next((path for path in (beside, built) if path.is_file()), None)


def _bring_modules(place: OpenPlace, kernel: Kernel, words: tuple[str, ...]) -> None:
    packed = f"{place.state_directory}/modules.tar"
    explained = disks.explained(Path(tempfile.gettempdir()), written="a kernel's modules")
    with explained, tempfile.NamedTemporaryFile(suffix=".tar") as local:
        with tarfile.open(fileobj=local, mode="w") as archive:
            for path, name in _modules(kernel):
                archive.add(path, name, recursive=False, filter=_of_root)
        local.flush()
        place.agent.put(packed, Path(local.name))
    hint = "is there room in /lib/modules on this host?"
    place.require(["sh", "-euc", MODULES, "sh", *words, packed], hint=hint, timeout_s=INSTALL_S)


def _sums(kernel: Kernel) -> str:
    """Hashes of all its modules, as sha256sum(1) checks them below a release's directory."""
    return "".join(f"{hashes.of_file(path)}  {name}\n" for path, name in _modules(kernel))


def _has_modules(place: OpenPlace, release: str, sums: str) -> bool:
    """Whether a package has put the same modules there; what a machine adds to them is its own."""
    names = ((line, line.split("  ", 1)[1].rstrip()) for line in sums.splitlines(keepends=True))
    sums = "".join(line for line, name in names if name in LISTS or name.startswith(OF_PACKAGE))
    there = f"{place.state_directory}/modules.sha256"
    place.agent.put(there, sums.encode())
    return place.execute(["sh", "-c", SAME, "sh", release, there], timeout_s=INSTALL_S).code == 0


def _modules(kernel: Kernel) -> Iterator[tuple[Path, str]]:
    """Files of modules with their names below a release's directory, from a package or a build directory."""
    directory = kernel.modules
    # Of a build directory, as it installs them; some packages have their image in the directory of their modules.
    below = "kernel/" if kernel.image == directory / BUILT else ""
    for name in LISTS:
        if (directory / name).is_file():
            yield directory / name, name
    for suffix in COMPRESSED:
        for path in sorted(directory.rglob(f"*.ko{suffix}")):
            yield path, below + path.relative_to(directory).as_posix()


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _is_there(place: OpenPlace, path: str) -> bool:
    return place.execute(["test", "-e", path]).code == 0
