"""What the records of a bisection say, and what its journal makes of them. Pure but for the files it reads."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
from scipy import special

from fairtrial import foreign
from fairtrial.analyse.inference import comparing
from fairtrial.bisect.deciding import History, believed, probabilities
from fairtrial.bisect.models import (
    CONFIDENCE,
    Answered,
    Believed,
    Bisection,
    BisectResult,
    Confirmed,
    Event,
    FoundChange,
    Gap,
    Measured,
    Ready,
    VersionResult,
)
from fairtrial.errors import PlaceError, RecordError
from fairtrial.queries import log_ratio, whole_blocks
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.report.analysing import analysed

QUESTION: Final = "bisection.json"
BLOCKS: Final = "blocks"
CONFIRMATION: Final = "confirmation-{number}"
CONFIRMED_OUTCOMES: Final = ("one_change", "two_steps")
POWER: Final = 0.9  # of a confirmation, for the size that was found
FEWEST_TO_CONFIRM, MOST_TO_CONFIRM = 6, 200


def question(directory: Path) -> Bisection:
    """The question of a bisection.

    Raises:
        RecordError: the directory is not one of a bisection.
    """
    path = directory / QUESTION
    if not path.is_file():
        hint = "give the directory that `fairtrial bisect` printed"
        raise RecordError(f"{directory} is not a bisection: it has no {QUESTION}", hint=hint)
    try:
        return Bisection.model_validate_json(foreign.read(path))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: {error}", hint="restore it from a copy") from error


def take(history: History, event: Event) -> None:
    """Takes one entry of the journal in."""
    match event:
        case Ready():
            history.ready.add(event.version)
            history.ready_s += [event.seconds] if event.seconds else []
        case Gap():
            history.gaps.add(event.version)
            history.log_ratios.pop(event.version, None)
        case Measured():
            history.log_ratios.setdefault(event.version, []).extend(event.log_ratios)
            history.shares += event.shares if event.version == history.end else []
            history.block_s += [event.seconds] * len(event.log_ratios)
        case _:
            pass


def log_ratios(of: Record, bisection: Bisection, *, version: str) -> list[float]:
    """Log ratios of a version to the reference, by block; void blocks are left out.

    Raises:
        PlaceError: a trial has no positive value.
    """
    pairs = _pairs(of, bisection, version=version)
    found = [log_ratio(*pair, metric=bisection.metric) for pair in pairs]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        hint = f"choose a metric that is positive in every trial: --set metrics.primary=…, not {bisection.metric}"
        raise PlaceError(f"{of.directory}: a trial has no positive value of {bisection.metric}", hint=hint)
    return known


def shares(of: Record, bisection: Bisection, *, version: str) -> list[tuple[float, float]]:
    """Values of the reference and of a version, by block, where they are shares of a total; else none."""
    pairs = _pairs(of, bisection, version=version) if bisection.total else []
    return [(first.scalars[bisection.metric], second.scalars[bisection.metric]) for first, second in pairs]


def _pairs(of: Record, bisection: Bisection, *, version: str) -> list[tuple[TrialRecord, TrialRecord]]:
    """Trials of the reference and of a version, by block; void blocks are left out."""
    reference = bisection.versions[0].name
    blocks = (arms for arms in whole_blocks(of) if arms.keys() == {reference, version})
    return [(arms[reference], arms[version]) for arms in blocks]


def block_seconds(of: Record) -> float:
    """What a block's trials took together, over the blocks that count; those of a duet ran at the same time."""
    spans = [(datetime.fromisoformat(each.started), datetime.fromisoformat(each.finished)) for each in of.trials]
    busy = sum((finished - started).total_seconds() for started, finished in spans)
    return busy / max(of.plan.design.blocks, 1) / (2 if of.plan.design.order == "duet" else 1)


def summary(history: History) -> Believed | None:
    """The posterior for the journal; None while the ends are settled."""
    if not history.is_searched:
        return None
    now = believed(history)
    shares = probabilities(history, now)
    best = max(shares, key=lambda version: shares[version])
    return Believed(
        none=float(now.none),
        two_steps=float(now.two_steps),
        best=best,
        probability=shares[best],
        size=float(now.tail),
    )


