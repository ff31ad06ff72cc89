"""Debian packages, downloaded and unpacked, never installed: kernels and servers beside the machine's own."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path

from fairtrial import disks
from fairtrial.errors import PlaceError
from fairtrial.unpacking import Tarball, Unpacking

DOWNLOAD_S = 900.0  # kernels have 70 to 110 MB
LOOK_S = 60.0
CHUNK_BYTES = 1 << 20
OWNERS = 0o755  # whatever the umask: what others can write is not used


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
        files.mkdir()
        extract(archive, Unpacking(archive, files))
        for path in (files, *files.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(OWNERS)
        final = cache / archive.name.removesuffix(".deb")
        disks.sync_around(files)  # whoever finds the name trusts what is in it, also after a power failure
        try:
            files.replace(final)
        except OSError:
            if not final.is_dir():  # else somebody else was first
                raise
    return final


def downloaded(package: str, directory: Path) -> Path:
    """Fetches a package's archive into a directory, checked by apt."""
    _said(["apt-get", "download", package], limit_s=DOWNLOAD_S, directory=directory)
    (archive,) = directory.glob("*.deb")
    return archive


def extract(archive: Path, unpacking: Unpacking) -> None:
    """Unpacks a package's archive, whoever made it, without what it would set of owners and special permissions.

    Raises:
        PlaceError: it is not a package, is damaged, too large, or leads out of the directory.
    """
    argv = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with unpacking.explained(archive), _started(argv) as dpkg:
        if dpkg.stdout is None:
            raise AssertionError("a pipe was asked for")
        try:
            with Tarball.open(fileobj=dpkg.stdout, mode="r|") as file:  # a file on the way would have no limit
                unpacking.tar(file)
            while dpkg.stdout.read(CHUNK_BYTES):  # padding
                pass
        except BaseException:
            dpkg.kill()
            raise
        if dpkg.wait() != 0:
            raise tarfile.ReadError(f"`{' '.join(argv)}` failed")


def _started(argv: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise _missing(argv[0]) from error


def _missing(program: str) -> PlaceError:
    return PlaceError(
        f"no {program} on this machine",
        hint="name a file instead: a kernel by the path of its bzImage, a server by its archive",
    )


def _said(argv: list[str], *, limit_s: float, directory: Path | None = None) -> list[str]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, cwd=directory, check=True)
    except FileNotFoundError as error:
        raise _missing(argv[0]) from error
    except subprocess.TimeoutExpired as error:
        raise PlaceError(f"`{' '.join(argv)}` did not end within {limit_s:.0f} s", hint="is the network up?") from error
    except subprocess.CalledProcessError as error:
        raise PlaceError(
            f"`{' '.join(argv)}` failed: {error.stderr.strip()}", hint="run it by hand to see what is missing"
        ) from error
    return done.stdout.splitlines()
