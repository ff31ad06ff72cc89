"""Options of MariaDB and MySQL: one name per option, and what the server says compared with what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from fairtrial.study.tree.quantities import parse_bytes
from fairtrial.systems import server
from fairtrial.systems.server import Option

# Ours: a private instance is private because of them.
RESERVED = ("basedir", "bind_address", "datadir", "pid_file", "port", "skip_networking", "socket", "tmpdir", "user")
# Options that are no system variable of the same name, on servers that have none of that name.
SYNONYMS = {"transaction_isolation": "tx_isolation", "log_error_verbosity": "log_warnings"}
# Options that name a file and read back as a switch: the variable that has the name.
NAMED = {"log_bin": "log_bin_basename"}
# Options of the command line alone: a list of libraries, by `;`, each of which may follow a plugin's name and `=`.
PLUGIN_LISTS = ("early_plugin_load", "plugin_load", "plugin_load_add")

NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.ASCII)
SIZE = re.compile(r"^(\d+)\s*([kmgtpe]?)$", re.IGNORECASE)
UNITS = re.compile(r"^\d+(\.\d+)?\s*([KMGT]iB|[KMGT]?B)$")  # fairtrial's own units: the server gets bytes
FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
ON, OFF = ("on", "1", "true", "yes"), ("off", "0", "false", "no")


def canonical(options: Mapping[str, Option]) -> dict[str, Option]:
    """Option names with underscores and in lower case, as the server lists them; errors as `server.canonical`."""
    by_name = server.canonical(options, spelling=lambda name: name.replace("-", "_").lower(), reserved=RESERVED)
    return {
        name: parse_bytes(value) if isinstance(value, str) and value.endswith("B") and UNITS.match(value) else value
        for name, value in by_name.items()
    }


def text(value: Option) -> str:
    """A value as the configuration file takes it."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value)


def initial(options: Mapping[str, Option], fixed: Sequence[str]) -> dict[str, str]:
    """The asked options that are `fixed` in the data at creation."""
    return {name: text(value) for name, value in options.items() if name in fixed}


def differences(options: Mapping[str, Option], effective: Mapping[str, str]) -> list[str]:
    """One sentence per option that is not in effect as asked."""
    wrong: list[str] = []
    effective = {name.lower(): said for name, said in effective.items()}  # as options are: it lists `wsrep_OSU_method`
    for name, value in options.items():
        said = _said(name, value, effective)
        if said is None:
            wrong.append(f"{name} is not a variable of this server, so it cannot be read back")
        elif name in PLUGIN_LISTS:
            absent = sorted(libraries(text(value)) - libraries(said))
            wrong += [f"{name}: expected {', '.join(absent)}, the server loaded {said or 'none'}"] if absent else []
        elif normal(text(value)) != normal(said):
            wrong.append(f"{name}: expected {text(value)}, the server reports {said}")
    return wrong


def libraries(text: str) -> set[str]:
    """Libraries that a list of plugins names."""
    return {part.rpartition("=")[2].strip().removesuffix(".so") for part in text.split(";") if part.strip()}


def _said(name: str, value: Option, effective: Mapping[str, str]) -> str | None:
    """What the server says of an option; None if it has no such variable."""
    if name in NAMED and normal(text(value)) not in (0.0, 1.0):
        path = effective.get(NAMED[name], "")
        return path if text(value).startswith("/") else PurePosixPath(path).name
    return effective.get(name, effective.get(SYNONYMS.get(name, name)))


def normal(value: str) -> str | float:
    """A value as it compares: sizes and numbers as numbers, switches as 0 and 1, words in lower case."""
    word = value.strip().lower()
    if word in ON:
        return 1.0
    if word in OFF:
        return 0.0
    size = SIZE.match(word)
    if size:
        return float(int(size[1]) * FACTORS[size[2].lower()])
    if NUMBER.match(word):  # and not whatever Python takes for one: `nan` and `inf` are words here
        return float(word)
    return word.replace("_", "-").rstrip("/")
