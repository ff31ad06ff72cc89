"""One arm against the baseline: ratio, difference, tests. Adjustment and verdict come later, for the whole family."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairtrial.analyse.inference import censoring, confirming, permuting, ranks, sensitivity, shares, spreads, t_tests
from fairtrial.analyse.inference import covariates as regressions
from fairtrial.analyse.inference.t_tests import TTest, Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Interval, RankOpinion, Role, Welch

PAIRED_LOGS: Final = "paired t on log ratios over blocks"
ADJUSTED_LOGS: Final = "paired t on log ratios over blocks, adjusted for covariates"
PAIRED_UNITS: Final = "paired t on differences over blocks"
WELCH_LOGS: Final = "Welch on logs"
WELCH_UNITS: Final = "Welch on the values"
SIGNED_RANK: Final = "Wilcoxon signed rank over blocks"
RANK_SUM: Final = "Mann-Whitney"
PAIRED_FLIPS: Final = "paired permutation of differences over blocks"
SHUFFLED: Final = "permutation of the values"
EXCHANGED: Final = (PAIRED_FLIPS, SHUFFLED)
FEWEST_UNPAIRED: Final = 4  # trials per arm, of which ranks of equally many could claim at 0.05
CENSORED: Final = ", values known by class"  # what a method's name ends in

_LIKE_NORMAL: Final = {
    PAIRED_LOGS: "log ratios of blocks are independent and roughly normal",
    ADJUSTED_LOGS: "log ratios of blocks are linear in the covariates' log ratios, but for independent, roughly normal "
    "noise; the arm does not move the covariates",
    PAIRED_UNITS: "differences of blocks are independent and roughly normal",
    WELCH_LOGS: "trials are independent and their logarithms roughly normal; spreads may differ",
    WELCH_UNITS: "trials are independent and roughly normal; spreads may differ",
    PAIRED_FLIPS: "blocks are independent; without an effect arms could be exchanged within a block",
    SHUFFLED: "trials are independent; without an effect they could be exchanged between arms",
}
_TRIALS_COUNT: Final = "the trial is the unit: nothing inside a trial counts as a repetition"


@dataclass(frozen=True)
class ComparisonOptions:
    """What all comparisons of an analysis share.

    Attributes:
        paired: whether trials of one block are compared with each other.
        margin: equivalence margin as a share; on the log scale it is ± log(1 + margin), the same in both directions.
        family_size: primary comparisons that are judged together.
        screening_size: secondary comparisons that are.
        once: whether the number of blocks was fixed beforehand; a rule that stops early has a smallest n of its own.
        seed: of permutations, derived from the plan's.
    """

    paired: bool
    confidence: float
    margin: float
    family_size: int
    screening_size: int = 0
    once: bool = True
    seed: int = 0

    @property
    def alpha(self) -> float:
        """Level of a test at this confidence."""
        return 1 - self.confidence

    def size(self, role: Role) -> int:
        """How many comparisons of a role are adjusted together; 0 for guardrails, which are no family."""
        return {"primary": self.family_size, "secondary": self.screening_size, "guardrail": 0}[role]

    def level(self, role: Role) -> float:
        """Of one comparison of a role at the hardest step of its family."""
        return self.alpha / max(1, self.size(role))


@dataclass(frozen=True)
class ArmPair:
    """The values that one comparison uses: of common blocks in the same order if paired, else all of them.

    Attributes:
        baseline, arm: shapes (n,) and (m,).
        unit: what rounding is of, at the least: 1 for logarithms, whose values were rounded before them.
    """

    baseline: Values
    arm: Values
    unit: float = 0.0

    @property
    def positive(self) -> bool:
        """Whether every value has a logarithm."""
        return bool((self.baseline > 0).all() and (self.arm > 0).all())

    @property
    def logarithms(self) -> ArmPair:
        """Of values that all have one."""
        return ArmPair(baseline=np.log(self.baseline), arm=np.log(self.arm), unit=1.0)

    @property
    def size(self) -> float:
        """How large the values are; 0 without any."""
        return max(float(np.abs(each).mean()) if len(each) else 0.0 for each in (self.baseline, self.arm))

    @property
    def rounding(self) -> float:
        """What differs by no more is equal."""
        return t_tests.ROUNDING * max(self.unit, self.size)

    @property
    def differences(self) -> Values:
        """Of the arm from the baseline over blocks, equal where rounding alone tells them apart."""
        return ranks.settled(self.arm - self.baseline, rounding=self.rounding)

    @property
    def settled(self) -> tuple[Values, Values]:
        """Baseline and arm, equal where rounding alone tells them apart."""
        both = ranks.settled(np.concatenate([self.baseline, self.arm]), rounding=self.rounding)
        return both[: len(self.baseline)], both[len(self.baseline) :]

    def moved(self, *, baseline: float = 0.0, arm: float = 0.0) -> ArmPair:
        """Further by so much."""
        return replace(self, baseline=self.baseline + baseline, arm=self.arm + arm)

    @property
    def exchanged(self) -> ArmPair:
        """The arm as the baseline."""
        return replace(self, baseline=self.arm, arm=self.baseline)


def arm_pair(baseline: ArmValues, arm: ArmValues, *, paired: bool) -> ArmPair:
    """Pairs values by block; blocks that only one arm has are left out, and `doubts` says how many."""
    if not paired:
        return ArmPair(baseline=baseline.values, arm=arm.values)
    blocks = baseline.common(arm)
    return ArmPair(baseline=baseline.at(blocks), arm=arm.at(blocks))


def comparable(baseline: ArmValues, arm: ArmValues, *, paired: bool) -> bool:
    """Whether there is anything to compare: a common block if paired, else a value in each."""
    used = arm_pair(baseline, arm, paired=paired)
    return min(len(used.baseline), len(used.arm)) > 0


@dataclass(frozen=True)
class Subject:
    """What a comparison is of; `resolution` and `total` as in the metric's definition."""

    metric: str
    role: Role
    cell: str
    resolution: float = 0.0
    total: float = 0.0


