"""Kernels by name: a file, a build directory, or a Debian package that is downloaded and unpacked, never installed."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtrial import caching, debian, hashes
from fairtrial.errors import PlaceError
from fairtrial.programs import Act

SHORT_NAME = re.compile(r"debian-(?P<version>\d+\.\d+)")
# Unsigned images are the same code without Debian's signature, which direct boot does not ask for. The cloud flavour
# has no 9p, through which a guest gets its root, and the real-time one schedules otherwise.
PACKAGE = r"linux-image-{version}\.[0-9]+(-[0-9]+|\+deb[0-9]+)-amd64-unsigned"
# The header of a bzImage (Documentation/arch/x86/boot.rst): its magic, and where the version's text is.
MAGIC_AT, MAGIC = 0x202, b"HdrS"
VERSION_POINTER_AT, VERSION_BASE = 0x20E, 0x200
HEADER_BYTES = 64 << 10
INSTALLED = Path("/boot")
BUILT = "arch/x86/boot/bzImage"  # below the directory that a kernel was built in


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be booted.

    Attributes:
        image: the bzImage.
        modules: below it are this kernel's modules.
        release: as `uname -r` says it.
        source: where it comes from: a path, or the package with its version.
        sha256: of the image.
    """

    image: Path
    modules: Path
    release: str
    source: str
    sha256: str

    def content_sha256(self, sums: str) -> str:
        """The hash of the image and of modules, whose `sums` are lines of sha256sum(1)."""
        return hashlib.sha256(f"{self.sha256}\n{sums}".encode()).hexdigest()


def acts(name: str, sha256: str | None) -> Iterator[Act]:
    """Where the kernel of a name comes from."""
    known = "" if sha256 is None else f", SHA-256 {sha256}"
    if Path(name).expanduser().exists():
        yield Act("reads", f"kernel {name}{known}", "for every trial", here=True)
        return
    what = f"kernel package {name}, by apt, which checks its signatures{known}"
    yield Act("downloads", what, "once, unless it is there; nothing is installed", here=True)


def find(name: str, *, cache: Path, sha256: str | None = None) -> Kernel:
    """The kernel that a study names.

    Args:
        name: a bzImage, a kernel's build directory, a Debian package's name, or `debian-6.1` for the newest of a
            version: one that is in the cache already, else the newest that apt offers.
        cache: directory for what is downloaded.
        sha256: that its image must have; None: any.

    Raises:
        PlaceError: there is no such kernel.
    """
    kernel = _found(name, cache)
    hashes.require(kernel.sha256, sha256, what=f"the image of kernel {name}")
    return kernel


def _found(name: str, cache: Path) -> Kernel:
    path = Path(name).expanduser()
    if path.is_dir():
        return _built(path)
    if path.is_file():
        return _from_file(path)
    if "/" in name:
        raise PlaceError(f"no kernel at {name}", hint="name a bzImage, a build directory or a Debian package")
    return _from_package(name, cache)


def here(cache: Path) -> Kernel | None:
    """The newest kernel that boots without a download: of the cache, else of this machine; None if there is none."""
    for package in sorted(_cached(cache), key=_by_version, reverse=True):
        with contextlib.suppress(PlaceError, OSError):
            return _in_package(package)
    for image in sorted(INSTALLED.glob("vmlinuz-*"), key=_by_version, reverse=True):
        with contextlib.suppress(PlaceError, OSError):  # of another flavour, or not for this user
            return _from_file(image)
    return None


def release_of(image: Path) -> str:
    """The release that an image says of itself.

    Raises:
        PlaceError: it is no x86 kernel image.
    """
    with image.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if header[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
        raise PlaceError(f"{image} is no x86 kernel image", hint="name a bzImage, as /boot/vmlinuz-… is")
    pointer = int.from_bytes(header[VERSION_POINTER_AT : VERSION_POINTER_AT + 2], "little") + VERSION_BASE
    said, end, _ = header[pointer:].partition(b"\0")
    if not end or not said.isascii():
        raise PlaceError(f"{image} is no whole kernel image", hint="name a bzImage, as /boot/vmlinuz-… is")
    return said.decode().split(" ")[0]


def _from_file(image: Path) -> Kernel:
    release = release_of(image)
    beside = [image.parent.parent / "lib/modules" / release, Path("/lib/modules") / release]
    for modules in beside:
        if modules.is_dir():
            return _kernel(image, modules, source=str(image))
    raise PlaceError(
        f"no modules of {image} in {' or '.join(map(str, beside))}",
        hint="put lib/modules/<release> beside the directory of the image, as a package has it",
    )


def _built(directory: Path) -> Kernel:
    image = directory / BUILT
    if not image.is_file():
        raise PlaceError(
            f"{directory} has no arch/x86/boot/bzImage", hint="build the kernel there (make bzImage modules)"
        )
    return _kernel(image, directory, source=str(directory))


def _from_package(name: str, cache: Path) -> Kernel:
    short = SHORT_NAME.fullmatch(name)
    pattern = re.compile(PACKAGE.format(version=re.escape(short["version"])) if short else re.escape(name))
    unpacked = [path for path in _cached(cache) if pattern.fullmatch(path.name.split("_")[0])]
    if unpacked:
        return _in_package(max(unpacked, key=_by_version))
    offered = [package for package in debian.offered("linux-image-") if pattern.fullmatch(package)]
    if not offered:
        raise PlaceError(
            f"apt offers no kernel {name}",
            hint="see `apt-cache search linux-image`, or run `apt-get update`; a path to a bzImage works, too",
        )
    package = debian.unpacked(max(offered, key=_by_version), cache)
    shutil.rmtree(package / "usr", ignore_errors=True)  # documentation
    return _in_package(package)


def _cached(cache: Path) -> list[Path]:
    return [path for path in cache.glob("linux-image-*_*") if path.is_dir()]


def _by_version(name: str | Path) -> tuple[object, ...]:
    """Sorts 6.1.0-9 before 6.1.0-56."""
    text = name if isinstance(name, str) else name.name
    return tuple(int(part) if part.isdigit() else -1 for part in re.split(r"(\d+)", text))


def _in_package(directory: Path) -> Kernel:
    if caching.others_write(directory):
        raise PlaceError(f"{directory} can be written by other users", hint="remove it; it will be fetched again")
    images = sorted((directory / "boot").glob("vmlinuz-*"))
    if not images:
        raise PlaceError(f"package {directory.name} holds no kernel image", hint="name a linux-image package")
    return _kernel(images[0], directory / "lib/modules" / release_of(images[0]), source=directory.name)


def _kernel(image: Path, modules: Path, *, source: str) -> Kernel:
    return Kernel(
        image=image,
        modules=modules,
        release=release_of(image),
        source=source,
        sha256=hashes.of_file(image),
    )
