"""The exchange of arms within blocks, written out: every choice of signs, one after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from fairtrial.analyse.models import Comparison


def every_sign(differences: Sequence[float]) -> float:
    """Two-sided p of a mean of 0: the share of choices of signs whose sum is as far from 0."""
    seen = abs(sum(differences)) - 1e-12 * sum(map(abs, differences))
    choices = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) >= seen for signs in choices)
    return far / len(choices)


def raised(p: float, differences: Sequence[float], *, family: int, alpha: float = 0.05) -> float:
    """What a t test's p becomes, by the rule of the methodology page."""
    choices = alpha / max(1, family) * 2 ** (len(differences) - 1)
    if p >= alpha or choices <= 1:
        return p
    towards = 1 - 1 / math.sqrt(choices)
    return max(p, math.exp((1 - towards) * math.log(p) + towards * math.log(every_sign(differences))))


def raised_inside(p: float, differences: Sequence[float], *, bound: float, family: int, alpha: float = 0.05) -> float:
    """What a p of equivalence becomes, by the rule of the methodology page."""
    choices = alpha / max(1, family) * 2 ** len(differences)
    if p >= alpha or choices <= 1:
        return p
    above = sum(differences) >= 0
    exact = every_sign([bound - each if above else bound + each for each in differences]) / 2
    towards = 1 - 1 / math.sqrt(choices)
    return max(p, math.exp((1 - towards) * math.log(p) + towards * math.log(exact)))


def by_t(found: Comparison) -> float:
    """Student's own p."""
    return found.p if found.p_by_t is None else found.p_by_t