def compare(
    baseline: ArmValues,
    arm: ArmValues,
    *,
    subject: Subject,
    setting: ComparisonOptions,
    covariates: Values | None = None,
) -> Comparison:
    """Compares two arms, which must have something in common (`comparable`).

    `covariates` are those that the ratio is adjusted for: differences within the common blocks, shape (k, n). All that
    is said of the ratio then is of blocks without them; the difference in units and Welch's test stay plain.

    A test that cannot be computed gives p = 1; `verdict` is `undecided` until the family is judged.
    """
    used = arm_pair(baseline, arm, paired=setting.paired)
    logs = baseline.positive and arm.positive
    censored = censoring.by_class(used.baseline, used.arm, resolution=subject.resolution)
    tested = t_tests_by_class(used, subject.resolution, setting) if censored else _tested(used, setting)
    in_units, on_logs = tested[0], tested[1] if logs else None
    scaled = used.logarithms if logs else used
    adjusted = covariates is not None and on_logs is not None and not censored
    if covariates is not None and adjusted:
        on_logs, scaled = _adjusted(scaled, covariates, setting)
    deciding = on_logs if logs else in_units
    exchanged = (deciding is None and not censored) or (not logs and permuting.heaped(used.baseline, used.arm))
    method = ADJUSTED_LOGS if adjusted else _method(paired=setting.paired, logs=logs, exchanged=exchanged)
    level = setting.level(subject.role)
    by_t = 1.0 if deciding is None else deciding.p
    rank = _rank(scaled, setting=setting, logs=logs)
    bound = shares.bound(used.baseline, used.arm, margin=setting.margin, total=subject.total) if logs else 0.0
    p = _confirmed(_permuted(scaled, setting) if exchanged else by_t, scaled, setting=setting, level=level)
    return Comparison(
        metric=subject.metric,
        role=subject.role,
        cell=subject.cell,
        baseline=baseline.arm,
        arm=arm.arm,
        method=method + CENSORED if censored else method,
        n=min(len(used.baseline), len(used.arm)),
        confidence=setting.confidence,
        ratio=_ratio(scaled, on_logs) if logs else Interval(estimate=None, low=None, high=None),
        mean=None if exchanged else _mean(deciding, scaled, level=level, logs=logs),
        equivalence_interval=_at_both_ends(on_logs, alpha=setting.alpha),
        difference=_difference(used, in_units),
        welch=_welch(baseline, arm, confidence=setting.confidence),
        p=p,
        p_by_t=by_t if p > by_t and not exchanged else None,
        p_adjusted=None,
        margin=math.expm1(bound),
        p_equivalence=_inside(
            on_logs, scaled if logs and not censored else None, bound=bound, setting=setting, level=level
        ),
        family_size=setting.size(subject.role),
        verdict="undecided",
        smallest_effect=None if on_logs is None else sensitivity.share(sensitivity.detectable(on_logs, alpha=level)),
        smallest_difference=_smallest_difference(in_units, alpha=level),
        claimable=not setting.once or rank is None or _enough(used, rank, setting),
        rank=rank,
        typical_moves=_typical_moves(used, setting),
        spreads=None
        if censored
        else spreads.compared(scaled.baseline, scaled.arm, paired=setting.paired, rounding=scaled.rounding),
        stalls=spreads.stalls(min(len(used.baseline), len(used.arm)), level=level),
        assumptions=(_LIKE_NORMAL[method], _TRIALS_COUNT),
    )


