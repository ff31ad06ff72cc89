"""The analysis once more, from textbooks: plain Python sums, SciPy's distributions, and nothing of `fairtrial.analyse`.

Written to disagree with the product wherever the product is wrong, so it shares no function, no array library for the
arithmetic, and no order of steps with it. Sources: Student (1908), Welch (1947), Satterthwaite (1946), Holm (1979),
Schuirmann (1987); power of the t test as the mean of normal tails over the distribution of the standard deviation.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from statistics import NormalDist

from scipy import integrate, stats

from fairtrial.record.models import Plan, TrialRecord

Interval = tuple[float | None, float | None, float | None]
NOTHING: Interval = (None, None, None)
RESAMPLES = 9_999
POWER_STEPS = 20_000  # quantiles of the chi distribution that the power is averaged over; its error is below 1e-4


@dataclass(frozen=True)
class Line:
    """A t test on one scale: estimate ± quantile · error."""

    estimate: float
    error: float
    df: float

    def p(self) -> float:
        return float(2 * stats.t.sf(abs(self.estimate / self.error), self.df))

    def interval(self, confidence: float) -> tuple[float, float, float]:
        reach = float(stats.t.ppf(0.5 + confidence / 2, self.df)) * self.error
        return self.estimate, self.estimate - reach, self.estimate + reach

    def equivalence(self, bound: float) -> float:
        """The larger p of the two one-sided tests."""
        below = stats.t.sf((self.estimate + bound) / self.error, self.df)  # H0: the true value is at most -bound
        above = stats.t.cdf((self.estimate - bound) / self.error, self.df)  # H0: it is at least bound
        return float(max(below, above))

    def power(self, effect: float, alpha: float) -> float:
        """Chance that a repeat finds a true effect of this size: normal tails averaged over the spread it may show."""
        critical = float(stats.t.ppf(1 - alpha / 2, self.df))
        shift = effect / self.error
        shares = [(step + 0.5) / POWER_STEPS for step in range(POWER_STEPS)]
        spreads = (stats.chi2.ppf(shares, self.df) / self.df) ** 0.5
        return float((stats.norm.cdf(shift - critical * spreads) + stats.norm.cdf(-shift - critical * spreads)).mean())


@dataclass(frozen=True)
class Expected:
    """What a comparison must say."""

    n: int
    ratio: Interval
    difference: Interval
    welch: tuple[float, float, float, Interval] | None  # t, df, p, difference
    p: float | None  # None: drawn exchanges, by a seed
    p_equivalence: float | None
    scaled: tuple[list[float], list[float]] | None  # logarithms of both arms
    logs: Line | None


def one_sample(values: Sequence[float]) -> Line | None:
    if len(values) < 2 or len(set(values)) == 1:
        return None
    return Line(statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1)


def two_samples(first: Sequence[float], second: Sequence[float]) -> Line | None:
    """Second minus first, spreads not taken as equal."""
    if min(len(first), len(second)) < 2 or len(set(first)) == len(set(second)) == 1:
        return None
    one, two = statistics.variance(first) / len(first), statistics.variance(second) / len(second)
    df = (one + two) ** 2 / (one**2 / (len(first) - 1) + two**2 / (len(second) - 1))
    return Line(statistics.fmean(second) - statistics.fmean(first), math.sqrt(one + two), df)


def holm(values: Sequence[float]) -> list[float]:
    """Step down from the smallest: (m - rank) · p, never falling, never above 1."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted


def any_below(p: float, shares: Sequence[float]) -> float:
    """Chance that one of several p values is this small, given how much their comparisons share: by quadrature."""
    if len(shares) == 1 or p >= 1:
        return min(p, 1.0)
    deviation = -NormalDist().inv_cdf(p / 2)

    def outside(u: float) -> float:
        inside = 1.0
        for share in shares:
            loading, rest = math.sqrt(share), math.sqrt(1 - share)
            upper = NormalDist(loading * u, rest).cdf(deviation)
            inside *= upper - NormalDist(loading * u, rest).cdf(-deviation)
        return (1 - inside) * NormalDist().pdf(u)

    found: float = integrate.quad(outside, -12, 12, epsabs=1e-12, epsrel=1e-10, limit=400)[0]
    return found


def closed(p: Sequence[float], shares: Sequence[float], groups: Sequence[str]) -> list[float]:
    """Every set of hypotheses tested: Dunnett within its groups, Bonferroni over them; the largest counts."""
    adjusted = [0.0] * len(p)
    known: dict[tuple[int, ...], float] = {}

    def of_group(members: tuple[int, ...]) -> float:
        if members not in known:
            known[members] = any_below(min(p[each] for each in members), [shares[each] for each in members])
        return known[members]

    for size in range(1, len(p) + 1):
        for chosen in combinations(range(len(p)), size):
            parts = [tuple(each for each in chosen if groups[each] == name) for name in {groups[i] for i in chosen}]
            together = min(1.0, len(parts) * min(map(of_group, parts)))
            for each in chosen:
                adjusted[each] = max(adjusted[each], together)
    return adjusted


