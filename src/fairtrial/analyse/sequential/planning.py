"""How long a run that may stop early will probably be, before anything was measured."""

from __future__ import annotations

from typing import Final

import numpy as np

from fairtrial.analyse.sequential.following import rule_of
from fairtrial.analyse.sequential.simulating import simulate
from fairtrial.record.models import Plan

REPLICATES: Final = 400  # the expected share of blocks to within a point or two
# Nothing is known yet, so a scenario is assumed and said: half of the cells differ, by four margins, and log ratios of
# blocks vary by one margin.
EFFECT_IN_MARGINS: Final = 4
SPREAD_IN_MARGINS: Final = 1
ASSUMED: Final = "if half of the cells differ by four margins, the others not at all, and blocks vary by one margin"


def expected_blocks(plan: Plan) -> float | None:
    """Mean number of blocks per cell in the scenario that `ASSUMED` says; None for a design that runs all blocks."""
    rule = rule_of(plan.design)
    if rule is None:
        return None
    each = len(plan.metrics.primary) * (len(plan.factors[plan.arm]) - 1)
    cells = np.repeat(np.arange(len(plan.cells)), each)
    random = np.random.default_rng(plan.design.seed)
    shape = (REPLICATES, len(cells), rule.last)
    differs = random.permuted(np.tile(np.arange(len(plan.cells)) % 2 == 0, (REPLICATES, 1)), axis=1)
    effect = np.where(differs, EFFECT_IN_MARGINS * rule.bound, 0.0)[:, cells, None]
    outcome = simulate(effect + random.normal(0.0, SPREAD_IN_MARGINS * rule.bound, shape), rule, cells=cells)
    return float(outcome.blocks.mean())