def _method(*, paired: bool, logs: bool, exchanged: bool) -> str:
    if exchanged:
        return PAIRED_FLIPS if paired else SHUFFLED
    if paired:
        return PAIRED_LOGS if logs else PAIRED_UNITS
    return WELCH_LOGS if logs else WELCH_UNITS


def _adjusted(logs: ArmPair, covariates: Values, setting: ComparisonOptions) -> tuple[TTest | None, ArmPair]:
    """The test where no covariate differs, and the arm without what they explain."""
    fit = regressions.regressed(logs.arm - logs.baseline, covariates)
    without = replace(logs, arm=logs.baseline + fit.remaining)
    return fit.tests.single(confidence=setting.confidence), without


def _tested(used: ArmPair, setting: ComparisonOptions) -> tuple[TTest | None, TTest | None]:
    """In units and, where all values have one, on logarithms."""
    return t_test(used, setting), t_test(used.logarithms, setting) if used.positive else None


def t_test(used: ArmPair, setting: ComparisonOptions) -> TTest | None:
    """Student's over blocks, or Welch's; None if it cannot be computed."""
    test = t_tests.paired if setting.paired else t_tests.welch
    return test(used.baseline, used.arm, confidence=setting.confidence)


def t_tests_by_class(used: ArmPair, resolution: float, setting: ComparisonOptions) -> tuple[TTest | None, TTest | None]:
    """In units and on logarithms, of values of which only their class is known."""
    test = censoring.paired if setting.paired else censoring.welch
    units, logs = (
        test(*(scale(each, resolution=resolution) for each in (used.baseline, used.arm)), confidence=setting.confidence)
        if scale is censoring.on_units or used.positive
        else None
        for scale in (censoring.on_units, censoring.on_logs)
    )
    return units, logs


def exchanged_beyond(used: ArmPair, setting: ComparisonOptions, *, sign: float) -> float:
    """One-sided p of exchanging arms alone, for an arm above the baseline, or below it for a negative sign."""
    return _permuted(used, setting) / 2 if sign * _mean_shift(used) > 0 else 1.0


def _permuted(used: ArmPair, setting: ComparisonOptions) -> float:
    p = permuting.paired_p if setting.paired else permuting.unpaired_p
    return p(used.baseline, used.arm, rounding=used.rounding, seed=setting.seed)


def _confirmed(p: float, scaled: ArmPair, *, setting: ComparisonOptions, level: float) -> float:
    """A t test's p, held against tests that ask less of the noise; a rule that looks often has its own p."""
    if not setting.once or p >= setting.alpha:
        return p
    by_t = np.asarray(p)
    if setting.paired:
        return float(confirming.paired(by_t, scaled.differences, level=level, alpha=setting.alpha))
    return float(confirming.unpaired(by_t, *scaled.settled, level=level, alpha=setting.alpha))


def confirmed_above(p: float, scaled: ArmPair, *, setting: ComparisonOptions, level: float) -> float:
    """The same for a one-sided p of "the arm is not above the baseline", whether looked at once or often."""
    by_t = np.asarray(p)
    if setting.paired:
        return float(confirming.paired_beyond(by_t, scaled.differences, level=level, alpha=setting.alpha))
    return float(confirming.unpaired_beyond(by_t, *scaled.settled, level=level, alpha=setting.alpha))


def _inside(
    test: TTest | None, logs: ArmPair | None, *, bound: float, setting: ComparisonOptions, level: float
) -> float | None:
    """The p of equivalence, against the margin's nearer end likewise; `logs`: None where there are none."""
    if test is None:
        return None if logs is None else _inside_by_exchange(logs, bound=bound, setting=setting)
    p = sensitivity.equivalence(test, bound=bound)
    if logs is None or not setting.once or p >= setting.alpha:
        return p
    from_above = logs.exchanged if _mean_shift(logs) >= 0 else logs
    return confirmed_above(p, from_above.moved(arm=bound), setting=setting, level=level)


