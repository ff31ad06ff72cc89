"""Doubts about a run while it grows. Looking for them takes a small share of the time, whatever a run's size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairtrial.errors import FairtrialError
from fairtrial.live.followed import FollowedRun
from fairtrial.metrics import fidelity
from fairtrial.report.concerns import Concern, concerns, doubts, kinds

if TYPE_CHECKING:
    from fairtrial.analyse.models import Analysis

SHARE: Final = 0.001  # of the time of a run that goes on: looking for doubts must not become one
OF_PARTS: Final = ("unfinished", "missing", "few_blocks", "not_computable")  # said of every run that goes on


@dataclass
class Doubts:
    """Those of one run.

    Attributes:
        analyse: the run as it is now.
        found: by the last look; None before the first.
        stale: whether the run has grown since.
    """

    run: FollowedRun
    analyse: Callable[[], Analysis]
    found: tuple[Concern, ...] | None = None
    stale: bool = True
    _looked_at: float = 0.0
    _took_s: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether doubts may have changed, and a look costs little beside the time since the last."""
        rested = time.monotonic() - self._looked_at >= self._took_s / SHARE
        return self.stale and (rested or self.run.state != "running")

    def look(self) -> None:
        """Slow. What drives drew is in a file of each trial, and left until the run ends."""
        began = time.monotonic()
        self.stale = False
        try:
            goes_on = self.run.state == "running"
            said = doubts(self.analyse(), () if goes_on else fidelity.of_record(self.run.record))
        except FairtrialError as error:
            self.found = (Concern(code="not analysed", message=str(error), advice=error.hint or "", spots=()),)
        else:
            self.found = kinds(concerns(each for each in said if not (goes_on and each.code in OF_PARTS)))
        self._looked_at = time.monotonic()
        self._took_s = self._looked_at - began
