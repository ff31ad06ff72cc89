"""Whether an arm's effect differs between conditions: log ratios of all cells, contrasted between levels of factors.

Pairs cancel what trials of a block share, so that a cell's log ratios are a sample with noise of its own. A claim that
effects differ is another question than whether there are any: these tests are a family of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.designs.contrasts import GroupMeans
from fairtrial.analyse.designs.interaction_models import Interaction, InteractionReason, LevelEffect, LevelPair
from fairtrial.analyse.inference import families, t_tests
from fairtrial.analyse.inference.comparing import CENSORED, ComparisonOptions, arm_pair
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.lower_bounds import CUT_OFF
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison
from fairtrial.analyse.sequential.rule import LookTest, Rule, reach
from fairtrial.analyse.tidy import Request, Table

FEWEST: Final = 4  # blocks of each cell, or trials of each arm there, from which a claim is possible
FEWEST_LOOKED: Final = 3  # the same where a rule looked often: its boundary makes up for one block
TWO: Final = 2  # factors whose joint influence is tested
MOST_CELLS: Final = 100  # of more, anyone's table, no reader takes in what differs where
MOST_LEVELS: Final = 8  # of a factor whose pairs are compared, 28 of them


@dataclass(frozen=True)
class Circumstances:
    """What else decides how interactions are tested.

    Attributes:
        finished: whether the run reached its planned end.
        without_verdict: whether a comparison gets none, because a cell is not what its name says.
        rule: of a run that could stop early.
        in_step: whether trials or boots of one block stand in several cells, as they do if another factor than the arm
            is compared, or if arms boot once in a round: log ratios of a round then covary.
    """

    finished: bool = True
    without_verdict: Callable[[Comparison], bool] = lambda _comparison: False
    rule: Rule | None = None
    in_step: bool = False


def interactions(
    comparisons: Sequence[Comparison],
    table: Table,
    request: Request,
    *,
    setting: ComparisonOptions,
    circumstances: Circumstances,
) -> tuple[Interaction, ...]:
    """Every test of every primary metric and arm, one per factor and one per two factors; none without conditions."""
    levels = _levels(request) if comparisons and len(request.cells) <= MOST_CELLS else {}
    subsets = [factors for size in (1, TWO) for factors in combinations(levels, size)]
    found = {(each.metric, each.arm, each.cell): each for each in comparisons}
    tests: list[_Test] = []
    for metric, arm in product(request.roles, request.levels[1:]):
        if request.roles[metric] == "primary":
            of = {cell: found[metric, arm, cell] for cell in request.cells if (metric, arm, cell) in found}
            cells, reason = _cells(of, table, request, circumstances=circumstances)
            for factors in subsets:
                chosen = {factor: levels[factor] for factor in factors}
                tests.append(_Test(metric, arm, chosen, _complete(cells, chosen), reason))
    made = [each.made(setting, circumstances, size=len(tests)) for each in tests]
    return _judged(made, alpha=setting.alpha, finished=circumstances.finished)


def _levels(request: Request) -> dict[str, list[str]]:
    """Of every factor that tells cells apart, in the study's order."""
    names = dict.fromkeys(factor for levels in request.cells.values() for factor in levels)
    found = {
        name: list(dict.fromkeys(levels[name] for levels in request.cells.values() if name in levels)) for name in names
    }
    return {factor: levels for factor, levels in found.items() if len(levels) > 1}


