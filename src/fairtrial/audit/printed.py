"""Figures as publications print them: what number a text means, to which digit, and whether it is a bound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import AfterValidator

Bound = Literal["", "<", ">", "≤", "≥"]

_MINUS: Final = str.maketrans("\u2212\u2013", "--")  # a typesetter's minus and dash
MOST_CHARACTERS: Final = 100
_EXPECTED: Final = (
    "expected a figure: digits, perhaps with a sign, a point, an exponent, `<` before or `%` behind; at most "
    f"{MOST_CHARACTERS} characters"
)
_FIGURE: Final = re.compile(
    r"""
    (?P<bound>[<>≤≥]?)\s*
    (?P<number>
        [+-]?(?=\.?\d)
        (?:[1-9]\d{0,2}(?:[,\u00a0\u202f\u2009 ]\d{3})+|\d*)  # thousands, or no groups
        (?:\.\d+)?
        (?:[eE][+-]?\d{1,3})?
    )
    \s*%?
    [*\u2020\u2021\u00a7]*                             # marks of significance and of footnotes
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class PrintedFigure:
    """What a printed figure says.

    Attributes:
        value: the number, of which the last digit was rounded.
        unit: of that last digit: 0.01 of `4.45`, 10 of `4.45e3`.
        scientific: whether it is written with an exponent.
        bound: how the quantity is said to lie to the number; empty where it is said to be the number.
    """

    value: Decimal
    unit: Decimal
    scientific: bool
    bound: Bound = ""

    def shown(self, value: Decimal) -> str:
        """Another value as this one is written."""
        return str(value).replace("E", "e").replace("e+", "e") if self.scientific else format(value, "f")

    def holds(self, value: float) -> bool:
        """Whether a value lies on this side of the bound."""
        exact, limit = Decimal(repr(float(value))), self.value
        return {"<": exact < limit, ">": exact > limit, "≤": exact <= limit, "≥": exact >= limit}[self.bound]


def read(text: str) -> PrintedFigure:
    """Reads `4.45e3`, `< 0.001`, `4,002`, `−1.5 %` or `0.05*`.

    Raises:
        ValueError: it is no figure.
    """
    match = _FIGURE.fullmatch(text.strip().translate(_MINUS)) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        raise ValueError(_EXPECTED)
    digits = re.sub(r"[,\s]", "", match["number"])
    value = Decimal(digits)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # noqa: S101 - digits are neither infinite nor no number
    scientific = "e" in digits.lower()
    return PrintedFigure(value, Decimal(1).scaleb(exponent), scientific, bound=_bound(match["bound"]))


def _bound(sign: str) -> Bound:
    return next(each for each in ("<", ">", "≤", "≥", "") if each == sign)


def _checked(text: str) -> str:
    if text:
        read(text)
    return text


def _required(text: str) -> str:
    read(text)
    return text


Printed = Annotated[str, AfterValidator(_checked)]
"""A figure as printed, or nothing: the text, which `read` understands."""
RequiredFigure = Annotated[str, AfterValidator(_required)]
"""The same, which must be there."""
