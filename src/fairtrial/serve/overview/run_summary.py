"""One run in a line of the list: what it holds, what it is searched by, and how it is sorted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

StoredState = Literal["not started", "unfinished", "finished", "damaged"]

SEVERITY: Final = ("slower", "faster", "undecided", "equivalent", "none")


@dataclass(frozen=True)
class VerdictCount:
    """How many comparisons on primary metrics have a verdict: `faster` and the like, and the word for it."""

    kind: str
    word: str
    count: int


@dataclass(frozen=True)
class RunSummary:
    """One run in a line.

    Attributes:
        name: of its directory.
        started: UTC; empty before the first line of its journal.
        places: kinds of place.
        versions: of the systems under test, as reported.
        reason: why it is damaged, or has no verdict though it is finished.
        done, planned: trials.
        verdicts: of the stored report; empty without one, or while the run is unfinished.
        breached: guardrails.
        metric, compared: of the comparison whose ratio stands here: the study's first.
        ratio: of it; None where there is none.
        change, interval: as the report prints them.
        comparisons: on primary metrics, this one included.
    """

    name: str
    study: str = ""
    size: str = ""
    started: str = ""
    places: str = ""
    kernels: str = ""
    versions: str = ""
    state: StoredState = "damaged"
    reason: str = ""
    done: int = 0
    planned: int = 0
    verdicts: tuple[VerdictCount, ...] = ()
    breached: int = 0
    metric: str = ""
    compared: str = ""
    ratio: float | None = None
    change: str = ""
    interval: str = ""
    comparisons: int = 0

    @cached_property
    def text(self) -> str:
        """What a search looks through."""
        words = (each.word for each in self.verdicts)
        own = (self.name, self.study, self.size, self.places, self.kernels, self.versions, self.state, self.reason)
        return "\n".join((*own, self.metric, self.compared, *words)).casefold()

    @cached_property
    def severity(self) -> tuple[int, ...]:
        """For sorting: the more comparisons are worse, the smaller."""
        counts = {each.kind: -each.count for each in self.verdicts}
        return tuple(counts.get(kind, 0) for kind in SEVERITY)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of verdict that it has; a guardrail that is breached is worse."""
        return frozenset(each.kind for each in self.verdicts) | ({"slower"} if self.breached else frozenset())
