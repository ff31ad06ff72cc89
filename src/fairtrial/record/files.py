"""Writing so that a kill or a full disk at any instant leaves the old state or the new one, never a mixture."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final

from fairtrial import disks

GIVEN: Final = "study.yaml"  # of a record: the study as given
MERGED: Final = "study.merged.yaml"  # the study as it ran
PARTIAL_PREFIX: Final = ".partial-"  # of a trial's directory until it is whole; dot: no reader takes it for a trial
HASH_CHUNK_BYTES = 1 << 20  # large enough that the hash, not the read call, is the cost


def sync_directory(directory: Path) -> None:
    """Makes renames and new names in `directory` durable (fsync(2) of the directory itself)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path, *, fresh: bool = False) -> None:
    """Makes a directory with its parents, durably: what is synced below a name that is lost is lost as well.

    Raises:
        FileExistsError: it is there, and shall be `fresh`.
    """
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=not fresh)
    for each in missing:
        sync_directory(each.parent)


def write_synced(path: Path, data: bytes) -> None:
    """Replaces `path` by `data` in one step: temporary sibling, fsync, rename, fsync of the directory."""
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_tree(directory: Path) -> None:
    """Makes every file and directory below `directory` durable."""
    for root, _directories, files in os.walk(directory):
        for name in files:
            with (Path(root) / name).open("rb") as file:
                os.fsync(file.fileno())
        sync_directory(Path(root))


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return digest(file)


def digest(file: BinaryIO) -> str:
    """The same of an open file, in pieces: it may be larger than memory."""
    found = hashlib.sha256()
    while chunk := file.read(HASH_CHUNK_BYTES):
        found.update(chunk)
    return found.hexdigest()


def relative_files(directory: Path) -> Iterator[str]:
    """Every regular file below `directory`, as sorted POSIX paths relative to it."""
    yield from sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def hashes(directory: Path) -> dict[str, str]:
    """Relative path → SHA-256 of every file below `directory`."""
    return {name: sha256(directory / name) for name in relative_files(directory)}


def disk_explained(directory: Path) -> AbstractContextManager[None]:
    """Turns a disk that is full or broken into an error that says which, and that nothing finished is lost."""
    return disks.explained(directory, written="the record")
