"""How long a server took to shut down slowly after its trial: what the load left undone, purge above all.

Owns `shutdown.json` on the reading side; `run.shutting_down` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from fairtrial import foreign
from fairtrial.metrics.telemetry.window import NANOSECONDS_PER_SECOND
from fairtrial.study.catalogue import MetricDefinition

FILE: Final = "shutdown.json"
TIME: Final = "slow_shutdown_s"
GAP: Final = "slow_shutdown_gap_s"
CENSORED: Final = "slow_shutdown_censored"


class Shutdown(BaseModel):
    """One slow shutdown, on the monotonic clock of the system's place.

    Attributes:
        began_ns, ended_ns: from the server's being told until its process had ended.
        limit_s: how long it was waited for, from its being told.
        complete: whether it ended by itself; else it was killed at the limit, and would have taken longer.
        load_ended_ns: the measured window's end: what is done from there on is what the load left, whoever ends first.
            None in records of versions that counted from `began_ns`, and without a window.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    began_ns: int
    ended_ns: int
    limit_s: float
    complete: bool
    load_ended_ns: int | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """See `DEFINITIONS`."""
        since_ns = self.began_ns if self.load_ended_ns is None else self.load_ended_ns
        gap = {} if self.load_ended_ns is None else {GAP: (self.began_ns - since_ns) / NANOSECONDS_PER_SECOND}
        seconds = (self.ended_ns - since_ns) / NANOSECONDS_PER_SECOND
        return {TIME: seconds, CENSORED: 0.0 if self.complete else 1.0, **gap}


def compute(directory: Path) -> dict[str, float]:
    """The metrics of a trial that was to shut down slowly; empty for others.

    Raises:
        RecordError: the file is damaged.
    """
    path = directory / FILE
    return foreign.of_trial(path, Shutdown).metrics if path.exists() else {}


DEFINITIONS: Final = {
    each.name: each
    for each in (
        MetricDefinition(
            name=TIME,
            label="slow shutdown",
            unit="s",
            better="lower",
            kind="wall_clock",
            source=f"{FILE}: from the measured window's end until the server had purged and flushed everything; with "
            "`slow_shutdown` of the system, which limits the server's own part, and a lower bound where that passed",
        ),
        MetricDefinition(
            name=GAP,
            label="until the slow shutdown",
            unit="s",
            better="lower",
            kind="wall_clock",
            source=f"{FILE}: the part of `{TIME}` in which the server was not yet told: the load, the sampler and a "
            "governor end, and the server purges",
        ),
        MetricDefinition(
            name=CENSORED,
            label="slow shutdown cut off",
            unit="trials",
            better="lower",
            kind="count",
            source=f"{FILE}: 1 where the server was ended at the limit, 0 where it ended by itself",
        ),
    )
}
