"""The rule as a whole: false claims, coverage, giving up, families; small simulations with fixed seeds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.inference.noises import STALLED, TYPICAL_OF_STALLS, own_stalls

from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential import Rule, simulate
from fairtrial.analyse.sequential.rule import Estimates, exact_from, steadied
from fairtrial.analyse.sequential.simulating import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from fairtrial.analyse.sequential.standing import Standing

BOUND = math.log1p(0.02)
DEFAULT = Rule(first=3, last=10, alpha=0.05, bound=BOUND)


def normal(shape: tuple[int, ...], *, seed: int) -> Values:
    return np.random.default_rng(seed).normal(0, 0.03, shape)


def two_modes(shape: tuple[int, ...], *, seed: int) -> Values:
    """Log ratios of trials that are one time in two a tenth slower."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(0, 0.005, shape) + 0.1 * (random.random(shape) < 0.5) for _ in range(2))
    return second - first


def slow_at_times(shape: tuple[int, ...], *, seed: int) -> Values:
    random = np.random.default_rng(seed)
    first, second = (random.normal(0, 0.01, shape) - 0.3 * (random.random(shape) < 0.1) for _ in range(2))
    return second - first


@pytest.mark.parametrize("noise", [normal, two_modes, slow_at_times])
@pytest.mark.parametrize("comparisons", [1, 6])
@pytest.mark.parametrize("kind", ["sequential", "anytime"])
def test_a_family_without_effects_is_claimed_to_differ_at_most_as_often_as_promised(
    noise: object, comparisons: int, kind: str
) -> None:
    assert callable(noise)
    rule = Rule(first=3, last=10, alpha=0.05, bound=BOUND, kind=kind, equivalence=False)  # type: ignore[arg-type]
    outcome = simulate(noise((3_000, comparisons, 10), seed=comparisons), rule)
    false = np.isin(outcome.verdict, (HIGHER, LOWER)).any(axis=1)
    assert stats.binomtest(int(false.sum()), len(false), 0.05, alternative="greater").pvalue > 0.01
    covered = (outcome.low <= 0) & (outcome.high >= 0)
    assert covered.mean() > 0.94


def test_without_the_others_spread_two_modes_would_deceive() -> None:
    """Why few blocks are not believed to be quieter than half of what their pool shows."""
    ratios = two_modes((2_000, 6, 10), seed=3)
    alone = simulate(ratios, DEFAULT, pools=np.arange(6))
    together = simulate(ratios, DEFAULT)
    false = [np.isin(each.verdict, (HIGHER, LOWER)).any(axis=1).mean() for each in (alone, together)]
    assert false[0] > 0.07
    assert false[1] < 0.05


