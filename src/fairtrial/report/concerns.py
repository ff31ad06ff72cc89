"""Doubts as a reader wants them: one reason once, with all the places it applies to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.models import Analysis, Doubt
from fairtrial.metrics import frames, latency
from fairtrial.record import Record

PLACES_NAMED: Final = 2  # in a terminal; more are counted
_ENDS: Final = (".", "!", "?", "…")


@dataclass(frozen=True)
class Concern:
    """Equal doubts. `places` is empty for one about the whole run."""

    code: str
    message: str
    advice: str
    places: tuple[str, ...]

    @property
    def where(self) -> str:
        """Every place: `throughput_tpm, high, wal; latency_ns_p99, high, wal`."""
        return "; ".join(self.places)

    @property
    def briefly(self) -> str:
        """A few places, or how many."""
        return self.where if len(self.places) <= PLACES_NAMED else f"{len(self.places)} comparisons"


def concerns(found: Iterable[Doubt]) -> tuple[Concern, ...]:
    """Doubts with the same words put together, in the order they first came."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for doubt in found:
        place = ", ".join(part for part in (doubt.metric, doubt.cell, doubt.arm) if part)
        known = places.setdefault((doubt.code, _sentence(doubt.message), _sentence(doubt.advice)), [])
        if place and place not in known:
            known.append(place)
    return tuple(
        Concern(code=code, message=message, advice=advice, places=tuple(named))
        for (code, message, advice), named in places.items()
    )


def doubts(analysis: Analysis) -> tuple[Doubt, ...]:
    """Every doubt of an analysis: its own, then those of its comparisons, in order."""
    return (
        *analysis.doubts,
        *(
            doubt
            for cell in analysis.cells
            for comparisons in cell.comparisons.values()
            for comparison in comparisons
            for doubt in comparison.doubts
        ),
    )


def tail_doubts(record: Record, analysis: Analysis) -> tuple[Doubt, ...]:
    """A doubt per analysed percentile that rests on few observations beyond it in some used trial."""
    used = frames.used_trials(record)
    found = []
    for metric in analysis.metrics:
        beyond = [latency.exceedances(metric, trial.scalars) for trial in used]
        least = min((count for count in beyond if count is not None), default=None)
        if least is not None and least < latency.EXCEEDANCES_WANTED:
            found.append(
                Doubt(
                    code="few_exceedances",
                    message=f"a trial has only {least:.0f} observations beyond this percentile;"
                    f" {latency.EXCEEDANCES_WANTED} are wanted",
                    advice="measure longer, or judge a percentile nearer to the median",
                    metric=metric,
                )
            )
    return tuple(found)


def _sentence(text: str) -> str:
    """The text as a sentence, however its author ended it."""
    stripped = text.strip()
    whole = stripped if stripped.endswith(_ENDS) else f"{stripped}."
    return whole[:1].upper() + whole[1:]
