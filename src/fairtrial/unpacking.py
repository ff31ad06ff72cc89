"""Archives of strangers, unpacked below one directory and nowhere else, whatever Python's version knows of filters.

Regular files, directories and links inside are made, by the user who unpacks and with plain permissions. A link that
leads out is left out; a name that leads out, or a device, refuses the whole archive.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import lzma
import math
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from fairtrial.errors import PlaceError

MOST_BYTES: Final = 16 << 30  # unpacked: the largest servers have 3 GiB
MOST_MEMBERS: Final = 200_000
HEADER_BYTES: Final = 1 << 20  # of all headers of one member of a tarball: a path has at most 4 KiB (limits.h)
READ_BYTES: Final = 1 << 20
PERMISSIONS: Final = 0o755  # of what an archive may ask for: not set-uid, set-gid or sticky, nor writable for others
OWNERS: Final = 0o600  # of what is unpacked, at least

DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    struct.error,
    ValueError,  # of names that are no text, or have a NUL
)
UNREADABLE: Final = (
    NotImplementedError,
    RuntimeError,
)  # what zipfile raises of methods it does not know, and passwords; tarfile of thousands of headers before a member
CLASHES: Final = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)  # of names in one archive
AFTER_GZIP: Final = "Not a gzipped file"  # what `gzip` says of a member that begins otherwise
UNNAMED: Final = (None, errno.EINVAL)  # of what gzip and bz2 find damaged, and of places outside the archive

Needed = Callable[[str], bool]


class _LimitedFile:
    """The file below a tarball: `tarfile` reads headers into memory whole, so it gets `left` bytes of them at most."""

    def __init__(self, file: IO[bytes]) -> None:
        self.left = math.inf
        self.tell, self.seek, self.close = file.tell, file.seek, file.close
        self._read = file.read

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise tarfile.TarError(f"a member has more than {HEADER_BYTES:,} bytes of headers")
        return self._read(size)


class Tarball(tarfile.TarFile):
    """A tarball of a stranger, open for reading: headers are bounded, and those of earlier members are not kept."""

    members: list[tarfile.TarInfo]

    def __init__(self, name: str | None, mode: Any, fileobj: IO[bytes], **options: Any) -> None:
        self._bounded = _LimitedFile(fileobj)
        super().__init__(name, mode, cast("Any", self._bounded), **options)  # which reads the first member's

    def next(self) -> tarfile.TarInfo | None:
        """The next member; None at the end.

        Raises:
            tarfile.TarError: its headers are too long.
        """
        self.members = []
        self.pax_headers = {}  # of all members that follow: names and sizes are in none
        self._bounded.left = HEADER_BYTES
        try:
            return super().next()
        finally:
            self._bounded.left = math.inf

    def end(self) -> None:
        """Reads the padding after the last member: what it is packed in has the checksum of everything at its end.

        Raises:
            OSError, EOFError, lzma.LZMAError: something is damaged; what follows the end is not looked at (gzip(1)).
        """
        try:
            self._bounded.read(READ_BYTES)
        except gzip.BadGzipFile as error:
            if not str(error).startswith(AFTER_GZIP):
                raise


def is_tarball(archive: Path) -> bool:
    """Whether a file is a tarball, packed or not.

    Raises:
        tarfile.TarError: the headers of its first member are too long.
    """
    with archive.open("rb") as file:
        try:
            Tarball.open(fileobj=file).close()
        except tarfile.ReadError:
            return False
    return True


@dataclass
class Unpacking:
    """One archive on its way below `directory`, which is there; archives in it share its limits."""

    archive: Path
    directory: Path
    needed: Needed = lambda _name: True
    bytes_left: int = field(default_factory=lambda: MOST_BYTES)
    members_left: int = field(default_factory=lambda: MOST_MEMBERS)
    links: list[Path] = field(default_factory=list)

    @contextlib.contextmanager
    def explained(self, archive: Path) -> Iterator[None]:
        """Says which archive is damaged, or has members that cannot be beside each other."""
        try:
            yield
        except (*DAMAGED, *UNREADABLE) as error:
            raise _damaged(archive, error) from error
        except OSError as error:
            if error.filename is None and error.errno in UNNAMED:
                raise _damaged(archive, error) from error
            if error.errno not in CLASHES:
                raise
            raise self._refused(f"{error.filename} cannot be made: {error.strerror}") from error

    def tar(self, file: tarfile.TarFile) -> None:
        """Unpacks a tarball, which may be a stream.

        Raises:
            PlaceError: a member leads out of the directory, is a device, or there are too many or too large ones.
        """
        for member in file:
            path = self._path(member.name)
            if path is None:
                continue
            if member.issym():
                self.links.append(self._link(path, member.linkname))
            elif member.islnk():
                self._again(path, member.linkname)
            elif member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                content = file.extractfile(member)
                if content is not None:
                    self._file(path, content, mode=member.mode)
            else:
                raise self._refused(f"{member.name} is a device or a pipe")
        for link in self.links:  # what each leads to is known once all are there
            if not self._inside(link):
                link.unlink()

    def zip(self, file: zipfile.ZipFile) -> None:
        """Unpacks a zip or a jar.

        Raises:
            PlaceError: as `tar`.
        """
        for member in file.infolist():
            path = self._path(member.filename)
            if path is None:
                continue
            if member.is_dir():
                path.mkdir(parents=True, exist_ok=True)
            else:
                with file.open(member) as content:
                    self._file(path, content, mode=(member.external_attr >> 16) or 0o644)

    def _path(self, name: str) -> Path | None:
        """Where a member belongs; None for one that is not needed."""
        self.members_left -= 1
        if self.members_left < 0:
            raise self._refused(f"it has more than {MOST_MEMBERS:,} members")
        parts = PurePosixPath(name).parts
        if not parts or not self.needed(name):  # `./` is the directory itself
            return None
        path = self.directory.joinpath(*parts)
        if name.startswith("/") or ".." in parts or not self._inside(path.parent):
            raise self._refused(f"{name!r} leads out of the directory it is unpacked into")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _inside(self, path: Path) -> bool:
        whole = Path(os.path.realpath(self.directory))
        there = Path(os.path.realpath(path))
        return there == whole or whole in there.parents

    def _file(self, path: Path, content: IO[bytes], *, mode: int) -> None:
        path.unlink(missing_ok=True)  # a link that stands there is not written through
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, (mode & PERMISSIONS) | OWNERS), "wb") as file:
            while chunk := content.read(READ_BYTES):
                self.bytes_left -= len(chunk)
                if self.bytes_left < 0:
                    raise self._refused(f"it unpacks to more than {MOST_BYTES:,} bytes")
                file.write(chunk)
            os.fchmod(file.fileno(), (mode & PERMISSIONS) | OWNERS)

    def _link(self, path: Path, target: str) -> Path:
        if not target:
            raise self._refused(f"{path.name!r} is a link to nothing")
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        return path

    def _again(self, path: Path, name: str) -> None:
        """A hard link to a member that came before; of what is not needed no other name is either."""
        if not self.needed(name):
            return
        before = self.directory.joinpath(*PurePosixPath(name).parts)
        if name.startswith("/") or not self._inside(before) or before.is_symlink() or not before.is_file():
            raise self._refused(f"{path.name!r} is a hard link to {name!r}, which is no file before it")
        if path.resolve() == before.resolve():
            return
        path.unlink(missing_ok=True)
        path.hardlink_to(before)  # a copy would let a small archive fill the disk

    def _refused(self, why: str) -> PlaceError:
        return PlaceError(
            f"{self.archive} is not unpacked: {why}", hint="take the archive from whom you trust, or unpack it yourself"
        )


def _damaged(archive: Path, error: Exception) -> PlaceError:
    return PlaceError(
        f"{archive} cannot be unpacked: {error}", hint="it is cut or damaged: fetch it again, or name another"
    )
