"""How a finding is made: one that was seen, one that could not be, and one whose figure has two limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairtrial.record.models import Finding, Grade

UNKNOWN: Final = "not seen"


@dataclass(frozen=True)
class GradeLimits:
    """From where on a figure is no longer fine, and from where on it makes results wrong. More is worse."""

    caution: float
    unfit: float

    def grade(self, figure: float) -> Grade:
        """`fine` below both."""
        if figure >= self.unfit:
            return "unfit"
        return "caution" if figure >= self.caution else "fine"


def graded(  # noqa: PLR0913 - the fields of a finding
    *, name: str, value: str, grade: Grade, why: str, fix: str, biases: bool = False
) -> Finding:
    """What was seen; what is fine needs no fix."""
    return Finding(name=name, value=value, grade=grade, why=why, fix="" if grade == "fine" else fix, biases=biases)


def unknown(name: str, *, why: str, how: str, value: str = UNKNOWN) -> Finding:
    """What could not be seen, with how to see it."""
    return Finding(name=name, value=value, grade="unknown", why=why, fix=how)


def size(kibibytes: int) -> str:
    """`1.5 GiB`."""
    return f"{kibibytes / (1 << 20):.3g} GiB"


def share(figure: float) -> str:
    """`3.2 %`."""
    return f"{100 * figure:.3g} %"
