"""Words for people that more than one layer writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic import ValidationError

# Why a cell of a run that may stop early got no more blocks.
STOP_REASONS: Final[Mapping[str, str]] = {
    "": "decided",
    "difference": "a difference is shown",
    "equivalence": "equivalence is shown",
    "decided": "every comparison is decided",
    "futility": "a claim has become improbable",
    "precision": "the interval is narrow enough",
    "blocks": "that is the largest number",
    "time_budget": "the next round would not end within the time budget",
}
_MINUTE_S, _HOUR_S = 60, 3600
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that spreadsheets compute
# What may stand in a text though it prints nothing: lines, tabs, and every space (category Zs), which moves no cursor.
LAYOUT: Final = frozenset("\n\t\u00a0\u1680\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
_BINARY_UNITS: Final = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def size(count: int) -> str:
    """Bytes as `1.5 GiB`."""
    for unit, bits in _BINARY_UNITS:
        if count >= 1 << bits:
            return f"{count / (1 << bits):.1f} {unit}"
    return f"{count} B"


def printable(text: str) -> str:
    """The same text with what would not be seen, or would turn others' order around, as escape sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in LAYOUT else ascii(each)[1:-1] for each in text)


def csv_cell(text: str) -> str:
    """A text as a cell of a table: one that a spreadsheet would compute begins with an apostrophe. No numbers."""
    line = text.replace("\r", " ")  # which ends a row where no quotes are around it
    return f"'{line}" if text.startswith(FORMULAS) else line


def cut(text: str, most: int) -> str:
    """A text of at most `most` characters; what was longer ends in `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(count: int, noun: str) -> str:
    """`1 block`, `3 blocks`: for nouns whose plural takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration(seconds: float) -> str:
    """Seconds as `45 s`, `12 min` or `3 h 20 min`."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    minutes = round(seconds / _MINUTE_S)
    return f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S:02d} min"


def first_problem(error: ValidationError) -> str:
    """The first field that is not what it should be, and why, on one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
