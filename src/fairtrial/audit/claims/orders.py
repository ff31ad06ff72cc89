"""Claims of an order: sentences such as "A is the fastest", rankings, and effects said to be smaller than others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Final

import numpy as np

from fairtrial.analyse.inference import ranks, t_tests
from fairtrial.analyse.inference.families import holm
from fairtrial.audit import methods
from fairtrial.audit.claims.models import Claim, OrderClaim
from fairtrial.audit.comparisons import CONFIDENCE, ArmComparison, compared_at, place
from fairtrial.audit.findings import AuditFinding, Passage
from fairtrial.audit.models import Levels
from fairtrial.audit.noise_floor import Floors
from fairtrial.audit.reading import Dataset

ALPHA: Final = 1 - CONFIDENCE
UNRESOLVED: Final = "the data do not separate {first} from {second} ({p}); their means are {order}"
ONE_VALUE: Final = "{level} has only one value: no test is possible"
MILDER: Final = "the data do not separate the two effects (p = {p:.2g})"
NO_RATIO: Final = "the effects are compared as ratios, but a value is not positive"


@dataclass(frozen=True)
class _Step:
    """One level said to be better than another.

    Attributes:
        lead: by how much it is, in the metric's direction; negative if it is worse.
        p: two-sided; adjusted once the steps of an order are known.
    """

    first: str
    second: str
    lead: float
    p: float

    def why(self) -> str:
        order = "in this order" if self.lead > 0 else "in the opposite order" if self.lead < 0 else "equal"
        return UNRESOLVED.format(first=self.first, second=self.second, p=f"Holm p = {self.p:.2g}", order=order)


def orders(dataset: Dataset, claim: Claim, *, floors: Floors) -> Iterator[AuditFinding]:
    """Every order of a claim, at every combination of the levels that it does not name."""
    for each in claim.orders:
        others = [name for name in dataset.description.factors if name not in (claim.contrast, *each.at)]
        for chosen in product(*(dataset.levels(name) for name in others)):
            at = {**each.at, **dict(zip(others, chosen, strict=True))}
            yield _Order(dataset, claim, each, at).finding(floors)


@dataclass(frozen=True)
class _Order:
    """One order at one combination of levels: confirmed if every step is, contradicted if any pair is turned round."""

    dataset: Dataset
    claim: Claim
    order: OrderClaim
    at: Levels

    @property
    def levels(self) -> list[str]:
        """As claimed; after a single best one, every other."""
        named = self.order.best_first
        others = [level for level in self.dataset.levels(self.claim.contrast) if level != named[0]]
        return [*named] if len(named) > 1 else [*named, *others]

    def finding(self, floors: Floors) -> AuditFinding:
        where = f"{place(self.at)}: " if self.at else ""
        ranking = len(self.order.best_first) > 1
        what = f"{where}{'order' if ranking else 'best'} by {self.claim.metric}"
        printed, here = " before ".join(self.order.best_first), Passage(self.claim.where)
        if obstacle := self._obstacle():
            return here.unknown(what, printed, obstacle)
        pairs = combinations(self.levels, 2)
        every = [self._step(*pair) for pair in (pairs if ranking else self._steps())]
        steps = _adjusted([each for each in every if (each.first, each.second) in self._steps()])
        here = replace(here, note=self._note(floors, steps))
        ranked = sorted(self.levels, key=lambda level: self._sign * float(np.mean(self._values(level))))
        computed = " before ".join(ranked) if ranking else ranked[0]
        if all(each.lead > 0 and each.p < ALPHA for each in steps):
            computed = f"{printed}, Holm p ≤ {max((each.p for each in steps), default=1.0):.2g}"
            return here.checked(what, printed, computed=computed, kind=None)
        if any(each.lead < 0 and each.p < ALPHA for each in _adjusted(every)):
            return here.checked(what, printed, computed=computed, kind="order")
        weakest = max(steps, key=lambda each: (each.lead <= 0, each.p))
        return here.undecided(what, printed, computed=computed, why=weakest.why())

    @property
    def _sign(self) -> int:
        return -1 if self.dataset.description.metrics[self.claim.metric].better == "higher" else 1

    def _side(self, level: str) -> Levels:
        return {**self.at, self.claim.contrast: level}

    def _values(self, level: str) -> t_tests.Values:
        return self.dataset.values(self.claim.metric, self._side(level))

    def _obstacle(self) -> str:
        for level in self.levels:
            missing = self.dataset.missing(self.claim.metric, self._side(level))
            if missing or len(self._values(level)) < t_tests.SMALLEST_N:
                return missing or ONE_VALUE.format(level=level)
        return ""

    def _steps(self) -> list[tuple[str, str]]:
        """What the claim says outright: each level before the next, or the best before every other."""
        first, *others = self.levels
        return list(pairwise(self.levels)) if len(self.order.best_first) > 1 else [(first, each) for each in others]

    def _step(self, first: str, second: str) -> _Step:
        """By blocks where the data name them; without any spread, by the exact rank test."""
        sides, metric = (self._side(first), self._side(second)), self.claim.metric
        values = self._values(first), self._values(second)
        test = methods.tested(self.dataset, metric, sides=sides, test="paired", confidence=CONFIDENCE)
        if isinstance(test, str):
            test = methods.tested(self.dataset, metric, sides=sides, test="welch", confidence=CONFIDENCE)
        if not isinstance(test, str):
            return _Step(first, second, lead=self._sign * test.estimate, p=test.p)
        exact = ranks.rank_sum(*values, confidence=CONFIDENCE)
        lead = self._sign * float(np.mean(values[1]) - np.mean(values[0]))
        return _Step(first, second, lead=lead, p=1.0 if exact is None else exact.p)

    def _note(self, floors: Floors, steps: list[_Step]) -> str:
        """Of the smallest step."""
        means = {level: float(np.mean(self._values(level))) for level in self.levels}
        sizes = {
            (each.first, each.second): (means[each.second] - means[each.first]) / abs(means[each.first])
            for each in steps
            if means[each.first]
        }
        if not sizes:
            return ""
        levels = min(sizes, key=lambda pair: abs(sizes[pair]))
        return floors.note(self.claim, at=self.at, levels=levels, size=sizes[levels])


def _adjusted(steps: list[_Step]) -> list[_Step]:
    adjusted = holm([each.p for each in steps]).tolist()
    return [replace(each, p=p) for each, p in zip(steps, adjusted, strict=True)]


def milder(dataset: Dataset, claim: Claim) -> Iterator[AuditFinding]:
    """The contrast's effect at one level of a factor against that at each other level, by Welch on logarithms."""
    for factor, level in claim.milder_at.items():
        here = [at for at in dataset.combinations(without=claim.contrast) if at[factor] == level]
        others = [each for each in dataset.levels(factor) if each != level]
        for at, second, other in product(here, dataset.levels(claim.contrast)[1:], others):
            effects = [_effect(dataset, claim, at=each, second=second) for each in (at, {**at, factor: other})]
            yield _milder(dataset, claim, what=f"{place(at)} against {other}", effects=effects)


