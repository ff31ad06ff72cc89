"""How the trials of a tuning are spent: stages of the budget, the short list, the blocks of the confirmation. Pure.

Source of the defaults: `benches/calibrated_tuning.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.analyse.inference import comparing, power
from fairtrial.analyse.noise.profile import upper_deviation
from fairtrial.errors import InputError, Problem
from fairtrial.study.tuning import FEWEST_CONFIRMING, Tuning
from fairtrial.tune.events import ConfirmationPlanned, Proposed, Shortlisted, Stages, Told

BEST_PER_ROOT: Final = 0.7  # of the budget's square root so many are measured again: 3 of 20 trials, 5 of 50, 7 of 100
FEWEST_AGAIN: Final = 2  # proposals, and blocks of each
FEWEST_PROPOSALS: Final = 2


@dataclass(frozen=True)
class Claim:
    """What a confirmation is to show.

    Attributes:
        margin: smallest gain that matters, as a share.
        alpha: level of its test.
        fewest: blocks that it gets at least; None: as many as can claim at this level.
    """

    margin: float
    alpha: float
    fewest: int | None = None


def stages(tuning: Tuning, *, budget: int) -> Stages:
    """How a budget is spent.

    Raises:
        InputError: it leaves nothing for the search.
    """
    again = tuning.again
    blocks = again.blocks or FEWEST_AGAIN
    best = again.best or max(FEWEST_AGAIN, round(BEST_PER_ROOT * math.sqrt(budget)))
    proposals = (budget - (best + 1) * blocks) // 2
    while proposals < best > FEWEST_AGAIN and again.best is None:
        best -= 1
        proposals = (budget - (best + 1) * blocks) // 2
    if proposals < max(FEWEST_PROPOSALS, best):
        message = (
            f"a budget of {budget} trials leaves {max(0, proposals)} proposals beside measuring {best} of them again "
            f"in {blocks} blocks"
        )
        raise InputError([Problem(message, "--budget", field="tune.budget")], hint="raise the budget")
    return Stages(proposals=proposals, best=best, blocks=blocks)


def shortlist(proposed: Mapping[int, Proposed], told: Iterable[Told], stages: Stages) -> Shortlisted:
    """The proposals that are measured again: those with the largest gains, of equal values only one."""
    groups: dict[str, list[Told]] = {}
    for each in told:
        key = json.dumps(proposed[each.number].values, sort_keys=True)
        groups.setdefault(key, []).append(each)
    gains: dict[int, float] = {}
    for same in groups.values():
        if all(each.state == "measured" for each in same):
            gains[same[0].number] = float(np.mean([each.gain for each in same if each.gain is not None]))
    best = sorted(gains, key=lambda number: (-gains[number], number))[: stages.best]
    return Shortlisted(numbers=best, blocks=stages.blocks)


def confirmation(
    gains: Mapping[int, Sequence[float]], breached: Iterable[int], *, tuning: Tuning, claim: Claim
) -> ConfirmationPlanned:
    """Which proposal is confirmed, in how many blocks.

    Args:
        gains: of fresh blocks, by proposal.
        breached: proposals whose fresh blocks breach a guardrail on average.
        tuning: the study's section.
        claim: what it is to show.
    """
    fewest = fewest_blocks(alpha=claim.alpha) if claim.fewest is None else claim.fewest
    bad = set(breached)
    means = {number: float(np.mean(values)) for number, values in gains.items() if number not in bad}
    if not means:
        return ConfirmationPlanned(number=None, reason="no proposal could be measured within the guardrails")
    number = max(means, key=lambda each: means[each])
    gain = means[number]
    if gain <= 0:
        return ConfirmationPlanned(
            number=None, gain=gain, reason="measured again, no proposal is better than the default"
        )
    df = sum(len(values) - 1 for values in gains.values())
    sd = math.sqrt(sum((len(values) - 1) * float(np.var(values, ddof=1)) for values in gains.values()) / df)
    upper = upper_deviation(sd, df=df)
    expected = max(math.log1p(claim.margin), gain - sd / math.sqrt(len(gains[number])))
    needed = max(fewest, _needed(upper, expected, alpha=claim.alpha))
    blocks = tuning.confirm.blocks or min(needed, tuning.confirm.most)
    effect = f"a gain of {math.expm1(expected) * 100:.1f} %"
    short = f"{effect} needs {needed} blocks under the noise seen, not {blocks}" if needed > blocks else ""
    if blocks < fewest:
        short = f"{blocks} blocks can claim nothing at this confidence, whatever they show: {fewest} can"
    return ConfirmationPlanned(
        number=number, blocks=blocks, fewest=fewest, gain=gain, sd=sd, sd_upper=upper, reason=short
    )


def fewest_blocks(*, alpha: float) -> int:
    """Of a confirmation: as many as can claim at a level."""
    return max(FEWEST_CONFIRMING, comparing.fewest_blocks(paired=True, alpha=alpha))


def fewest_of(stored: ConfirmationPlanned) -> int | None:
    """`Claim.fewest` of a confirmation that is recomputed: it was 6 for every journal of before."""
    return FEWEST_CONFIRMING if stored.fewest == FEWEST_CONFIRMING else None


def _needed(sd: float, effect: float, *, alpha: float) -> int:
    if sd <= 0:
        return FEWEST_CONFIRMING
    return power.blocks_needed(sd, effect=math.expm1(effect), alpha=alpha) or power.MOST_BLOCKS