def confirming_blocks(size: float, noise: float, *, alpha: float = 0.05) -> int:
    """Blocks with which a paired study finds a log ratio of this size under this noise (Cohen 1988, section 2.3).

    At least as many as can claim anything at level `alpha`.
    """
    quantiles = special.ndtri(1 - alpha / 2) + special.ndtri(POWER)
    needed = (quantiles * noise / max(abs(size), np.finfo(float).tiny)) ** 2 + quantiles / 2
    fewest = max(FEWEST_TO_CONFIRM, comparing.fewest_blocks(paired=True, alpha=alpha))
    return int(min(max(fewest, math.ceil(min(needed, MOST_TO_CONFIRM))), MOST_TO_CONFIRM))


def confirmation(of: Record, bisection: Bisection, *, number: int, change: FoundChange) -> Confirmed:
    """What a confirmation says of the change that was found."""
    found = analysed(of).cells[0].comparisons[bisection.metric][0]
    claimed = {"lower": ("slower", "faster"), "higher": ("faster", "slower")}[bisection.better][change.ratio < 1]
    return Confirmed(
        number=number,
        after=change.after,
        at=change.at,
        n=found.n,
        verdict=found.verdict,
        ratio=found.ratio.estimate,
        low=found.ratio.low,
        high=found.ratio.high,
        confidence=found.confidence,
        agrees=found.verdict == claimed,
    )


def result(bisection: Bisection, events: list[Event]) -> BisectResult:
    """bisect.json, from the question and the journal.

    Raises:
        RecordError: the journal is of other versions, or contradicts itself.
    """
    known = range(len(bisection.versions))
    if any(event.version not in known for event in events if isinstance(event, Ready | Gap | Measured)):
        hint = "restore the directory from a copy: its files are of two bisections"
        raise RecordError(f"the journal names a version that {QUESTION} does not have", hint=hint)
    history = History(len(bisection.versions))
    reasons: dict[int, str] = {}
    for event in events:
        take(history, event)
        if isinstance(event, Gap):
            reasons[event.version] = event.reason
    if (history.is_searched and not history.log_ratios.get(history.end)) or history.gaps & history.log_ratios.keys():
        hint = "restore the directory from a copy"
        raise RecordError(
            "the journal measures versions without the end of the history, or one that is a gap", hint=hint
        )
    answer = next((event for event in events if isinstance(event, Answered)), Answered(outcome="undecided"))
    measured = [event for event in events if isinstance(event, Measured)]
    shares = probabilities(history, believed(history)) if (now := summary(history)) else {}
    return BisectResult(
        bisection=bisection,
        outcome=answer.outcome,
        changes=answer.changes,
        confirmations=[event for event in events if isinstance(event, Confirmed)],
        versions=[
            _version(bisection, history, number, probability=shares.get(number), gap=reasons.get(number, ""))
            for number in range(history.versions)
        ],
        two_steps=now.two_steps if now else None,
        none=now.none if now else None,
        blocks=history.blocks,
        ends_blocks=len(history.log_ratios.get(history.end, [])),
        seconds=math.fsum(event.seconds * len(event.log_ratios) for event in measured),
    )


def _version(
    bisection: Bisection, history: History, number: int, *, probability: float | None, gap: str
) -> VersionResult:
    version = bisection.versions[number]
    seen = np.array(history.log_ratios.get(number, []))
    ratio = low = high = None
    if len(seen):
        ratio = math.exp(seen.mean())
    if len(seen) > 1 and seen.std() > 0:
        reach = float(special.stdtrit(len(seen) - 1, (1 + CONFIDENCE) / 2) * seen.std(ddof=1) / math.sqrt(len(seen)))
        low, high = math.exp(seen.mean() - reach), math.exp(seen.mean() + reach)
    return VersionResult(
        name=version.name,
        commit=version.commit,
        subject=version.subject,
        blocks=len(seen),
        ratio=ratio,
        low=low,
        high=high,
        probability=probability,
        gap=gap,
    )
