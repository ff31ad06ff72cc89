"""A server unpacked into the cache, once per source."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from fairtrial import caching, debian, disks, hashes
from fairtrial.errors import PlaceError
from fairtrial.servers import archives, maven
from fairtrial.servers.source import Source
from fairtrial.unpacking import PERMISSIONS

MANIFEST = "installed.json"
FILES = "files"


class ServerFiles(BaseModel):
    """A server's files, unpacked.

    Attributes:
        source: where they came from.
        archive_sha256: of what was unpacked.
        base_directory: below it are `bin`, `share` and what else the server wants to find beside itself.
        program: the server's main program.
        program_sha256: its hash, by which another place's copy is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    archive_sha256: str
    base_directory: Path
    program: Path
    program_sha256: str


def cache_directory() -> Path:
    """Where servers are kept: readable for the users that servers run as."""
    return caching.cache_directory() / "servers"


def kept(source: Source, *, cache: Path) -> ServerFiles | None:
    """What a source holds, if it is in the cache; what is damaged there counts as not there."""
    try:
        return _kept(cache / _slug(source), source)
    except PlaceError:
        return None


def install(source: Source, programs: Sequence[str], *, cache: Path) -> ServerFiles:
    """What a source holds, from the cache if it is there.

    Args:
        source: where the files come from.
        programs: names of the server's main program, the first that is found counts.
        cache: directory that keeps what was unpacked.

    Raises:
        PlaceError: it cannot be fetched or unpacked, or holds no such program.
    """
    final = cache / _slug(source)
    kept = _kept(final, source)
    if kept is not None:
        return kept
    _make(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as temporary:
        where = Path(temporary)
        archive = _obtained(source, where)
        archive_sha256 = hashes.of_file(archive)
        hashes.require(archive_sha256, source.sha256, what=str(source))
        whole = where / "whole"
        whole.mkdir()
        archives.unpack(archive, whole / FILES)
        program = _program(whole / FILES, programs, source=source)
        installed = ServerFiles(
            source=str(source),
            archive_sha256=archive_sha256,
            base_directory=final / program.parent.parent.relative_to(whole),
            program=final / program.relative_to(whole),
            program_sha256=hashes.of_file(program),
        )
        (whole / MANIFEST).write_text(installed.model_dump_json(indent=1) + "\n")
        (whole / MANIFEST).chmod(0o644)
        whole.chmod(PERMISSIONS)
        disks.sync_around(whole)  # whoever finds the name trusts what is in it, also after a power failure
        try:
            whole.replace(final)
        except OSError:  # somebody else was first
            installed = _kept(final, source) or _refused(final)
    return installed


def _make(cache: Path) -> None:
    """The cache, and the one that it is in, which the users that servers run as may enter whatever the umask."""
    for directory in (cache.parent, cache):
        with contextlib.suppress(FileExistsError):
            directory.mkdir(parents=True)
            directory.chmod(PERMISSIONS)


def _slug(source: Source) -> str:
    """An archive's name says little of its content, so it goes by the hash of it."""
    if source.kind != "archive":
        return source.slug
    path = Path(source.name).expanduser()
    if not path.is_file():
        raise PlaceError(f"{source.name} does not exist on this machine", hint="name an existing file")
    found = hashes.of_file(path)  # kept: an archive is asked for at every start of its server
    hashes.require(found, source.sha256, what=str(source))
    return f"archive-{path.name}-{found[:16]}"


def _kept(directory: Path, source: Source) -> ServerFiles | None:
    try:
        is_shared = caching.others_write(directory)
        installed = ServerFiles.model_validate_json((directory / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError:
        _refused(directory)
    if is_shared:
        _refused(directory, ", or may: other users can write there")
    if source.sha256 not in (None, installed.archive_sha256):
        _refused(directory, f": its archive has the SHA-256 {installed.archive_sha256}, expected {source.sha256}")
    if not installed.program.is_file():
        _refused(directory)
    return installed


def _refused(directory: Path, why: str = "") -> NoReturn:
    message = f"{directory} differs from what was unpacked there{why}"
    raise PlaceError(message, hint="remove it; it will be fetched again")


def _obtained(source: Source, directory: Path) -> Path:
    if source.kind == "maven":
        return maven.download(source.name, directory, sha256=source.sha256)
    if source.kind == "debian":
        return debian.downloaded(source.name, directory)
    return Path(source.name).expanduser()


def _program(files: Path, programs: Sequence[str], *, source: Source) -> Path:
    """The main program that lies nearest to the root of an archive."""
    for name in programs:
        paths = [path for path in files.rglob(name) if path.is_file() and path.parent.name in archives.PROGRAM_FOLDERS]
        if paths:
            return min(paths, key=lambda path: len(path.parts))
    raise PlaceError(
        f"{source} does not contain {' or '.join(programs)} in a directory {', '.join(archives.PROGRAM_FOLDERS)}",
        hint="name an archive of a complete server",
    )
