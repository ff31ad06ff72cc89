"""What a specification asks of a drive's inputs, point by point, and whether counts keep to it.

Two things are asked of a share. It must be one that the specified chance gives: an exact binomial test at `LEVEL`. And
it must lie within the specification's own bounds (of TPC-C, clause 9.2.2.5), where there were enough draws that a
faithful drive leaves them with a probability of less than `LEVEL`; with fewer, they say nothing about the drive.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict
from scipy import special

from fairtrial.metrics.fidelity import binomial

Counts = Mapping[str, int]
Verdict = Literal["kept", "broken", "untested"]

LEVEL: Final = 1e-6  # a record has some twenty points: one faithful record in 50,000 is called broken by chance
FARTHEST: Final = float(-special.ndtri(LEVEL / 2))  # standard deviations that chance leaves at that level


class FidelityPoint(BaseModel):
    """One thing the specification asks for.

    Attributes:
        name: what, for a table.
        clause: where the specification asks for it.
        asked: what it asks for.
        count, of: how often it was drawn, of how many; `of` 0: never.
        value: what was drawn: a share, or a mean.
        unit: of the value.
        low, high: the bounds that were held against the value; None: there are none, or too few draws for them.
        p: probability of counts at least as far from the specified chance; None where nothing is left to chance.
        verdict: `untested` where nothing was drawn or counted.
        trials_broken: trials whose own counts, taken alone, break it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    clause: str
    asked: str
    count: int
    of: int
    value: float | None
    unit: Literal["share", "lines", "s"] = "share"
    low: float | None = None
    high: float | None = None
    p: float | None = None
    verdict: Verdict
    trials_broken: int = 0


class Deviation(BaseModel):
    """Something the study chose that the specification does not allow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clause: str
    chosen: str


class Specification(BaseModel, ABC):
    """What a workload's draws must keep to. Its fields are parameters: a workload that has them all is held against it.

    Attributes:
        notes: how its points come about, for a report.
        broken: what a drive that breaks a point has done.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    notes: ClassVar[tuple[str, ...]]
    broken: ClassVar[str]

    @abstractmethod
    def length(self, drawn: Counts) -> int:
        """Transactions of all types."""

    @abstractmethod
    def points(self, drawn: Counts, *, trials: int = 1) -> Iterable[FidelityPoint]:
        """Every point about counts that may be added up over `trials` drives of equal parameters."""

    def points_of_each(self, drives: Sequence[Counts]) -> Iterable[FidelityPoint]:  # noqa: ARG002 - a default
        """Points about counts that do not add up."""
        return ()

    def comparable(self, drawn: Counts) -> Counts:
        """The counts, where a drive's own constants are in some of them, as they were before."""
        return drawn

    def deviations(self) -> Iterable[Deviation]:
        """What the study chose otherwise."""
        return ()


@dataclass(frozen=True)
class Requirement:
    """The words of a point: what it is called, where it is asked for, what is asked."""

    name: str
    clause: str
    asked: str

    def point(self, count: int, of: int, *, verdict: Verdict, **rest: Any) -> FidelityPoint:
        """The point; its value is the ratio of the counts unless `rest` has another."""
        value = count / of if of else None
        return FidelityPoint(**{**asdict(self), "count": count, "of": of, "value": value, "verdict": verdict, **rest})


def judged(
    requirement: Requirement,
    counted: tuple[int, int],
    *,
    expected: float,
    bounds: tuple[float, float] | None,
    always: bool = False,
) -> FidelityPoint:
    """A share against its chance and, where there are enough draws or chance has no part (`always`), its bounds."""
    count, of = counted
    if not of:
        return requirement.point(count, of, verdict="untested")
    if not 0 <= count <= of:
        return requirement.point(count, of, verdict="broken")
    p = binomial.p_value(count, of, expected)
    held = bounds if bounds and (always or _enough(of, expected, bounds)) else None
    inside = held is None or held[0] <= count / of <= held[1]
    low, high = held or (None, None)
    return requirement.point(count, of, low=low, high=high, p=p, verdict=verdict_of(holds=p >= LEVEL and inside))


def _enough(of: int, expected: float, bounds: tuple[float, float]) -> bool:
    """Whether a faithful drive leaves the bounds with a probability below `LEVEL`."""
    deviation = math.sqrt(expected * (1 - expected) / of)
    room = min(expected - bounds[0], bounds[1] - expected)
    return FARTHEST * deviation <= room


def verdict_of(*, holds: bool) -> Verdict:
    """Of a point whose inputs were drawn."""
    return "kept" if holds else "broken"
