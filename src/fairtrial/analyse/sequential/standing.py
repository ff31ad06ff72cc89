"""Where the comparisons of a family stand, look by look: who is decided, who is given up, who goes on.

The same steps decide while a run goes on, recompute its decisions from the record, and simulate it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from fairtrial.analyse.inference.families import holm
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential.rule import (
    Counts,
    Estimates,
    Flags,
    Goal,
    Rule,
    chance_of_claim,
    dependent,
    exact_from,
    goal,
    hopeless,
    p_difference,
    p_equivalence,
    reaches,
    steadied,
)


@dataclass
class Standing:
    """The state of comparisons, arrays of shape (…, comparisons).

    Attributes:
        cells: the cell of each comparison; a cell goes on for as long as one of its comparisons is open.
        pools: by comparison, which measure the same thing.
        in_step: whether the cells share what their blocks vary by: all say the same of how blocks resemble each other.
        family: by comparison, whether it is judged with the others and decides; the rest is only followed.
        p, same: sequential p of no difference and of no equivalence, of the last look, or larger if what came since
            makes it so. A smaller one of an earlier look would stand beside an interval that denies it. Equivalence
            waits for as many blocks as an exact test needs: fewer that are alike may all lack what happens now and then
            to one arm.
        differs_adjusted, same_adjusted: the same, Holm over the family.
        different, equivalent: claims that settle a comparison, as of the last look.
        settled: decided at some look. futile: given up at some look.
        waits: whose neighbouring blocks are alike, so that this look counts for nothing, unless it is the last.
        live: comparisons whose cells get more blocks.
    """

    rule: Rule
    shape: tuple[int, ...]
    cells: Counts
    pools: Counts
    family: Flags
    in_step: bool = False
    latest: Estimates = field(init=False)
    p: Values = field(init=False)
    same: Values = field(init=False)
    differs_adjusted: Values = field(init=False)
    same_adjusted: Values = field(init=False)
    chance: Values = field(init=False)
    different: Flags = field(init=False)
    equivalent: Flags = field(init=False)
    settled: Flags = field(init=False)
    futile: Flags = field(init=False)
    waits: Flags = field(init=False)
    live: Flags = field(init=False)

    def __post_init__(self) -> None:
        zero = np.zeros(self.shape)
        one, unknown = np.ones(self.shape), np.full(self.shape, np.nan)
        n = np.zeros(self.shape, dtype=np.int64)
        self.latest = Estimates(n, zero, zero, zero, ranked=one, ranked_inside=one, neighbours=unknown)
        for name in ("p", "same", "chance", "differs_adjusted", "same_adjusted"):
            setattr(self, name, np.ones(self.shape))
        for name in ("different", "equivalent", "settled", "futile", "waits"):
            setattr(self, name, np.zeros(self.shape, dtype=bool))
        self.live = np.ones(self.shape, dtype=bool)

    @property
    def level(self) -> float:
        """Of one comparison at Holm's hardest step."""
        return self.rule.alpha / max(1, int(self.family.sum()))

    def look(self, now: Estimates) -> None:
        """Takes in what comparisons show now. One without a new block keeps what it had shown."""
        new = now.n > self.latest.n
        kept = (np.where(new, getattr(now, each.name), getattr(self.latest, each.name)) for each in fields(Estimates))
        self.latest = replace(Estimates(*kept), bound=np.broadcast_to(now.bound, self.shape))
        until = np.where(self.family, exact_from(self.level), self.rule.enough)
        steady = steadied(self.latest, pools=self.pools, until=until)
        apart = np.zeros_like(self.cells) if self.in_step else self.cells
        self.waits = dependent(self.latest, pools=self.pools, cells=apart) & (self.latest.n < self.rule.last)
        counts = np.isin(self.latest.n, self.rule.looks) & ~self.waits
        differs = np.maximum(p_difference(steady, self.rule, level=self.level), self.latest.own)
        inside = np.maximum(p_equivalence(self.latest, self.rule, level=self.level), self.latest.own_inside)
        same = np.where(self.latest.n < self.rule.enough, 1.0, inside)
        self.p = np.where(new, np.where(counts, differs, np.maximum(self.p, differs)), self.p)
        self.same = np.where(new, np.where(counts, same, np.maximum(self.same, same)), self.same)
        self._adjust()
        self.chance = np.where(new, chance_of_claim(self.latest, self.rule, self._goal()), self.chance)
        self._decide()

    def _adjust(self) -> None:
        family = self.family
        self.differs_adjusted[..., family] = holm(self.p[..., family])
        self.same_adjusted[..., family] = holm(self.same[..., family])

    def _goal(self) -> Goal:
        """Of Holm's step that is next: claims already made leave the others an easier one."""
        size = int(self.family.sum())
        claims = (
            (adjusted[..., self.family] < self.rule.alpha).sum(axis=-1, keepdims=True)
            for adjusted in (self.differs_adjusted, self.same_adjusted)
        )
        differing, equalling = (size - claimed for claimed in claims)
        return goal(self.rule, differing=differing, equalling=equalling)

    def _decide(self) -> None:
        """A difference inside the margin settles nothing: the verdict may still be `equivalent`, which comes first."""
        rule, family, estimates = self.rule, self.family, self.latest
        if rule.kind == "precision":
            self.settled |= self._narrow() & ~self.waits
        else:
            matters = (np.abs(estimates.mean) > estimates.bound) | (not rule.equivalence)
            self.different = (self.differs_adjusted < rule.alpha) & matters
            self.equivalent = (self.same_adjusted < rule.alpha) & rule.equivalence
            self.settled |= self.different | self.equivalent
            self.futile |= self.live & ~self.settled & hopeless(self.chance, estimates.n, rule)
        open_ = family & ~(self.settled | self.futile) & (estimates.n < rule.last)
        for cell in np.unique(self.cells):
            members = self.cells == cell
            self.live[..., members] &= open_[..., members].any(axis=-1, keepdims=True)

    def _narrow(self) -> Flags:
        """Whether the interval at the study's confidence is narrow enough; one in the metric's unit never is."""
        with np.errstate(invalid="ignore"):
            away = reaches(self.latest.n, level=self.rule.alpha, rule=self.rule) * self.latest.error
            narrow: Flags = (np.maximum(away, self.latest.own_reach) <= self.rule.half_width) & self.latest.logs
        return narrow
