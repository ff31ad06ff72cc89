"""What an arm's effect under different conditions says: the shape that stands in `report.json`.

Ratios are treatment / baseline, and ratios of ratios compare them between conditions.
"""

from __future__ import annotations

from typing import Literal

from fairtrial.analyse.result import Result

InteractionVerdict = Literal["differs", "not_shown", "none"]
# Why there is no test, or no claim whatever the test says.
InteractionReason = Literal["", "no_ratio", "few_blocks", "no_spread", "no_verdict", "unfinished"]


class LevelEffect(Result):
    """The arm's effect at one level of a factor: the mean log ratio over its cells, each with equal weight.

    Attributes:
        low, high: at the analysis's confidence, one at a time.
    """

    level: str
    ratio: float | None
    low: float | None
    high: float | None


class LevelPair(Result):
    """The arm's effect at one level of a factor against that at another.

    Attributes:
        ratio: ratio at `second` over ratio at `first`.
        low, high: at the analysis's confidence for all pairs of the factor together (Bonferroni).
        p: two-sided, unadjusted.
        p_adjusted: over the pairs of all tests of the family, and never below the factor's own.
        claimed: whether the two levels are shown to differ.
    """

    first: str
    second: str
    ratio: float | None
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    claimed: bool = False


class Interaction(Result):
    """Whether an arm's effect on a primary metric depends on one condition, or on one in a way that another changes.

    Attributes:
        factors: one, or two whose joint influence on the effect is tested.
        cells: that the test uses, by name; of the other conditions only combinations where no level is missing.
        in_step: whether trials or boots of one block stand in several of them, so that rounds are the samples.
        fewest, most: blocks of a cell, or trials of an arm without blocks.
        f, df_between, df_within: of the test that allows every cell its own noise (Johansen 1980); None
            without a test.
        p: unadjusted; 1 without a test. In a run that could stop early it is valid whenever its cells stopped.
        p_once: what p would be if the number of blocks had been fixed; None where it was.
        p_pooled: of the classical F test, as R's `lm` gives it: noise of one size in all cells. None in step and
            without a test.
        p_adjusted: by Holm over the family.
        family_size: tests of interactions on primary metrics, of all arms; no other test is among them.
        verdict: `none` where the run is unfinished or there is no test.
        levels, pairs: of one factor; empty without a test and for two.
        reason: why there is no test or no claim.
    """

    metric: str
    arm: str
    factors: tuple[str, ...]
    cells: tuple[str, ...] = ()
    in_step: bool = False
    fewest: int = 0
    most: int = 0
    f: float | None = None
    df_between: float | None = None
    df_within: float | None = None
    p: float = 1.0
    p_once: float | None = None
    p_pooled: float | None = None
    p_adjusted: float = 1.0
    family_size: int = 0
    verdict: InteractionVerdict = "none"
    levels: tuple[LevelEffect, ...] = ()
    pairs: tuple[LevelPair, ...] = ()
    reason: InteractionReason = ""
