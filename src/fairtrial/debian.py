"""Debian packages, downloaded and unpacked, never installed: kernels and servers beside the machine's own."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from fairtrial.errors import PlaceError
from fairtrial.unpacking import Unpacking

DOWNLOAD_S = 900.0  # kernels have 70 to 110 MB
UNPACK_S = 300.0
LOOK_S = 60.0


def offered(beginning: str) -> list[str]:
    """Names of packages that apt offers and that begin so (a regular expression).

    Raises:
        PlaceError: there is no apt here, or it fails.
    """
    lines = _said(["apt-cache", "--names-only", "search", f"^{beginning}"], limit_s=LOOK_S)
    return [line.split(" ")[0] for line in lines]


def unpacked(package: str, cache: Path) -> Path:
    """Fetches a package and unpacks it below `cache`; the directory gets its name, with the version, when it is whole.

    Raises:
        PlaceError: apt has no such package or cannot fetch it.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as temporary:
        archive = downloaded(package, Path(temporary))
        files = Path(temporary) / "files"
        extract(archive, files)
        final = cache / archive.name.removesuffix(".deb")
        files.replace(final)
    return final


def downloaded(package: str, directory: Path) -> Path:
    """Fetches a package's archive into a directory, checked by apt."""
    _said(["apt-get", "download", package], limit_s=DOWNLOAD_S, directory=directory)
    (archive,) = directory.glob("*.deb")
    return archive


def extract(archive: Path, directory: Path) -> None:
    """Unpacks a package's archive, whoever made it, without what it would set of owners and special permissions.

    Raises:
        PlaceError: it is not a package, is damaged, or leads out of the directory.
    """
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryFile() as tarball:
        _said(["dpkg-deb", "--fsys-tarfile", str(archive)], limit_s=UNPACK_S, into=tarball)
        tarball.seek(0)
        with tarfile.open(fileobj=tarball, mode="r:") as file:
            Unpacking(archive, directory).tar(file)


def _said(
    argv: list[str], *, limit_s: float, directory: Path | None = None, into: IO[bytes] | None = None
) -> list[str]:
    """Lines that a program says, unless its output goes `into` a file."""
    out = subprocess.PIPE if into is None else into
    try:
        done = subprocess.run(
            argv, stdout=out, stderr=subprocess.PIPE, text=True, timeout=limit_s, cwd=directory, check=True
        )
    except FileNotFoundError as error:
        raise PlaceError(
            f"no {argv[0]} on this machine",
            hint="name a file instead: a kernel by the path of its bzImage, a server by its archive",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise PlaceError(f"`{' '.join(argv)}` did not end within {limit_s:.0f} s", hint="is the network up?") from error
    except subprocess.CalledProcessError as error:
        raise PlaceError(
            f"`{' '.join(argv)}` failed: {error.stderr.strip()}", hint="run it by hand to see what is missing"
        ) from error
    return (done.stdout or "").splitlines()
