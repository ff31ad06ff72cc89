"""A doubt about counts per transaction in trials that did unequal work: who comes further has a warmer cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.models import TrialRecord

PER_TRANSACTION: Final = "_per_transaction"
WORK: Final = "transactions"
UNEQUAL: Final = 1.1  # most work over least; windows that end by number differ by nothing


def about(used: Sequence[TrialRecord], *, primary: Sequence[str]) -> Iterator[Doubt]:
    """It, if a primary metric is counted per transaction and trials of a cell differ in how many they did."""
    counted = [name for name in primary if name.endswith(PER_TRANSACTION)]
    work = defaultdict[str, list[float]](list)
    for trial in used:
        if trial.scalars.get(WORK):
            work[trial.trial.cell].append(trial.scalars[WORK])
    unequal = {cell: (min(each), max(each)) for cell, each in work.items() if max(each) > UNEQUAL * min(each)}
    if counted and unequal:
        cell, (least, most) = max(unequal.items(), key=lambda item: item[1][1] / item[1][0])
        yield Doubt(
            code="unequal_work",
            message=f"trials did {least:,.0f} to {most:,.0f} transactions in cell {cell or 'all'} "
            f"({len(unequal)} of {len(work)} cells differ by more than a tenth), and {', '.join(counted)} "
            "depends on how far a trial gets",
            advice="end ramp-up and window by a number of transactions (`ramp_up_transactions`, `transactions`), so "
            "that every trial does the same work",
        )
