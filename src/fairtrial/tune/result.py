"""What a tuning found, from its journal and its records alone: search, fresh blocks, claim, flattery."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from fairtrial import record
from fairtrial import study as language
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.analyse.result import Result, Verdict
from fairtrial.catalogue import catalogue
from fairtrial.record import Record
from fairtrial.record import journal as records
from fairtrial.record.files import MERGED
from fairtrial.report.analysing import analysed
from fairtrial.study import Study
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tuning import Value
from fairtrial.study.tuning.levels import defaults
from fairtrial.tune import journal, measuring
from fairtrial.tune.events import State
from fairtrial.tune.searching import AGAIN, CONFIRMATION, Course, search_run, tuning_of

FORMAT_VERSION: Final = 1


class OptionFound(Result):
    """One option: its value in the default trial and in the best proposal; null where the default leaves it open."""

    name: str
    of: str | None
    default: Value | None
    best: Value | None


class ProposalTried(Result):
    """One proposal of the search; `ratio` to the default of its own block, null if it failed."""

    number: int
    values: dict[str, Value]
    state: State
    ratio: float | None
    reason: str


class MeasuredAgain(Result):
    """A proposal in fresh blocks; without an interval, which would not know that the proposal was chosen.

    `breaches`: whether a guardrail is worse than its margin on average; only the text says so.
    """

    number: int
    blocks: int
    ratio: float
    breaches: Annotated[bool, Field(exclude=True)] = False


class Confirmed(Result):
    """The comparison of the best proposal with the default; `verdict` is the tuning's only claim.

    `doubts`: how many its report has.
    """

    number: int
    blocks: int
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    verdict: Verdict
    guardrails: dict[str, str]
    doubts: int

    @property
    def is_claim(self) -> bool:
        """Whether the proposal is shown to be faster, and no guardrail is breached."""
        return self.verdict == "faster" and "breached" not in self.guardrails.values()


class Flattery(Result):
    """What the best block of the search promised, and what the confirmation left of it.

    Attributes:
        number: the proposal with the best block; not always the one that was confirmed.
        promised: its ratio in that block.
        again: the same proposal's ratio in fresh blocks; null if it was not measured again.
        factor: how many times as good the promise is as the confirmed ratio, with its interval; the promise counts as
            given. Null without a confirmation.
    """

    number: int
    promised: float
    again: float | None
    factor: float | None
    low: float | None
    high: float | None


class TuneResult(Result):
    """Everything that a tuning says.

    Attributes:
        metric: the objective's definition.
        finished: whether nothing is left to run.
        trials: committed, of all stages.
        proposals: of the search, in order.
        again: the short list in fresh blocks, best first.
        failed_again: proposals of the short list without a gain in every fresh block; only the text names them.
        note: why there is no confirmation, or that it has fewer blocks than the gain needs; may be empty.
    """

    format_version: int = FORMAT_VERSION
    study: str
    question: str
    objective: str
    metric: MetricDefinition
    seed: int
    budget: int
    finished: bool
    trials: int
    options: tuple[OptionFound, ...]
    proposals: tuple[ProposalTried, ...]
    again: tuple[MeasuredAgain, ...]
    failed_again: Annotated[tuple[int, ...], Field(exclude=True)] = ()
    confirmed: Confirmed | None
    note: str
    flattery: Flattery | None


@dataclass(frozen=True)
class TuneRecord:
    """A tuning's directory, read.

    Attributes:
        search: records of the search's blocks, by proposal; those that were begun.
        again: record of the fresh blocks, if they were begun.
        confirmation: record of the confirmation, if it was begun.
    """

    directory: Path
    study: Study
    course: Course
    search: dict[int, Record]
    again: Record | None
    confirmation: Record | None

    @property
    def records(self) -> list[Record]:
        """All of them, in order."""
        return [*self.search.values(), *(each for each in (self.again, self.confirmation) if each is not None)]


def begun(directory: Path) -> Record | None:
    """A run's record, if there is one."""
    return record.read(directory) if (directory / records.NAME).exists() else None


def read(directory: Path) -> TuneRecord:
    """A tuning's directory as it is now.

    Raises:
        RecordError: not a tuning's directory, or a damaged one.
    """
    course = Course(tuple(journal.read(directory)))
    study = language.load(directory / MERGED, catalogue=catalogue(), recorded=True)
    search = {
        number: found for number in course.proposed if (found := begun(directory / search_run(number))) is not None
    }
    return TuneRecord(
        directory=directory,
        study=study,
        course=course,
        search=search,
        again=begun(directory / AGAIN),
        confirmation=begun(directory / CONFIRMATION),
    )


