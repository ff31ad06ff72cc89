"""A rule applied to many replicates at once, as a run would apply it: for planning, calibration and replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import spreads
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential.rule import Counts, Flags, Rule, estimates, reaches
from fairtrial.analyse.sequential.standing import Standing

UNDECIDED: Final = 0
HIGHER: Final = 1
LOWER: Final = -1
EQUIVALENT: Final = 2


@dataclass(frozen=True)
class SimulatedOutcomes:
    """What became of each comparison, shape (replicates, comparisons).

    Attributes:
        verdict: `HIGHER`, `LOWER`, `EQUIVALENT` or `UNDECIDED`, after Holm over the comparisons.
        blocks: how many the comparison's cell had when it stopped.
        futile: given up, because a claim had become improbable, and without a verdict in the end.
        estimate, low, high: log ratio with its interval at confidence 1 - alpha, unadjusted for the family.
        of_mean: whether a verdict holds for the mean as well, not for the typical trial only.
    """

    verdict: Counts
    blocks: Counts
    futile: Flags
    estimate: Values
    low: Values
    high: Values
    of_mean: Flags


def simulate(
    log_ratios: Values, rule: Rule, *, cells: Counts | None = None, pools: Counts | None = None
) -> SimulatedOutcomes:
    """Runs a rule over log ratios of shape (replicates, comparisons, blocks); blocks must reach the rule's last.

    The comparisons are one family. Those of one of the `cells` get blocks for as long as any is open (each is a cell of
    its own if None); those of one of the `pools` measure the same thing (all do if None).
    """
    replicates, comparisons, _ = log_ratios.shape
    standing = Standing(
        rule=rule,
        shape=(replicates, comparisons),
        cells=np.arange(comparisons) if cells is None else cells,
        pools=np.zeros(comparisons, dtype=np.int64) if pools is None else pools,
        family=np.ones(comparisons, dtype=bool),
    )
    for n in rule.looks:
        so_far = log_ratios[..., :n]
        error = so_far.std(axis=-1, ddof=1) / np.sqrt(n)
        counted = np.where(standing.live, n, 0)
        now = estimates(so_far, n=counted, error=error, bound=np.full(error.shape, rule.bound))
        standing.look(now)
        if not standing.live.any():
            break
    return _outcome(standing)


def _outcome(standing: Standing) -> SimulatedOutcomes:
    alpha, estimates = standing.rule.alpha, standing.latest
    claimed = np.where(estimates.mean > 0, HIGHER, LOWER)
    verdict = np.where(standing.differs_adjusted < alpha, claimed, UNDECIDED)
    verdict = np.where(standing.same_adjusted < alpha, EQUIVALENT, verdict)
    away = reaches(estimates.n, level=alpha, rule=standing.rule) * estimates.error
    by_family = reaches(estimates.n, level=standing.level, rule=standing.rule) * estimates.error
    left_open = by_family + spreads.unseen(estimates.n, level=standing.level)
    size, bound = np.abs(estimates.mean), standing.rule.bound
    return SimulatedOutcomes(
        verdict=verdict,
        blocks=estimates.n,
        futile=standing.futile & (verdict == UNDECIDED),
        estimate=estimates.mean,
        low=estimates.mean - away,
        high=estimates.mean + away,
        of_mean=np.where(verdict == EQUIVALENT, size + left_open < bound, size > left_open) & (verdict != UNDECIDED),
    )
