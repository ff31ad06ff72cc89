"""Doubts as a reader wants them: one reason once, with all the places it applies to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from fairtrial.analyse.models import Analysis, Doubt
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.report import fidelity

PLACES_NAMED: Final = 3  # in a terminal; more are counted
_ENDS: Final = (".", "!", "?", "…")


@dataclass(frozen=True)
class Scope:
    """Where a doubt applies; an empty name means everywhere."""

    metric: str
    cell: str
    arm: str


@dataclass(frozen=True)
class Concern:
    """Equal doubts. `spots` is empty for one about the whole run; `alike` counts those a reader is spared."""

    code: str
    message: str
    advice: str
    spots: tuple[Scope, ...]
    alike: int = 0

    @property
    def where(self) -> str:
        """Every place: `throughput_tpm: low (wal), high (delete, wal); latency_ns_p99: high`."""
        by_metric: dict[str, dict[str, list[str]]] = {}
        for spot in self.spots:
            arms = by_metric.setdefault(spot.metric, {}).setdefault(spot.cell, [])
            if spot.arm and spot.arm not in arms:
                arms.append(spot.arm)
        return "; ".join(_in_cells(metric, cells) for metric, cells in by_metric.items())

    @property
    def briefly(self) -> str:
        """A few places, or how many: `failed_share, 12 comparisons`."""
        places = dict.fromkeys((spot.metric, spot.cell) for spot in self.spots)
        if len(places) <= PLACES_NAMED:
            return self.where
        metrics = dict.fromkeys(metric for metric, _ in places if metric)
        named = [next(iter(metrics))] if len(metrics) == 1 else [f"{len(metrics)} metrics"] if metrics else []
        return ", ".join([*named, f"{len(places)} comparisons"])

    @property
    def sentence(self) -> str:
        """Its message, and how many like it a reader is spared."""
        return f"{self.message} ({self.alike} more like this in the report)" if self.alike else self.message


def _in_cells(metric: str, cells: dict[str, list[str]]) -> str:
    named = [
        " ".join(part for part in (cell, f"({', '.join(arms)})" if arms else "") if part)
        for cell, arms in cells.items()
    ]
    return ": ".join(part for part in (metric, ", ".join(part for part in named if part)) if part)


def concerns(doubts: Iterable[Doubt]) -> tuple[Concern, ...]:
    """Doubts with the same words put together over metrics, cells and arms, in the order they first came."""
    spots: dict[tuple[str, str, str], dict[Scope, None]] = {}
    for doubt in doubts:
        known = spots.setdefault((doubt.code, _sentence(doubt.message), _sentence(doubt.advice)), {})
        if doubt.metric or doubt.cell or doubt.arm:
            known[Scope(metric=doubt.metric, cell=doubt.cell, arm=doubt.arm)] = None
    return tuple(
        Concern(code=code, message=message, advice=advice, spots=tuple(known))
        for (code, message, advice), known in spots.items()
    )


def kinds(concerns: Iterable[Concern]) -> tuple[Concern, ...]:
    """The first concern of every kind (code and advice); `alike` says how many differ from it in their figures only."""
    first: dict[tuple[str, str], Concern] = {}
    for concern in concerns:
        kept = first.get((concern.code, concern.advice))
        first[concern.code, concern.advice] = concern if kept is None else replace(kept, alike=kept.alike + 1)
    return tuple(first.values())


def doubts(analysis: Analysis, drew: Iterable[Fidelity] = ()) -> tuple[Doubt, ...]:
    """Every doubt: the analysis's own, then those of its comparisons, in order, then what the drives drew.

    Args:
        analysis: of a record or a table.
        drew: `metrics.fidelity.of_record` of the record; a table has none.
    """
    return (
        *analysis.doubts,
        *(
            doubt
            for cell in analysis.cells
            for comparisons in cell.comparisons.values()
            for comparison in comparisons
            for doubt in comparison.doubts
        ),
        *fidelity.doubts(drew),
    )


def _sentence(text: str) -> str:
    """The text as a sentence, however its author ended it."""
    stripped = text.strip()
    whole = stripped if stripped.endswith(_ENDS) else f"{stripped}."
    return whole[:1].upper() + whole[1:]