def _inside_by_exchange(logs: ArmPair, *, bound: float, setting: ComparisonOptions) -> float | None:
    """The same of values without spread: the arm moved by the margin, either way, against the baseline."""
    if min(len(logs.baseline), len(logs.arm)) < t_tests.SMALLEST_N:
        return None
    return max(exchanged_beyond(logs.moved(arm=by), setting, sign=by) for by in (-bound, bound))


def _typical_moves(used: ArmPair, setting: ComparisonOptions) -> bool:
    if setting.paired:
        return bool(np.median(used.differences) != 0)
    first, second = used.settled
    return bool(np.median(first) != np.median(second))


def _enough(used: ArmPair, rank: RankOpinion, setting: ComparisonOptions) -> bool:
    """Many trials of one arm do not make up for few of the other: of 2 against 20 ranks could claim."""
    few = not setting.paired and min(len(used.baseline), len(used.arm)) < FEWEST_UNPAIRED
    return not few and ranks.could_claim(rank.smallest_p, alpha=setting.alpha)


def fewest_blocks(*, paired: bool, alpha: float) -> int:
    """From how many blocks on, or trials per arm without blocks, a fixed number may claim anything."""
    if paired:
        return next(n for n in itertools.count(1) if ranks.could_claim(ranks.smallest_signed_rank_p(n), alpha=alpha))
    trials = itertools.count(FEWEST_UNPAIRED)
    return next(n for n in trials if ranks.could_claim(ranks.smallest_rank_sum_p(n, n), alpha=alpha))


def _mean_shift(used: ArmPair) -> float:
    return float(np.mean(used.arm) - np.mean(used.baseline))


def _ratio(logs: ArmPair, test: TTest | None) -> Interval:
    """Ratio of geometric means: the estimate is there even where no interval is, or none that a number can hold."""
    low, high = (None, None) if test is None else (test.low, test.high)
    return spreads.ratio(_back(_mean_shift(logs), logs=True), low, high)


def _mean(test: TTest | None, scaled: ArmPair, *, level: float, logs: bool) -> Interval | None:
    """What is left open of the mean: the interval at `level`, and beyond both ends what unseen stalls may be worth."""
    if test is None:
        return None
    n = min(len(scaled.baseline), len(scaled.arm))
    low, high = test.interval(confidence=1 - level)
    return spreads.mean_interval((test.estimate, low, high), n=n, level=level, size=None if logs else scaled.size)


def _at_both_ends(on_logs: TTest | None, *, alpha: float) -> Interval | None:
    """The ratio's interval of two one-sided tests at `alpha`: where it lies within the margin, both claim."""
    if on_logs is None:
        return None
    interval = spreads.ratio(_back(on_logs.estimate, logs=True), *on_logs.interval(confidence=1 - 2 * alpha))
    return None if interval.low is None else interval


def _difference(used: ArmPair, test: TTest | None) -> Interval:
    low, high = (None, None) if test is None else (test.low, test.high)
    return Interval(estimate=_mean_shift(used), low=low, high=high)


def _rank(scaled: ArmPair, *, setting: ComparisonOptions, logs: bool) -> RankOpinion | None:
    """The exact test on the same values and the same scale as the t test that decides."""
    if setting.paired:
        test = ranks.signed_rank(scaled.differences, confidence=setting.confidence)
    else:
        test = ranks.rank_sum(*scaled.settled, confidence=setting.confidence)
    if test is None:
        return None
    estimate, low, high = (_back(value, logs=logs) for value in (test.estimate, test.low, test.high))
    return RankOpinion(
        method=SIGNED_RANK if setting.paired else RANK_SUM,
        scale="ratio" if logs else "difference",
        shift=Interval(estimate=estimate, low=low, high=high),
        p=test.p,
        smallest_p=test.smallest_p,
        exact=test.exact,
        tied=test.tied,
    )


def _back(value: float | None, *, logs: bool) -> float | None:
    return math.exp(min(t_tests.LARGEST_LOGARITHM, value)) if logs and value is not None else value


def _welch(baseline: ArmValues, arm: ArmValues, *, confidence: float) -> Welch | None:
    """On all values of both arms, paired or not: what `t.test(arm, baseline)` prints in R."""
    test = t_tests.welch(baseline.values, arm.values, confidence=confidence)
    if test is None:
        return None
    difference = Interval(estimate=test.estimate, low=test.low, high=test.high)
    return Welch(t=test.t, df=test.df, p=test.p, difference=difference)


def _smallest_difference(test: TTest | None, *, alpha: float) -> float | None:
    difference = math.inf if test is None else sensitivity.detectable(test, alpha=alpha)
    return difference if math.isfinite(difference) else None
