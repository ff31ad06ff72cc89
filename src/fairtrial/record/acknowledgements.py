"""acknowledged.yaml: changes in a history that somebody has looked at, in a small file beside the records.

Owns its reading. It must not know how changes are found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree import reading
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tree.problems import Problems, validate

NAME: Final = "acknowledged.yaml"


class Acknowledgement(BaseModel):
    """One entry; see `fairtrial.history.models.KnownChange`.

    Attributes:
        run: the first run after the change, by its name.
        because: why it is no news.
        series, metric: which; empty means all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    because: str
    series: str = ""
    metric: str = ""


_ENTRIES: Final = TypeAdapter(list[Acknowledgement])


def read(path: Path) -> list[Acknowledgement]:
    """Reads a file of acknowledgements; an empty one has none.

    Raises:
        InputError: it cannot be read, or something in it is wrong.
    """
    problems = Problems()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem(message=f"cannot be read: {error}", file=str(path))
        raise InputError([problem], hint="write a list of `{run: NAME, because: TEXT}`") from error
    node = reading.parse(text, file=str(path), problems=problems)
    entries = [] if node is None else validate(_ENTRIES, plain(node), node=node, prefix=(), problems=problems)
    problems.raise_if_any()
    return entries or []
