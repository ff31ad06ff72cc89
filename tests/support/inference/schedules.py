"""What a schedule is given in tests: blocks that replace others, and the ends of trials."""

from __future__ import annotations

from fairtrial.record.models import PlannedTrial, TrialFinished
from support.records import planned


def replacement(*, cell: str, block: int, round_: int, position: int) -> list[PlannedTrial]:
    """A block of the tiny plan's arms, in order."""
    return [
        planned(block, arm, round_=round_, cell=cell).model_copy(update={"position": position + index})
        for index, arm in enumerate("ab")
    ]


def finished(trial: str, *, valid: bool = True) -> TrialFinished:
    """That a trial was committed, without files."""
    return TrialFinished(trial=trial, valid=valid, files={})