def _effect(dataset: Dataset, claim: Claim, *, at: Levels, second: str) -> ArmComparison | str:
    """On logarithms; or why there is none."""
    levels = dataset.levels(claim.contrast)[0], second
    missing = [dataset.missing(claim.metric, {**at, claim.contrast: level}) for level in levels]
    effect = compared_at(dataset, metric=claim.metric, contrast=claim.contrast, at=at, levels=levels)
    if effect is None:
        return next(filter(None, missing), methods.NO_TEST)
    return effect if effect.all_positive else NO_RATIO


def _milder(dataset: Dataset, claim: Claim, *, what: str, effects: Sequence[ArmComparison | str]) -> AuditFinding:
    here = Passage(claim.where)
    one, other = effects
    if isinstance(one, str) or isinstance(other, str):
        return here.unknown(what, "milder", next(each for each in effects if isinstance(each, str)))
    is_higher = dataset.description.metrics[claim.metric].better == "higher"
    are_gains = all((each.logs.low > 0) if is_higher else (each.logs.high < 0) for each in (one, other))
    is_milder = ((one.logs.estimate > other.logs.estimate) == is_higher) != are_gains
    p, computed = _apart(one, other), "milder" if is_milder else "harder"
    if p >= ALPHA:
        return here.undecided(what, "milder", computed=computed, why=MILDER.format(p=p))
    return here.checked(what, "milder", computed=computed, kind=None if is_milder else "order")


def _apart(one: ArmComparison, other: ArmComparison) -> float:
    """Chance that equal effects lie this far apart; degrees of freedom by Satterthwaite, as Welch's."""
    shares = [each.logs.standard_error**2 for each in (one, other)]
    df = sum(shares) ** 2 / sum(share**2 / each.logs.df for share, each in zip(shares, (one, other), strict=True))
    return t_tests.two_sided_p((one.logs.estimate - other.logs.estimate) / math.sqrt(sum(shares)), df)
