"""What came of checking one printed figure or statement."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Final, Literal, get_args

from fairtrial.audit.printed import read

_MOST_DIGITS: Final = 2000  # from the largest double down to the last digit that a printed exponent reaches
_HALF: Final = Decimal("0.500001")  # of the last digit: a millionth more than the reach of rounding
TOO_LARGE: Final = "the value exceeds the range of a floating-point number"

Verdict = Literal["confirmed", "contradicted", "not decided", "not checkable"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
Kind = Literal[
    "differs",
    "cut",
    "elsewhere",
    "nowhere",
    "not significant",
    "significant",
    "empty rest",
    "sign",
    "label",
    "order",
    "bound",
]

EXPLAINED: Final[dict[Kind, str]] = {
    "differs": "the data give a different value",
    "cut": "the digits are truncated instead of rounded",
    "elsewhere": "the interval belongs to a different comparison",
    "nowhere": "no comparison of the data gives this interval",
    "not significant": "an effect is claimed, but the interval contains 0",
    "significant": "called not significant, but the interval excludes 0",
    "empty rest": "the rest is called not significant, but every comparison is listed as an effect",
    "sign": "the sentence says higher, the figures are negative",
    "label": "the printed script cannot have printed this label",
    "order": "the data show a different order",
    "bound": "the value does not satisfy the bound",
}


@dataclass(frozen=True)
class AuditFinding:
    """One printed figure or statement, checked.

    Attributes:
        where: the place in the publication.
        what: the comparison and the quantity.
        printed, computed: figures, the latter to the same digits; `computed` is empty where nothing can be.
        why: what is wrong, or why it is not decided or not checkable; empty if confirmed.
        note: what limits the claim whatever its verdict is: the noise floor.
    """

    where: str
    what: str
    printed: str
    computed: str
    verdict: Verdict
    kind: Kind | None = None
    why: str = ""
    note: str = ""


@dataclass(frozen=True)
class Passage:
    """A place in the publication, where findings are made; `note` goes with all of them that data were held against."""

    where: str
    note: str = ""

    def checked(self, what: str, printed: str, *, computed: str, kind: Kind | None) -> AuditFinding:
        """What the data give, and how that disagrees; None if it agrees."""
        finding = AuditFinding(
            self.where, what, printed=printed, computed=computed, verdict="confirmed", note=self.note
        )
        return finding if kind is None else replace(finding, verdict="contradicted", kind=kind, why=EXPLAINED[kind])

    def undecided(self, what: str, printed: str, *, computed: str, why: str) -> AuditFinding:
        """The data do not separate what the claim puts in order."""
        finding = self.checked(what, printed, computed=computed, kind=None)
        return replace(finding, verdict="not decided", why=why)

    def unknown(self, what: str, printed: str, why: str) -> AuditFinding:
        """The data hold nothing to compare with the claim."""
        return AuditFinding(self.where, what, printed=printed, computed="", verdict="not checkable", why=why)

    def figure(self, what: str, printed: str, value: float) -> AuditFinding:
        """A figure against a value, at the digits printed."""
        if not math.isfinite(value):
            return self.unknown(what, printed, TOO_LARGE)
        computed, kind = figure(printed, value)
        return self.checked(what, printed, computed=computed, kind=kind)


def figure(text: str, value: float) -> tuple[str, Kind | None]:
    """The value to the digits of the printed figure, and how they disagree; None if they agree.

    A value halfway between two figures agrees with both: C, R and Python print the binary value, ties to even, others
    the decimal one, ties up; and the order of a sum moves its last bits.
    """
    printed = read(text)
    if not math.isfinite(value):
        return str(value), "differs"
    if printed.bound:
        return f"{value:.3g}", None if printed.holds(value) else "bound"
    exact = Decimal(repr(float(value)))
    with localcontext(prec=_MOST_DIGITS):
        if abs(exact - printed.value) <= _HALF * printed.unit + Decimal(math.ulp(value)):
            return printed.shown(printed.value), None
        rounded = exact.quantize(printed.unit, rounding=ROUND_HALF_UP)
        cut = printed.value == exact.quantize(printed.unit, rounding=ROUND_DOWN)
    return printed.shown(rounded), "cut" if cut else "differs"
