"""What a claim asks of the last block of a plan, however the plan stops, and what that many blocks can show. Pure.

A run that looks often has less of its level left for its last look. A change that the last look alone would find with
power 0.8 is found in 76-83 % of runs by the rule as a whole, if it is beyond the margin: earlier looks add what giving
up and ranks take. A cell that `precision` stops before its last block finds less.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from fairtrial.analyse.inference import comparing, power
from fairtrial.analyse.sequential.following import rule_of
from fairtrial.analyse.sequential.rule import nominal_level
from fairtrial.record.models import Plan


def fewest_blocks(plan: Plan) -> int:
    """Blocks from which a comparison could be claimed at all."""
    if plan.design.stop == "fixed":
        return comparing.fewest_blocks(paired=power.is_paired(plan), alpha=1 - plan.design.confidence)
    enough = (n for n in itertools.count(power.FEWEST_BLOCKS) if level(plan, blocks=n) >= power.SMALLEST_LEVEL)
    return next(enough)


def level(plan: Plan, *, blocks: int) -> float:
    """What Student's t must reach after the last of so many blocks, at the hardest step of the primary family."""
    rule = rule_of(plan.design)
    if rule is None:
        return power.level(plan)
    planned = replace(rule, first=min(rule.first, blocks), last=blocks)
    return nominal_level(blocks, level=power.level(plan), rule=planned, sides=2)


def detectable(plan: Plan, sd: float, *, blocks: int) -> float | None:
    """`power.detectable` of a plan with so many blocks; None if they can claim nothing."""
    if blocks < fewest_blocks(plan):
        return None
    return power.detectable(sd, blocks=blocks, alpha=level(plan, blocks=blocks), paired=power.is_paired(plan))


def blocks_needed(plan: Plan, sd: float, *, effect: float) -> int | None:
    """`power.blocks_needed` of a plan that may have as many blocks as it takes.

    Boundaries take up to seconds for each number of blocks: a search would solve a dozen. What they leave to the last
    look falls as blocks are added, and soon hardly does, so few steps lead up to the fewest that are enough. Beyond
    `boundaries.EVERY_ROUND` blocks, where it also depends on how far back the look before lies, it may be some percent
    more than the fewest.
    """
    fewest = fewest_blocks(plan)
    if plan.design.stop == "anytime":  # its level rises with the first blocks, and costs nothing
        return power.blocks_needed(sd, effect=effect, alpha=lambda blocks: level(plan, blocks=blocks), fewest=fewest)
    paired = power.is_paired(plan)  # of those that look there is none that is not
    asked, needed = None, power.blocks_needed(sd, effect=effect, alpha=power.level(plan), fewest=fewest, paired=paired)
    while plan.design.stop != "fixed" and needed is not None and needed != asked:
        asked = needed
        needed = power.blocks_needed(sd, effect=effect, alpha=level(plan, blocks=asked), fewest=asked)
    return needed
