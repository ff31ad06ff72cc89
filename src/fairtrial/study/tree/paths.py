"""Paths on this machine as users write them: `~` is a home directory, and must be somebody's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator


def expanded(path: str | Path) -> Path:
    """The path with `~` and `~user` as home directories.

    Raises:
        ValueError: nobody of that name is known here.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{Path(path).parts[0]} is not a home directory here: no user of that name exists") from error


def _with_a_home(path: str) -> str:
    expanded(path)
    return path


OwnPath = Annotated[str, AfterValidator(_with_a_home)]
"""A path that `expanded` takes, kept as it is written."""
