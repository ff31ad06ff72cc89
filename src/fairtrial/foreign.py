"""Files that somebody else names or wrote: regular ones of a bounded size, so that reading ends and fits in memory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from pydantic import BaseModel, ValidationError

from fairtrial.errors import RecordError

M = TypeVar("M", bound=BaseModel)
MIB: Final = 1 << 20
TEXT_BYTES: Final = 64 * MIB  # of anything that people write: scripts, claims, lists


def opened(path: Path) -> BinaryIO:
    """A regular file, open for reading.

    Raises:
        OSError: it cannot be opened, or is a directory, a pipe, a socket or a device, which need not end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer does not wait
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read(path: Path, *, most_bytes: int = TEXT_BYTES, offset: int = 0) -> bytes:
    """A file's content, from a byte on.

    Raises:
        OSError: as `opened`, or it is larger.
    """
    with opened(path) as file:
        too_large = os.fstat(file.fileno()).st_size - offset > most_bytes
        file.seek(offset)
        content = b"" if too_large else file.read(most_bytes + 1)  # the kernel's own files have no size
    if too_large or len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes // MIB} MiB", str(path))
    return content


def read_text(path: Path, *, encoding: str = "utf-8", most_bytes: int = TEXT_BYTES) -> str:
    """A file's text, lines ending as they do here.

    Raises:
        OSError: as `read`.
        UnicodeDecodeError: it is in another encoding.
    """
    return read(path, most_bytes=most_bytes).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def holds(path: Path, content: bytes) -> bool:
    """Whether a regular file of this content stands there; one that is longer is not read."""
    try:
        return read(path, most_bytes=len(content)) == content
    except OSError:
        return False


def of_trial(path: Path, model: type[M]) -> M:
    """A JSON file of a trial.

    Raises:
        RecordError: it is missing, cut or changed.
    """
    try:
        return model.model_validate_json(read(path))
    except (OSError, ValidationError) as error:
        raise RecordError(
            f"{path} cannot be read: {error}", hint="restore the trial from a copy, or run it again"
        ) from error
