"""Archives of servers, unpacked without what only developers of servers need."""

from __future__ import annotations

import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial import debian
from fairtrial.errors import PlaceError

# Half of MySQL's archives, by size, is this: builds for debuggers, static libraries, tests, manuals.
UNNEEDED = re.compile(
    r"(^|/)(mysql-test|mariadb-test|sql-bench|docs|man|include|plugin/debug)/"
    r"|\.a$|(-debug|_embedded|mysqltest|mysql_client_test)$"
)
INNER = ("*.txz", "*.tar.xz", "*.tar.gz", "*.tgz")  # an archive in an archive, as zonky's PostgreSQL has
PROGRAM_FOLDERS = ("bin", "sbin", "libexec", "scripts")
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError)
# Debian 12's Python has no filters yet. What is unpacked is run, so whoever names an archive trusts it anyway.
CAREFULLY: Mapping[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
READABLE, ENTERED, RUN = 0o444, 0o555, 0o555


def unpack(archive: Path, directory: Path) -> None:
    """Unpacks a zip, a jar, a tarball or a Debian package into a directory, for everybody to read.

    Raises:
        PlaceError: it is none of them, or damaged.
    """
    directory.mkdir()
    try:
        _unpack(archive, directory)
        for inner in [found for pattern in INNER for found in sorted(directory.glob(pattern))]:
            _unpack(inner, directory)
            inner.unlink()
    except DAMAGED as error:
        raise PlaceError(
            f"{archive} cannot be unpacked: {error}", hint="it is cut or damaged: fetch it again, or name another"
        ) from error
    _readable(directory)


def _unpack(archive: Path, directory: Path) -> None:
    if archive.suffix == ".deb":
        debian.extract(archive, directory)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            members = [name for name in file.namelist() if not UNNEEDED.search(name)]
            file.extractall(directory, members=members)  # noqa: S202 - names that lead out are bent by zipfile itself
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as file:
            needed = (member for member in file if not UNNEEDED.search(member.name))
            file.extractall(directory, members=needed, **CAREFULLY)  # noqa: S202 - see above
    else:
        raise PlaceError(
            f"{archive} is no archive that can be unpacked", hint="name a zip, a jar, a tarball or a Debian package"
        )


def _readable(directory: Path) -> None:
    """Servers run as another user, and zip files made without care know no programs."""
    directory.chmod(directory.stat().st_mode | ENTERED)
    for path in directory.rglob("*"):
        if path.is_symlink():
            continue
        more = RUN if path.is_dir() or path.parent.name in PROGRAM_FOLDERS else READABLE
        path.chmod(path.stat().st_mode | more)