def by_block(trials: Sequence[TrialRecord], levels: Mapping[str, str], metric: str) -> dict[int, float]:
    """Values of one combination of levels, by block, without blocks that lost a trial of any arm."""
    lost = {(each.trial.cell, each.trial.block) for each in trials if not each.valid}
    return {
        each.trial.block: each.scalars[metric]
        for each in sorted(trials, key=lambda each: each.trial.position)
        if each.levels == levels
        and (each.trial.cell, each.trial.block) not in lost
        and math.isfinite(each.scalars.get(metric, math.nan))
    }


def compare(first: Mapping[int, float], second: Mapping[int, float], *, plan: Plan) -> Expected | None:
    """One comparison from values by block; None where there is nothing to compare."""
    paired = plan.design.order != "sequential"
    common = [block for block in first if block in second]
    before = [first[block] for block in common] if paired else list(first.values())
    after = [second[block] for block in common] if paired else list(second.values())
    if not before or not after:
        return None
    has_logs = all(value > 0 for value in (*first.values(), *second.values()))
    in_units = line(before, after, paired=paired)
    logs = line(list(map(math.log, before)), list(map(math.log, after)), paired=paired) if has_logs else None
    deciding = logs if has_logs else in_units
    zeros = [*before, *after].count(0)
    scaled = [[math.log(value) if has_logs else value for value in arm] for arm in (before, after)]
    if deciding is None or zeros > 1 or (zeros and min(*before, *after) >= 0):
        p = by_exchange(*scaled, paired=paired)
    else:
        p = deciding.p()
    margin = math.log(1 + plan.design.margin)
    confidence = plan.design.confidence
    classic = two_samples(list(first.values()), list(second.values()))
    geometric = statistics.geometric_mean(after) / statistics.geometric_mean(before) if has_logs else None
    mean = statistics.fmean(after) - statistics.fmean(before)
    bounds = [math.exp(bound) for bound in logs.interval(confidence)[1:]] if logs else [None, None]
    return Expected(
        n=min(len(before), len(after)),
        ratio=(geometric, bounds[0], bounds[1]) if has_logs else NOTHING,
        difference=in_units.interval(confidence) if in_units else (mean, None, None),
        welch=(classic.estimate / classic.error, classic.df, classic.p(), classic.interval(confidence))
        if classic
        else None,
        p=p,
        p_equivalence=logs.equivalence(margin)
        if logs
        else inside_by_exchange(*scaled, margin=margin, paired=paired)
        if has_logs
        else None,
        scaled=(scaled[0], scaled[1]) if logs else None,
        logs=logs,
    )


def by_exchange(before: Sequence[float], after: Sequence[float], *, paired: bool) -> float | None:
    """Twice the smaller tail over every exchange of labels; None where there are more than the product looks at."""
    if paired:
        differences = [late - early for early, late in zip(before, after, strict=True)]
        if len(differences) < 2 or not any(differences):
            return 1.0
        sums = [math.fsum(signed) for signed in product(*((value, -value) for value in differences))]
        observed = math.fsum(differences)
    else:
        values = [*before, *after]
        if min(len(before), len(after)) < 2 or len(set(values)) == 1:
            return 1.0
        if math.comb(len(values), len(after)) > RESAMPLES:
            return None
        sums = [math.fsum(chosen) for chosen in combinations(values, len(after))]
        observed = math.fsum(after)
    low = sum(each <= observed + 1e-9 for each in sums) / len(sums)
    high = sum(each >= observed - 1e-9 for each in sums) / len(sums)
    return min(1.0, 2 * min(low, high))


def inside_by_exchange(before: Sequence[float], after: Sequence[float], *, margin: float, paired: bool) -> float | None:
    """The arm moved by the margin either way, and how seldom exchanges give as much."""
    if min(len(before), len(after)) < 2:
        return None
    found = []
    for by in (-margin, margin):
        moved = [value + by for value in after]
        against = (statistics.fmean(moved) - statistics.fmean(before)) * by > 0
        p = by_exchange(before, moved, paired=paired)
        assert p is not None, "values without spread are few here"
        found.append(p / 2 if against else 1.0)
    return max(found)


def line(before: Sequence[float], after: Sequence[float], *, paired: bool) -> Line | None:
    if not paired:
        return two_samples(before, after)
    return one_sample([late - early for early, late in zip(before, after, strict=True)])


def comparisons(
    plan: Plan, trials: Sequence[TrialRecord], metrics: Sequence[str], *, contrast: str
) -> dict[tuple[str, str, str], Expected]:
    """Every comparison by (cell, metric, arm), in the order of cells, metrics, arms."""
    conditions = [name for name in plan.factors if name != contrast]
    baseline, *arms = plan.factors[contrast]
    found = {}
    for combination in product(*(plan.factors[name] for name in conditions)):
        at = dict(zip(conditions, combination, strict=True))
        for metric in metrics:
            first = by_block(trials, {**at, contrast: baseline}, metric)
            for arm in arms:
                second = by_block(trials, {**at, contrast: arm}, metric)
                expected = compare(first, second, plan=plan)
                if expected is not None:
                    found["+".join(combination) or "all", metric, arm] = expected
    return found
