"""The noise of a place, from a run of its baseline against itself. Pure: resampling takes its seed from the plan.

Two labels of one resolved trial are compared as two arms would be; whatever differs is noise. Sources: variance
components by the method of moments (Searle, Casella and McCulloch, Variance Components, 1992, chapter 3); Clopper and
Pearson (1934); upper bound of a pilot's deviation: Browne (1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import measured
from fairtrial.analyse.noise.models import MetricNoise, NoiseProfile, Rate, SlotEffect, Uniformity
from fairtrial.analyse.selection import ContrastCell, Selection
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.study.resolved import Section

CONFIDENCE: Final = 0.95  # of floors, slot effects and rates
PILOT_CONFIDENCE: Final = 0.8  # Browne (1995): with this bound a plan has its power in about four of five cases
FEWEST_BLOCKS: Final = 3  # two differences give a spread with one degree of freedom: an interval 12 times as wide
RESAMPLES: Final = 400  # per cell and metric; a rate of 5 % over four of them is known to about half a point


def profile(plan: Plan, selection: Selection, *, kernel: str = "") -> NoiseProfile:
    """The noise of every cell and metric of an A/A run, whose two arms are one trial."""
    alpha = 1 - plan.design.confidence
    names = [*plan.metrics.primary, *plan.metrics.secondary, *plan.metrics.guardrails]
    cells = [cell for cell in selection.cells if any(cell.groups.values())]
    taken = {(cell.name, metric): _pairs(cell, metric) for cell in cells for metric in names}
    present = {key: pairs for key, pairs in taken.items() if pairs is not None}
    metrics = tuple(_noise(*key, pairs=pairs) for key, pairs in present.items())
    seeds = np.random.SeedSequence(plan.design.seed).spawn(len(present))
    flips = [_flipped(pairs, alpha=alpha, seed=seed) for pairs, seed in zip(present.values(), seeds, strict=True)]
    first = next(iter(plan.resolved.values()))[plan.factors[plan.arm][0]]
    return NoiseProfile(
        study=plan.study,
        date=max((trial.finished for trial in selection.used), default=""),
        blocks=plan.design.blocks,
        workload=first.workload.kind,
        system=first.system.kind,
        kernel=kernel,
        metrics=metrics,
        left_out=tuple(f"{metric} in {cell}" for (cell, metric), pairs in taken.items() if pairs is None),
        alpha=alpha,
        uniformity=uniformity([each.p for each in metrics]),
        false_positives=rate(sum(each.p < alpha for each in metrics), of=len(metrics)),
        resampled=rate(sum(flips), of=RESAMPLES * len(flips)),
    )


@dataclass(frozen=True)
class LabelPairs:
    """Logs of one metric in one cell.

    Attributes:
        first, second: by label, of common blocks in order, shape (blocks,).
        second_ran_last: for each block, whether the second label's trial was the later one.
        in_time: every value in the order they ran.
    """

    first: Values
    second: Values
    second_ran_last: np.ndarray[tuple[int], np.dtype[np.bool_]]
    in_time: Values


def _pairs(cell: ContrastCell, metric: str) -> LabelPairs | None:
    """None where a value has no logarithm, blocks are too few, or nothing varies."""
    arms = [measured(trials, metric=metric, arm=level) for level, trials in cell.groups.items()]
    first, second = arms
    blocks = first.common(second)
    if len(blocks) < FEWEST_BLOCKS or not all(arm.positive for arm in arms):
        return None
    before, after = (dict(zip(arm.blocks, arm.positions, strict=True)) for arm in arms)
    order = np.argsort(first.positions + second.positions)
    pairs = LabelPairs(
        first=np.log(first.at(blocks)),
        second=np.log(second.at(blocks)),
        second_ran_last=np.array([after[block] > before[block] for block in blocks]),
        in_time=np.log(np.concatenate([first.values, second.values])[order]),
    )
    return pairs if t_tests.paired(pairs.first, pairs.second, confidence=CONFIDENCE) is not None else None


def _noise(cell: str, metric: str, *, pairs: LabelPairs) -> MetricNoise:
    test = t_tests.paired(pairs.first, pairs.second, confidence=CONFIDENCE)
    assert test is not None  # noqa: S101 - such pairs were left out
    trial_sd, block_sd = components(pairs.first, pairs.second)
    n = len(pairs.first)
    pair_sd = float(np.std(pairs.second - pairs.first, ddof=1))
    return MetricNoise(
        cell=cell,
        metric=metric,
        blocks=n,
        trial_sd=trial_sd,
        block_sd=block_sd,
        slot=_slot(pairs),
        autocorrelation=autocorrelation(pairs.in_time),
        autocorrelation_limit=float(special.ndtri((1 + CONFIDENCE) / 2)) / math.sqrt(len(pairs.in_time)),
        pair_sd=pair_sd,
        pair_sd_upper=upper_deviation(pair_sd, df=n - 1),
        ratio=math.exp(test.estimate),
        floor=floor(pair_sd, df=n - 1, blocks=n),
        p=test.p,
    )


def floor(pair_sd: float, *, df: int, blocks: int) -> float:
    """Half an A/A ratio's 95 % interval over `blocks` blocks, as a share; `pair_sd` of log ratios, known with `df`."""
    return math.expm1(t_tests.quantile((1 + CONFIDENCE) / 2, df) * pair_sd / math.sqrt(blocks))


