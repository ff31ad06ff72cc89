"""How long the blocks of a plan take on several hosts, by what a farm was measured to cost. Pure.

Hosts take the next block as they come free; the controller takes one trial in at a time. A look of a stopping rule
reads only what is new, and costs less than a trial. `benches/farm_model.py` prints what follows for large farms,
`benches/farm_scale.py` measures the controller.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairtrial.plan import costs
from fairtrial.record.models import Plan, PlannedTrial
from fairtrial.study.catalogue import Catalogue


@dataclass(frozen=True)
class FarmCosts:
    """Measured, seconds.

    Attributes:
        prepare_s: data of a host, once.
        trial_s: of the controller, to take a trial in.
        megabyte_s: of the way to the controller, at 1 Gbit/s.
        megabytes: of a trial.
    """

    prepare_s: float = 0.0
    trial_s: float = 0.02
    megabyte_s: float = 0.009
    megabytes: float = 3.0

    @property
    def taking_s(self) -> float:
        """Of a trial on its way into the record."""
        return self.trial_s + self.megabytes * self.megabyte_s


def makespan(
    block_s: Sequence[float], farm: FarmCosts, *, hosts: int, trials: int, boots_s: Sequence[float] = ()
) -> tuple[float, float]:
    """Time until the last block is taken in, and for how much of it the controller was busy; seconds.

    Args:
        block_s: what each block takes, in their order.
        farm: what it costs.
        hosts: that take blocks.
        trials: of a block.
        boots_s: what each host adds to a trial; nothing, unless given.
    """
    free = [(farm.prepare_s, each_s) for each_s in boots_s or [0.0] * hosts]
    heapq.heapify(free)
    arrivals = []
    for took in block_s:
        since, each_s = heapq.heappop(free)
        end = since + took + trials * each_s
        heapq.heappush(free, (end, each_s))
        arrivals.append(end)
    at, service = 0.0, trials * farm.taking_s
    for arrived in sorted(arrivals):
        at = max(at, arrived) + service
    return at, len(arrivals) * service


def duration_s(plan: Plan, catalogue: Catalogue, *, hosts: int, boots_s: Sequence[float] = ()) -> float:
    """Expected wall time of all planned trials and diagnostic ones on so many hosts, but for preparing their data.

    `boots_s` as for `makespan`.
    """
    blocks = [*_blocks(plan.trials, plan, catalogue), *_blocks(plan.diagnostics, plan, catalogue)]
    return makespan(blocks, FarmCosts(), hosts=hosts, trials=len(plan.factors[plan.arm]), boots_s=boots_s)[0]


def _blocks(trials: Iterable[PlannedTrial], plan: Plan, catalogue: Catalogue) -> list[float]:
    """What each block takes, in the order of their first trials; a diagnostic trial is one."""
    took: dict[tuple[str, int, str], float] = {}
    for trial in trials:
        key = trial.cell, trial.block, trial.arm if trial.diagnostic else ""
        each_s = costs.trial_duration_s(plan.resolved[trial.cell][trial.arm], catalogue)
        took[key] = took.get(key, 0.0) + each_s
    return [*took.values()]
