"""How a table writes numbers: `1234.5`, `1.234,5`, `1 234.5`. Only the spelling that was named is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from fairtrial.errors import InputError, Problem

DECIMALS: Final = (".", ",")
THOUSANDS: Final = ("", ",", ".", " ", "'", "’", "_")
_SPACES: Final = "[ \u00a0\u202f]"  # a table that separates thousands by a space has one of these
_BY_THOUSANDS: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d*)?")


@dataclass(frozen=True)
class Numerals:
    """A spelling of numbers.

    Attributes:
        decimal: `.` or `,`.
        thousands: what separates thousands, if anything does; a space stands for no-break spaces, too.
    """

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        """Refuses a spelling in which a number could be two.

        Raises:
            InputError: a separator is unknown, or both are the same.
        """
        if self.decimal not in DECIMALS:
            problem = Problem(f"expected a point or a comma, found {self.decimal!r}", "--decimal")
            raise InputError([problem], hint="for example --decimal ,")
        if self.thousands not in THOUSANDS or self.thousands == self.decimal:
            expected = " ".join(
                each if each.strip() else "a space" for each in THOUSANDS if each not in ("", self.decimal)
            )
            problem = Problem(f"expected one of {expected}, found {self.thousands!r}", "--thousands")
            raise InputError(
                [problem], hint="thousands and decimals need different separators: --decimal , --thousands ."
            )

    def floats(self, text: pl.Series) -> pl.Series:
        """Numbers, null where a text is none in this spelling."""
        if self == PLAIN:
            return text.cast(pl.Float64, strict=False)
        between = _SPACES if self.thousands == " " else re.escape(self.thousands)
        # No group of thousands is 0: `0.853` with a point between thousands is another spelling, not 853.
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|[0-9]*)" if between else "[0-9]*"
        fits = text.str.contains(rf"^[+-]?{whole}(?:{re.escape(self.decimal)}[0-9]*)?(?:[eE][+-]?[0-9]+)?$")
        plain = text.str.replace_all(between, "") if between else text
        plain = plain.str.replace_all(self.decimal, ".", literal=True)
        return pl.select(pl.when(fits).then(plain)).to_series().cast(pl.Float64, strict=False)

    def suggestion(self, text: str) -> str:
        """What somebody who wrote this may have meant by it."""
        if text.endswith("%"):
            return f"write {text[:-1].strip()} without the sign"
        if self != PLAIN:
            return ""
        with_point, plain = text.replace(",", "."), text.replace(",", "")
        if _BY_THOUSANDS.fullmatch(text):
            return f"write {plain}" + (f", or {with_point} if that is meant" * (with_point.count(".") == 1))
        return f"did you mean {with_point}?" if with_point.count(".") == 1 else ""


PLAIN: Final = Numerals()
