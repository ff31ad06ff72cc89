"""A place as a word of the command line: a kind, an address, a mapping, or a study that names its places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fairtrial.errors import InputError, Problem

if TYPE_CHECKING:
    from fairtrial.record.models import Plan
    from fairtrial.study.resolved import Section

ARGUMENT: Final = "PLACE"
HINT: Final = "give `local`, `ssh://user@host`, a mapping as in a study ('{vm: {kernel: debian-6.1}}'), or a study file"
STUDIES: Final = (".yaml", ".yml")


def of_plan(plan: Plan) -> list[Section]:
    """Every place of a plan, once, in the order of its cells."""
    trials = [trial for arms in plan.resolved.values() for trial in arms.values()]
    every = [place for trial in trials for place in (trial.place, *trial.clients)]
    return list(dict.fromkeys(every))


def is_study(word: str) -> bool:
    """Whether a word names a study file, there or not."""
    return word.endswith(STUDIES)


def place(word: str) -> Section:
    """The place that a word names, its parameters validated.

    Raises:
        InputError: it names none.
    """
    from pydantic import ValidationError

    from fairtrial.places import PLACES, ssh
    from fairtrial.study.resolved import Section
    from fairtrial.study.tree.problems import did_you_mean, listed

    kind, parameters = _address(word) if word.startswith("ssh://") else _written(word)
    if kind not in PLACES:
        message = f"unknown kind of place `{kind}`; expected one of {listed(PLACES)}"
        raise _wrong(message, suggestion=did_you_mean(kind, PLACES))
    try:
        valid = PLACES[kind].model.model_validate(parameters or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join([kind, *(str(part) for part in first["loc"])])
        raise _wrong(first["msg"], field=field) from error
    if isinstance(valid, ssh.SshParameters) and valid.config is not None:
        ssh.allow_configuration(valid.config)
    return Section({kind: valid.model_dump(mode="json")})


def _address(word: str) -> tuple[str, Mapping[str, object]]:
    """`ssh://user@host:port`."""
    try:
        parts = urlsplit(word)
        port = parts.port
    except ValueError as error:
        raise _wrong(f"`{word}` is not an address: {error}") from error
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment or parts.password:
        raise _wrong(f"`{word}` is not the address of a host: expected ssh://user@host:port")
    return "ssh", {"host": parts.hostname, "user": parts.username, "port": port}


def _written(word: str) -> tuple[str, Mapping[str, object]]:
    """A kind alone, or a mapping of one kind to its parameters."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value = YAML(typ="safe", pure=True).load(word)
    except YAMLError as error:
        raise _wrong(f"`{word}` is neither YAML nor JSON") from error
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict) or len(value) != 1:
        raise _wrong(f"expected exactly one kind of place, found {word}")
    kind, parameters = next(iter(value.items()))
    if not isinstance(parameters, dict | None):
        raise _wrong(f"expected a mapping of parameters, found {parameters}", field=str(kind))
    return str(kind), parameters or {}


def _wrong(message: str, *, field: str = "", suggestion: str = "") -> InputError:
    return InputError([Problem(message, ARGUMENT, field=field, suggestion=suggestion)], hint=HINT)
