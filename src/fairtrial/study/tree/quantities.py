"""Quantities with units: text in a study file, numbers in base units (bytes, seconds, shares of one) in Python.

Owns units, their parsing and their exact formatting; every kind's parameters use these types. Parsing and formatting
go through decimals, so that `format` then `parse` gives the very same number.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SerializationInfo, WithJsonSchema

WITH_UNITS: Mapping[str, bool] = {"units": True}
"""Serialisation context under which quantities become text with a unit; without it they stay numbers."""

BYTE_UNITS: Mapping[str, Decimal] = {
    "B": Decimal(1),
    "KB": Decimal(10**3),
    "MB": Decimal(10**6),
    "GB": Decimal(10**9),
    "TB": Decimal(10**12),
    "KiB": Decimal(1 << 10),
    "MiB": Decimal(1 << 20),
    "GiB": Decimal(1 << 30),
    "TiB": Decimal(1 << 40),
}
SECOND_UNITS: Mapping[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
}
RATE_UNITS: Mapping[str, Decimal] = {"/s": Decimal(1), "/min": Decimal(1) / 60, "/h": Decimal(1) / 3600}
SHARE_UNITS: Mapping[str, Decimal] = {"%": Decimal("0.01")}

NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"  # no sign: none of the quantities is ever negative
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*([A-Za-zµ%/]*)\s*")
_LONGEST_TEXT = 64  # no quantity needs more; keeps a huge exponent from becoming a huge number
_LARGEST = Decimal("1e18")  # 64-bit bytes, and thirty billion years


def _parse(value: object, units: Mapping[str, Decimal], *, expected: str) -> Decimal:
    """Reads a number or a text with a unit.

    Raises:
        ValueError: neither, with what was expected.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        shown = json.dumps(value, default=repr)  # `true` and `null` as in YAML
        raise ValueError(f"expected {expected}, found {shown}")  # noqa: TRY004 - pydantic collects ValueError only
    text = value if isinstance(value, str) else repr(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        negative = text.lstrip().startswith("-") and _QUANTITY.fullmatch(text.lstrip()[1:])
        raise ValueError(f"expected {expected}, found {value!r}{', which is negative' if negative else ''}")
    number, unit = Decimal(match[1]), match[2].replace("µ", "u")
    if unit and unit not in units:
        raise ValueError(f"expected {expected}, found {value!r}: {unit!r} is not one of {', '.join(units)}")
    result = number * (units[unit] if unit else 1)
    if result > _LARGEST:
        raise ValueError(f"expected {expected}, found {value!r}, which is out of range")
    return result


def parse_bytes(value: object) -> int:
    """`384MiB`, `512KB`, `100 B` or a plain whole number → bytes.

    Raises:
        ValueError: it is none of these.
    """
    number = _parse(value, BYTE_UNITS, expected="a size such as 384MiB or 1GB")
    if number != number.to_integral_value():
        raise ValueError(f"expected a whole number of bytes, found {value!r}")
    return int(number)


def parse_seconds(value: object) -> float:
    """`500us`, `250ms`, `60s`, `10min`, `2h` or a plain number of seconds → seconds.

    Raises:
        ValueError: it is none of these.
    """
    return float(_parse(value, SECOND_UNITS, expected="a time such as 250ms, 60s or 10min"))


def parse_rate(value: object) -> float:
    """`100/s`, `90/min`, `5/h` or a plain number per second → per second.

    Raises:
        ValueError: it is none of these.
    """
    return float(_parse(value, RATE_UNITS, expected="a rate such as 100/s or 90/min"))


def parse_share(value: object) -> float:
    """`2 %` or `0.02` → 0.02.

    Raises:
        ValueError: it is none of these.
    """
    return float(_parse(value, SHARE_UNITS, expected="a share such as 2 % or 0.02"))


def _format(value: float, units: Mapping[str, Decimal]) -> str:
    """The largest unit in which the value is whole; the smallest if there is none."""
    number = Decimal(repr(value))
    for unit, size in sorted(units.items(), key=lambda entry: -entry[1]):
        scaled = number / size
        if number and scaled == scaled.to_integral_value() and scaled * size == number:
            return f"{int(scaled)}{unit}"
    return ""


def format_bytes(value: int) -> str:
    """Bytes → `384MiB`; exact."""
    return _format(value, BYTE_UNITS) or f"{value}B"


def format_seconds(value: float) -> str:
    """Seconds → `250ms`, `90s`, `10min`; exact."""
    return _format(value, SECOND_UNITS) or f"{value!r}s"


def format_rate(value: float) -> str:
    """Rate per second → `100/s`; exact."""
    return f"{int(value) if value == int(value) else repr(value)}/s"


def format_share(value: float) -> str:
    """Share of one → `2%`; exact."""
    percent = (Decimal(repr(value)) * 100).normalize()
    text = f"{percent:f}%"
    return text if len(text) <= _LONGEST_TEXT else f"{percent}%"  # 3.8E-109%


def with_unit_of(text: str, number: float) -> str:
    """A number in base units as a quantity of the sort that a text is; empty for zero, and where it has no unit."""
    match = _QUANTITY.fullmatch(text)
    unit = match[2].replace("µ", "u") if match and number else ""
    formats: tuple[tuple[Mapping[str, Decimal], Callable[[Any], str]], ...] = (
        (BYTE_UNITS, format_bytes),
        (SECOND_UNITS, format_seconds),
        (RATE_UNITS, format_rate),
        (SHARE_UNITS, format_share),
    )
    return next((formatted(number) for units, formatted in formats if unit in units), "")


def _serialiser(formatter: Callable[[Any], str]) -> PlainSerializer:
    def serialise(value: Any, info: SerializationInfo) -> Any:
        return formatter(value) if info.context and info.context.get("units") else value

    return PlainSerializer(serialise)


def _schema(units: Mapping[str, Decimal], *, number: str, description: str, examples: list[str]) -> WithJsonSchema:
    names = "|".join(name for unit in units for name in dict.fromkeys((unit, unit.replace("u", "µ"))))
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": number, "minimum": 0},
                {"type": "string", "pattern": rf"^\s*{NUMBER}\s*({names})?\s*$"},
            ],
            "description": description,
            "examples": examples,
        }
    )


Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    _serialiser(format_bytes),
    _schema(BYTE_UNITS, number="integer", description="Size in bytes.", examples=["384MiB", "1GB"]),
]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    _serialiser(format_seconds),
    _schema(SECOND_UNITS, number="number", description="Time in seconds.", examples=["250ms", "60s", "10min"]),
]
Rate = Annotated[
    float,
    BeforeValidator(parse_rate),
    _serialiser(format_rate),
    _schema(RATE_UNITS, number="number", description="Rate per second.", examples=["100/s", "90/min"]),
]