def result(tuning: TuneRecord, analysis: Analysis | None = None) -> TuneResult:
    """What is to be said.

    Args:
        tuning: read.
        analysis: of the confirmation, in place of the one made here.
    """
    course, study = tuning.course, tuning.study
    (objective,) = study.file.metrics.primary
    metric = study.definitions[objective]
    sign = measuring.sign(metric)
    confirmed = _confirmed(tuning, analysis)
    again, failed_again = _again(tuning, sign=sign)
    planned = course.planned
    best = course.proposed[planned.number].values if planned and planned.number is not None else {}
    usual = defaults(tuning_of(study), study.base)
    return TuneResult(
        study=study.name,
        question=study.file.question,
        objective=objective,
        metric=metric,
        seed=course.started.seed,
        budget=course.started.budget,
        finished=course.finished,
        trials=sum(len(each.committed) for each in tuning.records),
        options=tuple(
            OptionFound(name=name, of=option.of, default=usual.get(name), best=best.get(name))
            for name, option in tuning_of(study).options.items()
        ),
        proposals=tuple(_tried(course, number, sign=sign) for number in sorted(course.told)),
        again=again,
        failed_again=failed_again,
        confirmed=confirmed,
        note="" if planned is None else planned.reason,
        flattery=_flattery(course, again, confirmed, sign=sign),
    )


def _tried(course: Course, number: int, *, sign: int) -> ProposalTried:
    told = course.told[number]
    ratio = None if told.gain is None else math.exp(sign * told.gain)
    values = course.proposed[number].values
    return ProposalTried(number=number, values=values, state=told.state, ratio=ratio, reason=told.reason)


def _again(tuning: TuneRecord, *, sign: int) -> tuple[tuple[MeasuredAgain, ...], tuple[int, ...]]:
    """The short list in fresh blocks, and what of it has no gain there."""
    if tuning.again is None or not tuning.again.finished:
        return (), ()
    pairs = measuring.pairs(tuning.again)
    breached = set(measuring.breached(pairs))
    found = {}
    for name, gains in measuring.gains(pairs):
        ratio = math.exp(sign * float(np.mean(gains)))
        number = int(name.removeprefix("p"))
        found[name] = MeasuredAgain(number=number, blocks=len(gains), ratio=ratio, breaches=name in breached)
    failed = sorted(int(name.removeprefix("p")) for name in pairs.keys() - found.keys())
    return tuple(sorted(found.values(), key=lambda each: -sign * each.ratio)), tuple(failed)


def _confirmed(tuning: TuneRecord, analysis: Analysis | None) -> Confirmed | None:
    planned, found = tuning.course.planned, tuning.confirmation
    if planned is None or planned.number is None or found is None or not found.finished:
        return None
    metrics = found.plan.metrics
    return confirmed(planned.number, analysis or analysed(found), metric=metrics.primary[0], rails=metrics.guardrails)


def confirmed(number: int, analysis: Analysis, *, metric: str, rails: Sequence[str]) -> Confirmed | None:
    """What a confirmation's analysis says of a proposal; None where the objective has no values."""
    (cell,) = analysis.cells
    comparisons: dict[str, Comparison] = {name: each[0] for name, each in cell.comparisons.items() if each}
    compared = comparisons.get(metric)
    if compared is None:
        return None
    outcomes = {name: each.guardrail.outcome for name, each in comparisons.items() if each.guardrail is not None}
    return Confirmed(
        number=number,
        blocks=compared.n,
        ratio=compared.ratio.estimate,
        low=compared.ratio.low,
        high=compared.ratio.high,
        confidence=compared.confidence,
        verdict=compared.verdict,
        guardrails=dict.fromkeys(rails, "none") | outcomes,  # none: it has no values
        doubts=len(analysis.doubts),
    )


def _flattery(
    course: Course, again: Sequence[MeasuredAgain], confirmed: Confirmed | None, *, sign: int
) -> Flattery | None:
    gains = {
        each.number: each.gain for each in course.told.values() if each.state == "measured" and each.gain is not None
    }
    if course.shortlisted is None or not gains:
        return None
    number = max(gains, key=lambda each: gains[each])
    promised = gains[number]
    fresh = next((each.ratio for each in again if each.number == number), None)
    ratio = math.exp(sign * promised)
    found = Flattery(number=number, promised=ratio, again=fresh, factor=None, low=None, high=None)
    if confirmed is None or confirmed.ratio is None:
        return found
    factor = (ratio / confirmed.ratio) ** sign
    if confirmed.low is None or confirmed.high is None:
        return found.model_copy(update={"factor": factor})
    low, high = sorted((ratio / end) ** sign for end in (confirmed.low, confirmed.high))
    return found.model_copy(update={"factor": factor, "low": low, "high": high})
