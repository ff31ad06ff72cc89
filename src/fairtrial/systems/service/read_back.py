"""The value of an option as a command prints it, and when it is the one that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from fairtrial.systems.existing.server import is_secret
from fairtrial.systems.service import rendering
from fairtrial.systems.service.parameters import OPTION, Option, ServiceParameters
from fairtrial.wire.open_place import OpenPlace

NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)
SWITCHES: Final = ({"on", "true", "yes", "1"}, {"off", "false", "no", "0"})


def argv(parameters: ServiceParameters, name: str, handed_in: Mapping[str, str]) -> list[str]:
    """The command line that prints the value of an option in its last line."""
    commands = parameters.read_back
    command = commands[name] if isinstance(commands, dict) else commands or ""
    return rendering.argv(command, {**handed_in, OPTION: name})


def readable(parameters: ServiceParameters, names: Iterable[str]) -> list[str]:
    """Those of some options that a command of the study reads, and whose value may be recorded."""
    commands = parameters.read_back
    shown = [name for name in names if not is_secret(name)]
    return [name for name in shown if (name in commands if isinstance(commands, dict) else commands)]


def printed(
    place: OpenPlace, parameters: ServiceParameters, handed_in: Mapping[str, str], *, names: Iterable[str]
) -> dict[str, str]:
    """What the command prints of some options in the last line of its standard output, which may be empty.

    Raises:
        PlaceError: it fails.
    """
    commands = {name: argv(parameters, name, handed_in) for name in names}
    hint = "fix system.service.read_back"
    return {name: place.succeeded(words, hint=hint).stdout.rpartition("\n")[2] for name, words in commands.items()}


def values(printed_lines: Mapping[str, str]) -> dict[str, str]:
    """Values without the blanks that commands print around them."""
    return {name: line.strip() for name, line in printed_lines.items()}


def is_same(expected: str, reported: str) -> bool:
    """Whether two values are the same text, the same number, or the same position of a switch."""
    one, other = expected.strip(), reported.strip()
    if one == other:
        return True
    if NUMBER.fullmatch(one) and NUMBER.fullmatch(other):
        return Decimal(one) == Decimal(other)
    return any(one.lower() in words and other.lower() in words for words in SWITCHES)


def differences(options: Mapping[str, Option], effective: Mapping[str, str]) -> list[str]:
    """One sentence per option that is not in effect as asked."""
    expected = {name: rendering.value_text(value) for name, value in options.items()}
    return [
        f"{name}: expected {value}, the service reports {effective[name]}"
        for name, value in expected.items()
        if not is_same(value, effective[name])
    ]
