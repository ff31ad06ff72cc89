"""hosts.yaml: the hosts of a farm by name, each a place as a study writes it. Pure but for reading the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, model_validator

from fairtrial.errors import FairtrialError, InputError, Problem
from fairtrial.places import PLACES, is_fresh, place_of
from fairtrial.study.resolved import Section
from fairtrial.study.tree import reading
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tree.problems import Problems, validate, wrong_below

HINT: Final = "write `hosts:` with a place for each name, such as `alpha: {ssh: {host: alpha.example.org}}`"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]


def _reached(place: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(place) != 1 or next(iter(place)) not in PLACES:
        raise ValueError(f"expected one kind of place ({', '.join(PLACES)}), found {', '.join(place) or 'none'}")
    section = Section(place)
    if is_fresh(section):
        raise ValueError(f"`{section.kind}` begins with every trial on this machine: it is no host")
    try:
        place_of(section)
    except FairtrialError as error:
        raise ValueError(str(error)) from error
    return place


class HostsFile(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: dict[Name, Annotated[dict[str, JsonValue], AfterValidator(_reached)]] = Field(min_length=1)

    @model_validator(mode="after")
    def _are_several(self) -> Self:
        """Blocks of one place under two names would run there at the same time."""
        names: dict[tuple[str, BaseModel], str] = {}
        for name, place in self.hosts.items():
            section = Section(place)
            first = names.setdefault((section.kind, place_of(section).parameters), name)
            if first != name:
                raise wrong_below("hosts", name, message=f"{first} and {name} are one place: leave one of them out")
        return self


_FILE: Final = TypeAdapter(HostsFile)


def read(path: Path) -> dict[str, Section]:
    """Reads it; no host is opened.

    Raises:
        InputError: it cannot be read, or something in it is wrong.
    """
    problems = Problems()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(message=f"cannot be read: {error}", file=str(path))], hint=HINT) from error
    node = reading.parse(text, file=str(path), problems=problems)
    found = None if node is None else validate(_FILE, plain(node), node=node, prefix=(), problems=problems)
    problems.raise_if_any()
    hosts = {} if found is None else found.hosts
    if not hosts:
        raise InputError([Problem(message="is empty", file=str(path))], hint=HINT)
    return {name: Section(place) for name, place in hosts.items()}
