"""The report's section on fidelity: what drives drew beside what a specification or a script asks for, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.metrics.fidelity.points import FidelityPoint
from fairtrial.record import Record
from fairtrial.report import numbers

HEADER: Final = ("point", "asked", "drawn", "of", "p", "verdict", "clause")
LEFT: Final = 2


@dataclass(frozen=True)
class FidelitySection:
    """Trials of equal parameters.

    Attributes:
        title: cells and arms; empty where all of a record's trials are here.
        rows: below `HEADER`.
        shown: whether the text has the rows too: in the first section, and wherever a point is broken.
    """

    title: str
    summary: str
    rows: tuple[tuple[str, ...], ...]
    deviations: tuple[str, ...]
    shown: bool


def sections(record: Record, fidelities: Sequence[Fidelity]) -> tuple[FidelitySection, ...]:
    """A section for each workload of the record; `fidelities` is `metrics.fidelity.of_record` of it, as below."""
    return tuple(
        FidelitySection(
            title=_title(record, each) if len(fidelities) > 1 else "",
            summary=_summary(each),
            rows=tuple(_row(point) for point in each.points),
            deviations=tuple(f"{deviation.chosen} (clause {deviation.clause})" for deviation in each.deviations),
            shown=index == 0 or bool(each.broken),
        )
        for index, each in enumerate(fidelities)
    )


def notes(fidelities: Sequence[Fidelity]) -> tuple[str, ...]:
    """How the sections came about."""
    return tuple(dict.fromkeys(note for each in fidelities for note in each.specification.notes))


def doubts(fidelities: Iterable[Fidelity]) -> tuple[Doubt, ...]:
    """A doubt for each workload that did not draw what the specification, or the script, asks for."""
    return tuple(
        Doubt(
            code="unfaithful",
            message=f"{each.specification.broken}: {_names(each.broken)}",
            advice="see the section on fidelity: the workload is not what its name says",
        )
        for each in fidelities
        if each.broken
    )


def _names(points: Iterable[FidelityPoint]) -> str:
    return ", ".join(point.name for point in points)


def _title(record: Record, each: Fidelity) -> str:
    """Cells and arms that have these parameters."""
    ids = set(each.trials)
    trials = [trial.trial for trial in record.trials if trial.trial.id in ids]
    return "; ".join(dict.fromkeys(f"{trial.cell} · {trial.arm}" for trial in trials))


def _summary(each: Fidelity) -> str:
    kept = sum(point.verdict == "kept" for point in each.points)
    untested = [point for point in each.points if point.verdict == "untested"]
    words = [f"{kept} of {len(each.points)} points kept"]
    words += [f"broken: {_names(each.broken)}"] if each.broken else []
    words += [f"untested: {_names(untested)}"] if untested else []
    drives = f"{len(each.trials)} trials with {each.seeds} seeds"
    alike = each.seeds < len(each.trials)
    longest = "; of trials with equal seeds, which draw the same, only the longest" if alike else ""
    return f"{'; '.join(words)}. Counted over {drives}{longest}."


def _row(point: FidelityPoint) -> tuple[str, ...]:
    value = numbers.ABSENT if point.value is None else _value(point, point.value)
    p = numbers.ABSENT if point.p is None else numbers.p_value(point.p)
    verdict = "BROKEN" if point.verdict == "broken" else point.verdict
    alone = f" ({point.trials_broken} of the trials)" if point.trials_broken else ""
    return (point.name, point.asked, value, f"{point.of:,}", p, verdict + alone, point.clause.split(",")[0])


def _value(point: FidelityPoint, value: float) -> str:
    return f"{100 * value:.2f} %" if point.unit == "share" else f"{value:.3f} {point.unit}"