def upper_deviation(sd: float, *, df: int) -> float:
    """One-sided upper bound of a standard deviation at `PILOT_CONFIDENCE`, by the chi-squared distribution."""
    return sd * math.sqrt(df / float(2 * special.gammaincinv(df / 2, 1 - PILOT_CONFIDENCE)))


def components(first: Values, second: Values) -> tuple[float, float]:
    """Standard deviations between trials of a block and between blocks: one-way random effects, two trials per block.

    The mean squares are those of R's `aov(y ~ factor(block))`; a negative block component is 0.
    """
    within = float(np.mean((second - first) ** 2)) / 2
    between = 2 * float(np.var((first + second) / 2, ddof=1))
    return math.sqrt(within), math.sqrt(max(0.0, (between - within) / 2))


def autocorrelation(values: Values) -> float | None:
    """At lag 1, as R's `acf`; None if nothing varies."""
    centred = values - values.mean()
    whole = float(centred @ centred)
    size = t_tests.ROUNDING_UNITS * np.finfo(np.float64).eps * float(np.abs(values).mean())
    return float(centred[1:] @ centred[:-1]) / whole if whole > len(values) * size**2 else None


def _slot(pairs: LabelPairs) -> SlotEffect | None:
    earlier = np.where(pairs.second_ran_last, pairs.first, pairs.second)
    later = np.where(pairs.second_ran_last, pairs.second, pairs.first)
    test = t_tests.paired(earlier, later, confidence=CONFIDENCE)
    if test is None:
        return None
    return SlotEffect(ratio=math.exp(test.estimate), low=math.exp(test.low), high=math.exp(test.high), p=test.p)


def _flipped(pairs: LabelPairs, *, alpha: float, seed: np.random.SeedSequence) -> int:
    """Of `RESAMPLES` random exchanges of labels within blocks, how many the paired t test rejects."""
    differences = pairs.second - pairs.first
    n = len(differences)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(RESAMPLES, n))
    signed = signs * differences
    spread = signed.std(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(signed.mean(axis=1)) / (spread / math.sqrt(n))
    return int(np.count_nonzero(t > t_tests.quantile(1 - alpha / 2, n - 1)))


def uniformity(values: Sequence[float]) -> Uniformity | None:
    """Whether p values look drawn from 0 to 1 evenly; as R's `ks.test(p, "punif")`. None for fewer than two."""
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes most of a second, and few runs are A/A

    if len(values) < t_tests.SMALLEST_N:
        return None
    result = stats.kstest(values, "uniform")
    return Uniformity(n=len(values), statistic=float(result.statistic), p=float(result.pvalue))


def rate(rejected: int, *, of: int) -> Rate:
    """A rate with its exact interval, as R's `binom.test`."""
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes most of a second, and few runs are A/A

    if not of:
        return Rate(rejected=0, tests=0, rate=None, low=None, high=None)
    interval = stats.binomtest(rejected, of).proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return Rate(rejected=rejected, tests=of, rate=rejected / of, low=float(interval.low), high=float(interval.high))


def at_place(plan: Plan, trials: Sequence[TrialRecord], place: Section) -> list[TrialRecord]:
    """The trials that ran at one place: noise is a place's own."""
    return [trial for trial in trials if plan.resolved[trial.trial.cell][trial.trial.arm].place == place]
