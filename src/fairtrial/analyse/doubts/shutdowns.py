"""A doubt about slow shutdowns that were cut off: a time that was not waited for is a lower bound, not a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.models import TrialRecord

TIME: Final = "slow_shutdown_s"
CENSORED: Final = "slow_shutdown_censored"


def about(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """It, if any shutdown was cut off; by arm, because the arm that leaves more undone is cut off more often."""
    measured = [trial for trial in used if CENSORED in trial.scalars]
    cut = [trial for trial in measured if trial.scalars[CENSORED]]
    if cut:
        by_arm = {trial.trial.arm: sum(other.trial.arm == trial.trial.arm for other in cut) for trial in cut}
        where = ", ".join(f"{count} of {arm}" for arm, count in by_arm.items())
        yield Doubt(
            code="censored_shutdown",
            message=f"{len(cut)} of {len(measured)} slow shutdowns had not finished at their limit ({where})",
            advice=f"their `{TIME}` are lower bounds: differences between arms are larger than they look, or hidden; "
            "raise the system's `slow_shutdown`",
        )