def test_an_effect_at_the_margin_is_seldom_called_equivalent() -> None:
    ratios = BOUND + normal((4_000, 1, 10), seed=9) / 3
    same = (simulate(ratios, DEFAULT).verdict == EQUIVALENT).sum()
    assert stats.binomtest(int(same), 4_000, 0.05, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("spending", ["pocock", "obrien_fleming"])
def test_intervals_cover_the_truth_after_stopping_on_it(spending: str) -> None:
    effect = 0.04
    rule = Rule(first=3, last=10, alpha=0.05, bound=BOUND, spending=spending)  # type: ignore[arg-type]
    outcome = simulate(effect + normal((4_000, 1, 10), seed=13), rule)
    assert len(np.unique(outcome.blocks)) > 3
    assert ((outcome.low <= effect) & (outcome.high >= effect)).mean() > 0.94


def test_a_large_effect_stops_at_once_and_a_hopeless_cell_is_given_up() -> None:
    ratios = np.concatenate([normal((500, 1, 10), seed=1) / 50 + 0.3, normal((500, 1, 10), seed=2)], axis=1)
    outcome = simulate(ratios, DEFAULT)
    assert (outcome.blocks[:, 0] == 3).mean() > 0.9
    assert (outcome.verdict[:, 0] == HIGHER).all()
    assert outcome.futile[:, 1].mean() > 0.5
    assert (outcome.verdict[outcome.futile] == UNDECIDED).all()
    kept = simulate(ratios, Rule(first=3, last=10, alpha=0.05, bound=BOUND, futility=False))
    assert not kept.futile.any()
    assert kept.blocks[:, 1].mean() > outcome.blocks[:, 1].mean()


def test_a_difference_inside_the_margin_goes_on_until_equivalence_is_shown() -> None:
    ratios = 0.006 + normal((500, 1, 10), seed=4) / 12
    outcome = simulate(ratios, DEFAULT)
    assert (outcome.verdict == EQUIVALENT).mean() > 0.95


@pytest.mark.parametrize("equivalence", [True, False])
def test_a_difference_inside_the_margin_settles_only_what_is_not_to_be_equivalent(*, equivalence: bool) -> None:
    rule = Rule(first=3, last=10, alpha=0.05, bound=BOUND, equivalence=equivalence)
    one = np.array([0])
    standing = Standing(rule=rule, shape=(1,), cells=one, pools=one, family=np.array([True]))
    none = np.array([0.0])
    mean, error, bound = np.array([0.98 * BOUND]), np.array([0.001]), np.array([BOUND])
    unknown = np.array([math.nan])
    seen = Estimates(np.array([8]), mean, error, bound, ranked=none, ranked_inside=none, neighbours=unknown)
    standing.look(seen)
    assert standing.differs_adjusted[0] < 0.05 < standing.same_adjusted[0]
    assert standing.live[0] == equivalence


def test_comparisons_of_a_cell_stop_together() -> None:
    ratios = np.stack([np.full((50, 10), 0.3), np.zeros((50, 10))], axis=1) + normal((50, 2, 10), seed=6) / 20
    apart, together = simulate(ratios * 1.0, DEFAULT), simulate(ratios, DEFAULT, cells=np.array([0, 0]))
    assert (together.blocks[:, 0] == together.blocks[:, 1]).all()
    assert (together.blocks.max(axis=1) >= apart.blocks.max(axis=1)).mean() > 0.9, "but where one of them waits"


def test_the_interval_is_as_narrow_as_asked_where_that_stops() -> None:
    rule = Rule(first=8, last=20, alpha=0.05, bound=BOUND, kind="precision", half_width=0.02)
    outcome = simulate(normal((300, 1, 20), seed=8), rule)
    early = outcome.blocks < 20
    assert 0.5 < early.mean() < 1
    assert ((outcome.high - outcome.low)[early] <= 0.04).all()
    assert ((outcome.low <= 0) & (outcome.high >= 0)).mean() > 0.92


def test_only_comparisons_that_seem_too_quiet_are_steadied_and_only_at_first() -> None:
    error = np.array([0.001, 0.1, 0.1, math.inf])
    none = np.zeros(4)
    n = np.array([3, 3, 3, 1])
    seen = Estimates(n, none, error, none, ranked=none, ranked_inside=none, neighbours=none)
    pools, until = np.array([0, 0, 0, 0]), np.array([8, 8, 8, 8])
    pooled = math.sqrt((0.001**2 + 2 * 0.1**2) / 3)
    assert steadied(seen, pools=pools, until=until).error == pytest.approx([pooled / 2, 0.1, 0.1, math.inf])
    assert steadied(seen, pools=np.arange(4), until=until).error == pytest.approx(error)
    assert steadied(seen, pools=pools, until=np.full(4, 3)).error == pytest.approx(error)
    in_units = replace(seen, logs=np.array([True, True, False, True]))
    of_logs = math.sqrt((0.001**2 + 0.1**2) / 2)
    assert steadied(in_units, pools=pools, until=until).error == pytest.approx([of_logs / 2, 0.1, 0.1, math.inf])


def test_an_interval_in_the_metrics_unit_is_never_narrow_enough() -> None:
    rule = Rule(first=3, last=10, alpha=0.05, bound=BOUND, kind="precision", half_width=0.02)
    one, none = np.array([0]), np.array([0.0])
    standing = Standing(rule=rule, shape=(1,), cells=one, pools=one, family=np.array([True]))
    seen = Estimates(
        np.array([8]), none, np.array([1e-9]), none, ranked=none, ranked_inside=none, neighbours=np.array([math.nan])
    )
    standing.look(replace(seen, logs=np.array([False])))
    assert standing.live[0]
    standing.look(replace(seen, n=np.array([9])))
    assert not standing.live[0]


def test_blocks_from_which_an_exact_test_could_agree() -> None:
    assert [exact_from(level) for level in (0.05, 0.05 / 6, 0.05 / 10)] == [6, 8, 9]


@pytest.mark.parametrize("cells", [1, 6])
def test_stalls_of_one_arm_are_no_claim_of_typical_trials_and_none_of_the_mean(cells: int) -> None:
    """Of rules that stop early, where t alone claimed in a third of runs of one cell and in two thirds of six."""
    rule = replace(DEFAULT, first=4 if cells == 1 else 3, last=20)
    alike = own_stalls((600, cells, 20), seed=cells)
    false = np.isin(simulate(alike, rule).verdict, (HIGHER, LOWER)).any(axis=1)
    assert stats.binomtest(int(false.sum()), len(false), 0.05, alternative="greater").pvalue > 0.01
    equal_means = alike + TYPICAL_OF_STALLS - 0.1 * STALLED
    found = simulate(equal_means, rule)
    claimed = np.isin(found.verdict, (HIGHER, LOWER))
    assert claimed.any(axis=1).mean() > 0.2, "typical trials do differ"
    assert (claimed & found.of_mean).any(axis=1).mean() < 0.01
    cost = simulate(equal_means - BOUND, rule)
    assert ((cost.verdict == EQUIVALENT) & cost.of_mean).sum() == 0


def test_a_claim_is_of_the_mean_only_beyond_what_unseen_stalls_may_be_worth() -> None:
    quiet = normal((200, 1, 20), seed=9) / 40
    rule = replace(DEFAULT, first=4, last=20)
    small, large = simulate(quiet + math.log(1.03), rule), simulate(quiet + math.log(1.2), rule)
    assert (small.verdict == HIGHER).all()
    assert (large.verdict == HIGHER).all()
    assert not small.of_mean.any()
    assert large.of_mean.mean() > 0.95


def test_a_rule_waits_while_neighbouring_blocks_are_alike_and_claims_at_the_last() -> None:
    steady = np.linspace(0.03, 0.06, 12) + normal((100, 1, 12), seed=2) / 200
    rule = Rule(first=5, last=12, alpha=0.05, bound=BOUND)
    found = simulate(steady, rule)
    assert (found.blocks == 12).mean() > 0.9
    assert (found.verdict == HIGHER).all()
    shuffled = np.random.default_rng(3).permuted(steady, axis=-1)
    assert simulate(shuffled, rule).blocks.mean() < 7