def _whole_milliseconds(seconds: float) -> float:
    if round(seconds * 1000) != round(seconds * 1000, 6):
        raise ValueError(f"expected whole milliseconds, found {seconds * 1000:g} ms")
    return seconds


WholeMilliseconds = Annotated[Seconds, AfterValidator(_whole_milliseconds)]


def _whole(rate: float) -> float:
    if rate < 1 or rate != int(rate):
        raise ValueError(f"expected a whole number per second, found {format_rate(rate)}")
    return rate


WholeRate = Annotated[Rate, AfterValidator(_whole)]
"""A rate that kernels and QEMU count in whole numbers per second."""

Share = Annotated[
    float,
    BeforeValidator(parse_share),
    _serialiser(format_share),
    _schema(SHARE_UNITS, number="number", description="Share of one.", examples=["2%", "0.02"]),
]


@functools.lru_cache(maxsize=256)
def _said_against(line: str) -> str:
    """Cached: each combination of levels asks again, and shlex takes quadratic time for a long word."""
    try:
        return "" if shlex.split(line) else "the command line is empty"
    except ValueError as error:
        return f"not a command line: {error}"


def _command_line(text: str) -> str:
    if said := _said_against(text):
        raise ValueError(said)
    return text


CommandLine = Annotated[str, AfterValidator(_command_line)]
"""A command line that a shell's rules can split; no shell runs it."""


def bare_program(line: str) -> str:
    """The name by which a command line's program is sought on the search path; empty if the line gives its path."""
    program = shlex.split(line)[0]
    return "" if "/" in program else program


PLACEHOLDER: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_.-]*)\}")
"""A name in braces, in whose place stands what is called so."""
