"""hosts.yaml: the hosts of a farm by name, each a place as a study writes it. Pure but for reading the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from fairtrial.errors import InputError, Problem
from fairtrial.places import PLACES, is_fresh
from fairtrial.study.resolved import Section
from fairtrial.study.tree import reading
from fairtrial.study.tree.nodes import Tree, plain
from fairtrial.study.tree.problems import Problems, brief, validate

HINT: Final = "write `hosts:` with a place for each name, such as `alpha: {ssh: {host: alpha.example.org}}`"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]


def _reached(place: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(place) != 1 or next(iter(place)) not in PLACES:
        raise ValueError(f"expected one kind of place ({', '.join(PLACES)}), found {', '.join(place) or 'none'}")
    section = Section(place)
    if is_fresh(section):
        raise ValueError(f"`{section.kind}` begins with every trial on this machine: it is no host")
    return place


class HostsFile(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: dict[Name, Annotated[dict[str, JsonValue], AfterValidator(_reached)]] = Field(min_length=1)


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
    if not isinstance(node, Tree):
        message = "is empty" if node is None else f"expected a mapping, found {brief(plain(node))}"
        raise InputError([Problem(message, str(path))], hint=HINT)
    found = validate(_FILE, plain(node), node=node, prefix=(), problems=problems)
    hosts = {} if found is None else {name: Section(place) for name, place in found.hosts.items()}
    _check(hosts, node.tree("hosts"), problems)
    problems.raise_if_any(hint=HINT)
    return hosts


def _check(hosts: Mapping[str, Section], tree: Tree, problems: Problems) -> None:
    """Parameters of places, and two names of one: its blocks would run there at the same time."""
    names: dict[tuple[str, BaseModel], str] = {}
    for name, section in hosts.items():
        path, adapter = ("hosts", name, section.kind), TypeAdapter(PLACES[section.kind].model)
        node = tree.tree(name).entries[section.kind]
        parameters = validate(adapter, section.parameters, node=node, prefix=path, problems=problems)
        first = name if parameters is None else names.setdefault((section.kind, parameters), name)
        if first != name:
            message = f"{first} and {name} are one place: leave one of them out"
            problems.add(message, tree.tree(name).at, field=path[:2])