@dataclass(frozen=True)
class _Cell:
    """One cell's values on the log scale.

    Attributes:
        groups: log ratios of blocks; without blocks the baseline's logarithms and the arm's.
        blocks: of the log ratios; empty without blocks.
    """

    name: str
    levels: Mapping[str, str]
    groups: tuple[Values, ...]
    blocks: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Blocks, or trials of the smaller arm."""
        return min(len(each) for each in self.groups)


def _cells(
    of: Mapping[str, Comparison], table: Table, request: Request, *, circumstances: Circumstances
) -> tuple[list[_Cell], InteractionReason]:
    """The cells whose log ratios a test can use, and why others are missing."""
    reason: InteractionReason = "few_blocks"
    cells = []
    for name, comparison in of.items():
        inexact = CENSORED in comparison.method or CUT_OFF in comparison.method
        if inexact or comparison.ratio.estimate is None:
            reason = "no_ratio"
        elif circumstances.finished and circumstances.without_verdict(comparison):
            reason = "no_verdict"
        else:
            cells.append(_cell(comparison, table[name, comparison.metric], request))
    return [each for each in cells if each.n >= t_tests.SMALLEST_N], reason


def _cell(comparison: Comparison, arms: Mapping[str, ArmValues], request: Request) -> _Cell:
    baseline, arm = arms[comparison.baseline], arms[comparison.arm]
    logs = arm_pair(baseline, arm, paired=request.paired).logarithms
    name, levels = comparison.cell, request.cells[comparison.cell]
    if request.paired:
        return _Cell(name, levels, (logs.differences,), blocks=tuple(baseline.common(arm)))
    return _Cell(name, levels, (logs.baseline, logs.arm))


def _complete(cells: Sequence[_Cell], of: Mapping[str, Sequence[str]]) -> list[_Cell]:
    """The cells of those combinations of other conditions where no combination of these factors' levels is missing."""
    others = [tuple(level for factor, level in cell.levels.items() if factor not in of) for cell in cells]
    wanted = math.prod(len(levels) for levels in of.values())
    return [each for each, other in zip(cells, others, strict=True) if others.count(other) == wanted]


@dataclass(frozen=True)
class _Test:
    """One metric, one arm, the levels of one factor or two, and the cells that a test of them uses."""

    metric: str
    arm: str
    levels: Mapping[str, Sequence[str]]
    cells: Sequence[_Cell]
    reason: InteractionReason

    def made(self, setting: ComparisonOptions, circumstances: Circumstances, *, size: int) -> Interaction:
        """The test, not yet judged with its family of so many."""
        bare = Interaction(metric=self.metric, arm=self.arm, factors=tuple(self.levels), family_size=size)
        means = self._means(in_step=circumstances.in_step and setting.paired) if self.cells else None
        if means is None:
            return bare.model_copy(update={"reason": self.reason})
        counts = tuple(means.counts.tolist())
        fewest, most = min(counts), max(counts)
        used = {"cells": tuple(cell.name for cell in self.cells), "in_step": means.in_step}
        counted = bare.model_copy(update={**used, "fewest": fewest, "most": most})
        weights = self._weights()
        test = means.joint(weights)
        if not math.isfinite(float(test.f)):
            return counted.model_copy(update={"reason": "few_blocks" if fewest <= len(weights) else "no_spread"})
        looks = _Looks(circumstances.rule, counts=counts, setting=setting, size=size)
        levels, pairs = self._by_level(means, looks) if len(self.levels) == 1 else ((), ())
        return counted.model_copy(
            update={
                "f": float(test.f),
                "df_between": float(test.df_between),
                "df_within": float(test.df_within),
                "p": looks.p(float(test.p)),
                "p_once": None if circumstances.rule is None else float(test.p),
                "p_pooled": None if means.in_step else float(means.classical(weights).p),
                "levels": levels,
                "pairs": pairs,
                "reason": "few_blocks" if fewest < (FEWEST if circumstances.rule is None else FEWEST_LOOKED) else "",
            }
        )

    def _means(self, *, in_step: bool) -> GroupMeans | None:
        if not in_step:
            return GroupMeans.independent([group for cell in self.cells for group in cell.groups])
        common = sorted(set.intersection(*(set(cell.blocks) for cell in self.cells)))
        if len(common) < t_tests.SMALLEST_N:
            return None
        return GroupMeans.together(
            np.stack([cell.groups[0][[cell.blocks.index(block) for block in common]] for cell in self.cells])
        )

    def _weights(self) -> Values:
        """Contrasts of one factor's levels with its first, or of two factors' effects on it with none of each other's.

        A row per combination of levels other than the first.
        """
        first = [levels[0] for levels in self.levels.values()]
        rows = []
        for chosen in product(*(levels[1:] for levels in self.levels.values())):
            corners = product(*zip(first, chosen, strict=True))
            signed = [
                (-1.0) ** sum(one == other for one, other in zip(corner, first, strict=True)) * self._mean_of(corner)
                for corner in corners
            ]
            rows.append(np.sum(signed, axis=0))
        return np.stack(rows)

    def _mean_of(self, levels: Sequence[str]) -> Values:
        """Weights of the mean log ratio at these levels of the test's factors, over all their cells alike."""
        at = dict(zip(self.levels, levels, strict=True)).items()
        inside = np.array([at <= cell.levels.items() for cell in self.cells], dtype=np.float64)
        sides = [1.0] if len(self.cells[0].groups) == 1 else [-1.0, 1.0]
        return np.kron(inside / inside.sum(), sides)

    def _by_level(self, means: GroupMeans, looks: _Looks) -> tuple[tuple[LevelEffect, ...], tuple[LevelPair, ...]]:
        (levels,) = self.levels.values()
        of = {level: self._mean_of([level]) for level in levels}
        pairs = list(combinations(levels, 2)) if len(levels) <= MOST_LEVELS else []
        effects = []
        for level, weights in of.items():
            ratio, low, high = _interval(means.contrast(weights).single(confidence=looks.confidence(1)))
            effects.append(LevelEffect(level=level, ratio=ratio, low=low, high=high))
        found = []
        for first, second in pairs:
            test = means.contrast(of[second] - of[first])
            ratio, low, high = _interval(test.single(confidence=looks.confidence(len(pairs))))
            p = looks.p(float(test.p))
            shared = min(1.0, p * len(pairs) * looks.size)
            found.append(LevelPair(first=first, second=second, ratio=ratio, low=low, high=high, p=p, p_adjusted=shared))
        return tuple(effects), tuple(found)


