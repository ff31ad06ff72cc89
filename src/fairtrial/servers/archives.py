"""Archives of servers, unpacked without what only developers of servers need."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from fairtrial import debian
from fairtrial.errors import PlaceError
from fairtrial.unpacking import PERMISSIONS, Tarball, Unpacking, is_tarball

# Half of MySQL's archives, by size, is this: builds for debuggers, static libraries, tests, manuals.
UNNEEDED = re.compile(
    r"(^|/)(mysql-test|mariadb-test|sql-bench|docs|man|include|plugin/debug)/"
    r"|\.a$|(-debug|_embedded|mysqltest|mysql_client_test)$"
)
INNER = ("*.txz", "*.tar.xz", "*.tar.gz", "*.tgz")  # an archive in an archive, as zonky's PostgreSQL has
PROGRAM_FOLDERS = ("bin", "sbin", "libexec", "scripts")
READABLE, RUN = 0o444, 0o555


def unpack(archive: Path, directory: Path) -> None:
    """Unpacks a zip, a jar, a tarball or a Debian package into a directory, for everybody to read.

    Raises:
        PlaceError: it is none of them, damaged, too large, or leads out of the directory.
    """
    directory.mkdir()
    unpacking = Unpacking(archive, directory, needed=lambda name: not UNNEEDED.search(name))
    _unpack(archive, unpacking)
    found = [path for pattern in INNER for path in sorted(directory.glob(pattern))]
    for inner in [path for path in found if path.is_file() and not path.is_symlink()]:
        _unpack(inner, unpacking)
        inner.unlink()
    _readable(directory)


def _unpack(archive: Path, unpacking: Unpacking) -> None:
    if archive.suffix == ".deb":
        debian.extract(archive, unpacking)
        return
    with unpacking.explained(archive):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                unpacking.zip(packed)
        elif is_tarball(archive):
            with archive.open("rb") as file, Tarball.open(fileobj=file) as packed_tar:
                unpacking.tar(packed_tar)
                packed_tar.end()
        else:
            raise PlaceError(
                f"{archive} is not an archive of a known format",
                hint="name a zip, jar, tarball or Debian package",
            )


def _readable(directory: Path) -> None:
    """Servers run as another user, and zip files made without care know no programs; the umask decides nothing."""
    for path in (directory, *directory.rglob("*")):
        if path.is_symlink():
            continue
        more = RUN if path.is_dir() or path.parent.name in PROGRAM_FOLDERS else READABLE
        path.chmod((path.stat().st_mode | more) & PERMISSIONS)
