"""PostgreSQL's options: one name per option, and what the server says compared with what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairtrial.study.tree.quantities import parse_bytes
from fairtrial.systems import server
from fairtrial.systems.server import Option

# Fixed in the data directory by initdb; they are no lines of a configuration file.
INITIAL = {"data_checksums": "--data-checksums", "wal_segment_size": "--wal-segsize"}
CHECKSUMS_BY_DEFAULT = 18  # from this version on data have checksums unless initdb is told not to
# Act on what is loaded and analysed; they stand in the configuration of loading and of trials.
LOADED = ("default_statistics_target", "default_table_access_method", "default_toast_compression")
# Ours: a private instance is private, and its log and configuration ours to read, because of them.
RESERVED = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "include",
        "include_dir",
        "include_if_exists",
        "listen_addresses",
        "log_destination",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
    }
)

NUMBER = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)$", re.ASCII | re.IGNORECASE)
OWN_UNITS = re.compile(r"^\d+(\.\d+)?\s*([KMGT]iB|B)$")  # fairtrial's own, which the server does not know
UNIT = re.compile(r"^(\d*)([A-Za-z]+)$")
# Bytes and seconds (PostgreSQL 20.1.1: units are case-sensitive, and multiples of 1024).
FACTORS = {"B": 1.0, "kB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
FACTORS |= {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
ON, OFF = ("on", "true", "yes"), ("off", "false", "no")
RELATIVE = 1e-9  # seconds as floating point


def canonical(options: Mapping[str, Option]) -> dict[str, Option]:
    """Option names in lower case, as the server lists them; errors as `server.canonical`."""
    return {
        name: f"{parse_bytes(value)}B" if isinstance(value, str) and OWN_UNITS.match(value) else value
        for name, value in server.canonical(options, spelling=str.lower, reserved=RESERVED).items()
    }


def text(value: Option) -> str:
    """A value as the server takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def line(name: str, value: Option) -> str:
    """A line of `postgresql.conf`; quotes and backslashes keep their meaning as letters."""
    quoted = text(value).replace("\\", "\\\\").replace("'", "''")
    return f"{name} = '{quoted}'"


def initial(options: Mapping[str, Option]) -> dict[str, str]:
    """The asked options that are fixed in the data at creation or by loading."""
    return {name: text(value) for name, value in options.items() if name in INITIAL or name in LOADED}


def creating(options: Mapping[str, Option], *, version: str) -> list[str]:
    """Those of creation as `initdb` takes them, which belongs to a server that says its version so.

    A segment's size is in megabytes there.
    """
    major = re.search(r"\d+", version)
    has_checksums = major is not None and int(major[0]) >= CHECKSUMS_BY_DEFAULT
    arguments: list[str] = []
    for name, value in ((name, text(value)) for name, value in options.items() if name in INITIAL):
        if name == "data_checksums":
            refused = ["--no-data-checksums"] if has_checksums else []
            arguments += [INITIAL[name]] if normal(value) == 1.0 else refused
        else:
            size = normal(value if not value.isdigit() else f"{value}B")
            arguments.append(f"{INITIAL[name]}={size / 2**20:.0f}" if isinstance(size, float) else value)
    return arguments


def differences(options: Mapping[str, Option], effective: Mapping[str, tuple[str, str]]) -> list[str]:
    """One sentence per option that is not in effect as asked.

    Args:
        options: as asked.
        effective: setting and unit of every row of `pg_settings`.
    """
    wrong: list[str] = []
    effective = {name.lower(): of for name, of in effective.items()}  # as options are: the server lists `TimeZone`
    for name, value in options.items():
        if name not in effective:
            wrong.append(f"{name} is not a setting of this server, so it cannot be read back")
            continue
        setting, unit = effective[name]
        if not _same(normal(text(value), unit), normal(setting, unit)):
            wrong.append(f"{name}: expected {text(value)}, the server reports {setting}{unit and ' ' + unit}")
    return wrong


def _same(expected: str | float, reported: str | float) -> bool:
    if isinstance(expected, float) and isinstance(reported, float):
        return abs(expected - reported) <= RELATIVE * max(abs(expected), abs(reported))
    return expected == reported


def normal(value: str, unit: str = "") -> str | float:
    """A value as it compares: bytes, seconds and plain numbers as numbers, switches as 0 and 1, words in lower case.

    Args:
        value: with a unit of its own or without.
        unit: what a number without one counts, as `pg_settings` says it: `kB`, `8kB`, `ms`.
    """
    word = value.strip()
    if word.lower() in ON:
        return 1.0
    if word.lower() in OFF:
        return 0.0
    number = NUMBER.match(word)
    if number and (number[2] in FACTORS or not number[2]):
        amount = float(number[1])
        if number[2]:
            return amount * FACTORS[number[2]]
        counted = UNIT.match(unit)
        # -1 and 0 mean "none" or "as another setting says", whatever the unit.
        if counted is None or amount <= 0:
            return amount
        return amount * float(counted[1] or 1) * FACTORS.get(counted[2], 1.0)
    return re.sub(r"\s*,\s*", ",", word.lower())