@dataclass(frozen=True)
class _Looks:
    """What looking often asks of tests and intervals of cells that stopped after so many blocks.

    Cells stop when their own spread looks small or their effect large, so the boundary of a cell's comparison is asked
    for here, too: the strictest of its cells.
    """

    rule: Rule | None
    counts: tuple[int, ...]
    setting: ComparisonOptions
    size: int

    def p(self, once: float) -> float:
        """Of a test made now, valid for looking often."""
        if self.rule is None:
            return once
        nominal, level = np.asarray(once), self.setting.alpha / self.size
        return max(
            float(LookTest(self.rule, sides=2, level=level, units=n).p_after(nominal, nominal, n))
            for n in set(self.counts)
        )

    def confidence(self, intervals: int) -> float:
        """Of each of so many intervals that hold together."""
        level = self.setting.alpha / intervals
        if self.rule is None:
            return 1 - level
        return 1 - min(
            2 * float(special.stdtr(n - 1, -reach(n, level=level, rule=self.rule))) for n in set(self.counts)
        )


def _interval(test: t_tests.TTest | None) -> tuple[float | None, float | None, float | None]:
    """The ratio and its ends; None where a number cannot hold one of them, either way up."""
    logarithms = () if test is None else (test.estimate, test.low, test.high)
    if not logarithms or not all(abs(each) <= t_tests.LARGEST_LOGARITHM for each in logarithms):
        return None, None, None
    ratio, low, high = map(math.exp, logarithms)
    return ratio, low, high


def _judged(made: Sequence[Interaction], *, alpha: float, finished: bool) -> tuple[Interaction, ...]:
    """Holm over all of them; those without a test count with p = 1."""
    if not made:
        return ()
    judged = []
    for each, p in zip(made, families.holm([each.p for each in made]).tolist(), strict=True):
        claimed = p < alpha and not each.reason and finished
        alike = len(each.pairs) == 1
        pairs = [
            pair.model_copy(update={"p_adjusted": adjusted, "claimed": claimed and adjusted < alpha})
            for pair in each.pairs
            for adjusted in [p if alike else max(p, pair.p_adjusted)]
        ]
        judged.append(
            each.model_copy(
                update={
                    "p_adjusted": p,
                    "pairs": tuple(pairs),
                    "verdict": "none" if each.f is None or not finished else "differs" if claimed else "not_shown",
                    "reason": each.reason or ("" if finished else "unfinished"),
                }
            )
        )
    return tuple(judged)
