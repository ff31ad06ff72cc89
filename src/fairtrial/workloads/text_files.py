"""What a study tells somebody else's program: files that become part of its plan, and options that the run keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from fairtrial import foreign
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import FILE_OF, Problems


class TextFile(BaseModel):
    """A file as a plan holds it: its text is sent to the place, so that a record can be run again without it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def text_file(value: str, info: ValidationInfo, *path: str) -> dict[str, str]:
    """Fields of a `TextFile` from a path, seen from the study file that names it at `path`, the field's if not given.

    Raises:
        ValueError: it cannot be read, or is not UTF-8.
    """
    file_of = (info.context or {}).get(FILE_OF)
    beside = Path(file_of(*(path or (info.field_name,)))).parent if file_of else Path()
    file = beside / value
    try:
        return {"name": file.name, "text": foreign.read_text(file)}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ValueError(f"cannot read {file}: {reason}") from error


def read(value: Any, info: ValidationInfo) -> Any:
    """Before a `TextFile` is validated: a path becomes the file, and what a plan holds stays as it is."""
    return text_file(value, info) if isinstance(value, str) else value


RAMP_UP: Final = (
    "Length of ramp-up: load before the measurement window, by a separate process with its own seed, excluded from all "
    "metrics."
)


def spelt(*, yes: object, no: object) -> BeforeValidator:
    """YAML's booleans and numbers as a program reads them."""

    def text(value: object) -> object:
        if isinstance(value, bool):
            return yes if value else no
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value) if isinstance(value, int | float) else value

    return BeforeValidator(text)


def reserving(by_key: Mapping[str, str], unavailable: str) -> dict[str, str]:
    """Options that the run sets itself, each with the key of the study under which it is asked for; empty: none.

    Args:
        by_key: names of options by their key.
        unavailable: names of those that cannot be asked for.
    """
    kept = {option: key for key, options in by_key.items() for option in options.split()}
    return kept | dict.fromkeys(unavailable.split(), "")


def refuse_kept(
    names: Iterable[str], options: Branch, problems: Problems, *, program: str, kept: Callable[[str], str | None]
) -> None:
    """Notes every option that the run sets itself.

    Args:
        names: of options, as the study has them below `options`.
        options: where.
        problems: gets a problem for each.
        program: whose options they are.
        kept: the study's key for an option that the run sets; empty if there is none; None for any other option.
    """
    for name in names:
        key = kept(name)
        if key is not None:
            problems.add(
                f"{program}'s `{name}` is set by the run",
                options.node.where(name),
                field=options.field(name),
                suggestion=f"use `{key}` instead" if key else "leave it out",
            )
