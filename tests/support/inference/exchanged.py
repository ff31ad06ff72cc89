"""What holds a t test's p back, written out: every choice of signs of differences and of their ranks, one by one."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from scipy import stats

from fairtrial.analyse.models import Comparison


def every_sign(differences: Sequence[float]) -> float:
    """Two-sided p of a mean of 0: the share of choices of signs whose sum is as far from 0."""
    seen = abs(sum(differences)) - 1e-12 * sum(map(abs, differences))
    choices = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) >= seen for signs in choices)
    return far / len(choices)


def every_rank_above(differences: Sequence[float]) -> float:
    """Chance that the ranks above 0 sum to as much: of all choices of signs; zeros have no rank."""
    signed = [each for each in differences if each != 0]
    sizes = sorted(map(abs, signed))
    ranks = [statistics.fmean(place for place, size in enumerate(sizes, 1) if size == abs(each)) for each in signed]
    seen = sum(rank for rank, each in zip(ranks, signed, strict=True) if each > 0)
    choices = list(itertools.product((True, False), repeat=len(signed)))
    return sum(sum(itertools.compress(ranks, choice)) >= seen - 1e-9 for choice in choices) / len(choices)


def raised(p: float, differences: Sequence[float], *, family: int, alpha: float = 0.05) -> float:
    """What a t test's p becomes, by the rule of the methodology page."""
    upwards = [each if sum(differences) >= 0 else -each for each in differences]
    exact = every_sign(differences), min(1, 2 * every_rank_above(upwards))
    return _towards(p, exact, choices=alpha / max(1, family) * 2 ** (len(differences) - 1), alpha=alpha)


def raised_inside(p: float, differences: Sequence[float], *, bound: float, family: int, alpha: float = 0.05) -> float:
    """What a p of equivalence becomes, by the rule of the methodology page."""
    above = sum(differences) >= 0
    nearer = [bound - each if above else bound + each for each in differences]
    exact = every_sign(nearer) / 2, every_rank_above(nearer)
    return _towards(p, exact, choices=alpha / max(1, family) * 2 ** len(differences), alpha=alpha)


def raised_unpaired(
    p: float, arms: tuple[Sequence[float], Sequence[float]], *, sides: int, family: int, alpha: float = 0.05
) -> float:
    """What Welch's p of `second` above `first` becomes; of two sides, in the direction of the means."""
    first, second = arms
    n, m = len(first), len(second)
    if sides == 2 and statistics.fmean(second) < statistics.fmean(first):
        first, second = [-each for each in first], [-each for each in second]
    above = stats.mannwhitneyu(second, first, alternative="greater", method="exact").pvalue
    choices = alpha / max(1, family) / sides * math.comb(n + m, n)
    return _towards(p, (min(1, sides * above),), choices=choices, alpha=alpha)


def _towards(p: float, exact: Sequence[float], *, choices: float, alpha: float) -> float:
    if p >= alpha or choices <= 1:
        return p
    share = 1 - 1 / math.sqrt(choices)
    return max(p, *(math.exp((1 - share) * math.log(p) + share * math.log(each)) for each in exact))


def by_t(found: Comparison) -> float:
    """Student's own p."""
    return found.p if found.p_by_t is None else found.p_by_t
