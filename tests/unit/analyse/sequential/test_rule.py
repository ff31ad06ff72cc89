"""Each step of a sequential rule by itself: spending, p values by look, reach, the chance of a claim, giving up."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential import anytime
from fairtrial.analyse.sequential.adjusting import in_words
from fairtrial.analyse.sequential.following import rule_of
from fairtrial.analyse.sequential.planning import expected_blocks
from fairtrial.analyse.sequential.rule import (
    ENOUGH_TO_GIVE_UP,
    Estimates,
    Goal,
    Rule,
    chance_of_claim,
    dependent,
    estimates,
    goal,
    hopeless,
    p_difference,
    p_equivalence,
    ranked,
    reach,
    reaches,
)
from fairtrial.analyse.sequential.spending import FUNCTIONS, Spending
from fairtrial.analyse.sequential.standing import Standing
from fairtrial.record.models import Plan

BOUND = math.log1p(0.02)
RULE = Rule(first=3, last=12, alpha=0.05, bound=BOUND)
SPENDINGS: tuple[Spending, ...] = ("pocock", "obrien_fleming")


def seen(n: int, mean: float, error: float, *, bound: float = BOUND) -> Estimates:
    """Of blocks whose ranks are as certain as can be."""
    none = np.zeros(1)
    mean_, error_, bound_ = np.array([mean]), np.array([error]), np.array([bound])
    others = {"ranked": none, "ranked_inside": none, "neighbours": np.array([math.nan]), "logs": np.array([True])}
    others |= {"own": none, "own_inside": none, "own_reach": none}
    return Estimates(np.array([n]), mean_, error_, bound_, **others)


# How the error is spent.


@pytest.mark.parametrize("spending", SPENDINGS)
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("level", [0.001, 0.05, 0.3])
def test_all_of_the_error_is_spent_by_the_last_block_and_never_given_back(
    spending: Spending, sides: int, level: float
) -> None:
    levels = np.array([level])
    spent = [float(FUNCTIONS[spending](levels, share, sides)[0]) for share in np.linspace(0.05, 1, 20)]
    assert spent[-1] == pytest.approx(level)
    assert spent == sorted(spent)
    assert 0 <= spent[0] < level / 5


def test_half_way_pocock_has_spent_most_and_obrien_and_fleming_little() -> None:
    """Lan and DeMets' Table 1: 0.0310 and 0.00305 of 0.05 after half of the information, two-sided."""
    half = [float(FUNCTIONS[spending](np.array([0.05]), 0.5, 2)[0]) for spending in SPENDINGS]
    assert half == pytest.approx([0.03101, 0.00305], abs=2e-5)


# p values of a look.


@pytest.mark.parametrize("n", [1, 2])
def test_before_the_first_look_there_is_no_p_however_clear_it_is(n: int) -> None:
    clear = seen(n, 1.0, 1e-6)
    assert p_difference(clear, RULE, level=0.05).tolist() == [1.0]
    assert p_equivalence(seen(n, 0.0, 1e-6), RULE, level=0.05).tolist() == [1.0]


@settings(max_examples=40, deadline=None)
@given(st.floats(-0.2, 0.2), st.floats(1e-3, 0.1), st.integers(3, 12))
def test_a_look_is_never_more_certain_than_a_test_that_looks_once(mean: float, error: float, n: int) -> None:
    once = 2 * stats.t.sf(abs(mean) / error, n - 1)
    found = float(p_difference(seen(n, mean, error), RULE, level=0.05)[0])
    assert found >= once - 1e-12
    assert found == float(p_difference(seen(n, -mean, error), RULE, level=0.05)[0])
    same = float(p_equivalence(seen(n, mean, error), RULE, level=0.05)[0])
    assert same >= stats.t.cdf((abs(mean) - BOUND) / error, n - 1) - 1e-12
    assert same == float(p_equivalence(seen(n, -mean, error), RULE, level=0.05)[0])


def test_what_has_no_logarithm_is_never_equivalent() -> None:
    for mean in (0.0, 1e-9, 0.5):
        assert float(p_equivalence(seen(8, mean, 1e-3, bound=0.0), RULE, level=0.05)[0]) >= 0.5


def test_beyond_the_bound_anytime_has_no_evidence_of_equivalence() -> None:
    rule = replace(RULE, kind="anytime")
    assert float(p_equivalence(seen(9, 2 * BOUND, 1e-4), rule, level=0.05)[0]) == 1.0
    inside = float(p_equivalence(seen(9, 0.0, BOUND / 30), rule, level=0.05)[0])
    assert inside == pytest.approx(float(anytime.p(np.array(30.0), 9)))


def test_a_comparison_that_cannot_be_computed_has_a_p_of_1() -> None:
    assert p_difference(seen(6, 0.4, math.inf), RULE, level=0.05).tolist() == [1.0]
    assert p_difference(seen(6, 0.0, math.inf), RULE, level=0.05).tolist() == [1.0]


def test_comparisons_of_different_length_are_each_judged_at_their_own_look() -> None:
    looks = [seen(n, 0.05, 0.01) for n in (2, 3, 7, 12)]
    many = Estimates(*(np.concatenate([getattr(look, each.name) for look in looks]) for each in fields(Estimates)))
    alone = [float(p_difference(seen(n, 0.05, 0.01), RULE, level=0.05)[0]) for n in (2, 3, 7, 12)]
    assert p_difference(many, RULE, level=0.05).tolist() == pytest.approx(alone)
    assert len(set(alone)) == 4


# What ranks and neighbours say of a look.


@pytest.mark.parametrize("kind", ["sequential", "anytime"])
def test_ranks_hold_back_a_claim_as_far_as_they_can_reach_the_boundary(kind: str) -> None:
    rule = replace(RULE, kind=kind)  # type: ignore[arg-type]
    sure = {n: seen(n, 0.05, 0.004) for n in (4, 12)}
    doubtful = {n: replace(of, ranked=np.array([0.4])) for n, of in sure.items()}
    of_t, held = ({n: float(p_difference(each[n], rule, level=0.05)[0]) for n in each} for each in (sure, doubtful))
    assert held[4] == pytest.approx(of_t[4]), "four blocks have no exact p this small"
    assert held[12] > 10 * of_t[12]
    inside = seen(12, 0.0, BOUND / 30)
    assert float(p_equivalence(replace(inside, ranked_inside=np.array([0.4])), rule, level=0.05)[0]) > 10 * float(
        p_equivalence(inside, rule, level=0.05)[0]
    )


def test_what_ranks_say_is_wilcoxons_in_the_direction_of_the_mean() -> None:
    blocks = np.array([[0.01, 0.03, -0.005, 0.02, 0.015, 0.04], [-0.01, -0.03, 0.005, -0.02, -0.015, -0.04]])
    difference, inside = ranked(blocks, bound=np.full(2, 0.05))
    expected = stats.wilcoxon(blocks[0], alternative="greater", method="exact").pvalue
    assert difference.tolist() == pytest.approx([2 * expected] * 2)
    assert inside.tolist() == pytest.approx([2.0**-6] * 2), "every block lies within the margin"
    nothing = ranked(np.zeros((2, 0)), bound=np.full(2, 0.05))
    assert [each.tolist() for each in nothing] == [[1.0, 1.0]] * 2


@pytest.mark.parametrize(("cells", "n"), [(1, 6), (1, 20), (6, 10)])
def test_blocks_that_do_not_resemble_their_neighbours_are_told_to_wait_in_one_of_twenty_looks(
    cells: int, n: int
) -> None:
    blocks = np.random.default_rng(cells + n).normal(0, 1, (4000, cells, n))
    waits = dependent(of_blocks(blocks), pools=np.zeros(cells, dtype=int), cells=np.arange(cells))
    assert 0.03 < waits.any(axis=1).mean() < 0.07
    assert (waits.all(axis=1) == waits.any(axis=1)).all(), "the pool waits together"


def test_comparisons_that_share_a_baseline_count_as_one_and_pools_by_themselves() -> None:
    random = np.random.default_rng(4)
    baseline = random.normal(0, 1, (4000, 1, 10))
    both = random.normal(0, 0.3, (4000, 2, 10)) - baseline
    waits = dependent(of_blocks(both), pools=np.zeros(2, dtype=int), cells=np.zeros(2, dtype=int))
    assert 0.03 < waits.any(axis=1).mean() < 0.07
    rising = np.concatenate([np.linspace(0, 1, 10)[None, None] + 0.1 * both[:50, :1], both[:50, 1:]], axis=1)
    apart = dependent(of_blocks(rising), pools=np.arange(2), cells=np.zeros(2, dtype=int))
    assert apart[:, 0].mean() > 0.9
    assert apart[:, 1].mean() < 0.2


def test_cells_that_share_their_boots_wait_as_one_of_them_would() -> None:
    random = np.random.default_rng(8)
    alone = random.normal(0, 1, (2000, 1, 10))

    def waits(blocks: Values, *, in_step: bool) -> Values:
        """Of a run's look at all cells of one metric, one replicate after the other."""
        cells = blocks.shape[1]
        standing = Standing(
            rule=RULE,
            shape=blocks.shape[:2],
            cells=np.arange(cells),
            pools=np.zeros(cells, dtype=np.int64),
            family=np.ones(cells, dtype=bool),
            in_step=in_step,
        )
        standing.look(of_blocks(blocks))
        return standing.waits[:, 0]

    one, four = waits(alone, in_step=False), waits(np.repeat(alone, 4, axis=1), in_step=True)
    assert (one == four).all()
    boots = alone + random.normal(0, 0.3, (2000, 6, 10))
    assert waits(boots, in_step=True).mean() < 0.07
    assert waits(boots, in_step=False).mean() > 0.15, "as cells of their own"


def of_blocks(blocks: Values) -> Estimates:
    shape = blocks.shape[:-1]
    n = np.full(shape, blocks.shape[-1])
    return estimates(blocks, n=n, error=np.ones(shape), bound=np.full(shape, BOUND))


# How far an interval reaches.


def test_an_interval_reaches_for_ever_before_the_first_look_and_less_with_every_block_after() -> None:
    assert [reach(n, level=0.05, rule=RULE) for n in (1, 2)] == [math.inf, math.inf]
    after = [reach(n, level=0.05, rule=RULE) for n in range(3, 13)]
    assert after == sorted(after, reverse=True)
    fixed = [float(stats.t.isf(0.025, n - 1)) for n in range(3, 13)]
    assert all(mine > theirs for mine, theirs in zip(after, fixed, strict=True))


@pytest.mark.parametrize("kind", ["sequential", "anytime"])
def test_the_interval_leaves_out_nothing_exactly_where_p_reaches_the_level(kind: str) -> None:
    rule = replace(RULE, kind=kind)  # type: ignore[arg-type]
    for n in (6, 9, 12):
        away = reach(n, level=0.05, rule=rule)
        just_in, just_out = (
            float(p_difference(seen(n, away * each, 1.0), rule, level=0.05)[0]) for each in (0.999, 1.001)
        )
        assert just_out < 0.05 < just_in


def test_between_two_looks_it_reaches_as_far_as_at_the_wider_of_both() -> None:
    rule = replace(RULE, last=130)
    looks = rule.looks
    assert 103 not in looks
    before, after = max(each for each in looks if each < 103), min(each for each in looks if each > 103)
    neighbours = [rule.boundaries(2).nominal_level(each, level=0.05) for each in (before, after)]
    assert reach(103, level=0.05, rule=rule) == pytest.approx(float(stats.t.isf(min(neighbours) / 2, 102)))


def test_reaches_are_the_reach_of_each() -> None:
    n = np.array([[2, 5], [5, 12]])
    assert reaches(n, level=0.05, rule=RULE).tolist() == [
        [math.inf, reach(5, level=0.05, rule=RULE)],
        [reach(5, level=0.05, rule=RULE), reach(12, level=0.05, rule=RULE)],
    ]


# The chance of a claim.


def wanted(size: int = 1) -> Goal:
    return goal(RULE, differing=np.array([size]), equalling=np.array([size]))


def test_a_larger_family_asks_for_more_and_a_claim_already_made_for_less() -> None:
    asked = [wanted(size) for size in (1, 2, 6)]
    for field in ("difference", "equivalence"):
        reaches_ = [float(getattr(each, field)[0]) for each in asked]
        assert reaches_ == sorted(reaches_)
        assert reaches_[0] < reaches_[-1]
    assert wanted(0).difference == wanted(1).difference  # the last step is never easier than one comparison's own


@pytest.mark.parametrize(
    ("n", "mean", "error"), [(6, 0.03, 0.012), (5, 0.0, 0.005), (8, 0.01, 0.01), (10, -0.04, 0.02)]
)
def test_the_chance_is_that_of_futures_drawn_at_random(n: int, mean: float, error: float) -> None:
    """Nothing known but these blocks: the mean at the end has Student's t around that of now."""
    random = np.random.default_rng(n)
    at_end = mean + error * math.sqrt(1 - n / RULE.last) * random.standard_t(n - 1, 200_000)
    final_error = error * math.sqrt(n / RULE.last)
    asked = wanted(2)
    claims = np.abs(at_end) > asked.difference[0] * final_error
    claims |= np.abs(at_end) < BOUND - asked.equivalence[0] * final_error
    found = float(chance_of_claim(seen(n, mean, error), RULE, asked)[0])
    assert found == pytest.approx(claims.mean(), abs=0.006)


def test_at_the_last_block_there_is_no_future_and_without_a_spread_every_one_is_open() -> None:
    assert chance_of_claim(seen(12, 0.03, 0.01), RULE, wanted()).tolist() == [0.0]
    assert chance_of_claim(seen(4, 0.03, math.inf), RULE, wanted()).tolist() == [1.0]
    assert chance_of_claim(seen(0, 0.0, math.inf), RULE, wanted()).tolist() == [1.0]
    unreachable = Goal(difference=np.array([math.inf]), equivalence=np.array([math.inf]))
    assert chance_of_claim(seen(0, 0.0, math.inf), RULE, unreachable).tolist() == [1.0]


def test_a_clear_difference_is_as_good_as_claimed_and_a_hopeless_one_is_not() -> None:
    assert float(chance_of_claim(seen(6, 0.5, 0.01), RULE, wanted())[0]) > 0.999
    assert float(chance_of_claim(seen(11, 0.03, 0.03), RULE, wanted())[0]) < 0.05
    assert float(chance_of_claim(seen(6, 0.0, 0.001), RULE, wanted())[0]) > 0.999  # it will be equivalent


def test_nothing_is_given_up_too_early_too_late_or_unasked() -> None:
    none, n = np.zeros(6), np.array([1, ENOUGH_TO_GIVE_UP - 1, ENOUGH_TO_GIVE_UP, 8, 11, 12])
    assert hopeless(none, n, RULE).tolist() == [False, False, True, True, True, False]
    assert not hopeless(none, n, replace(RULE, futility=False)).any()
    assert hopeless(np.array([0.049, 0.051]), np.array([8, 8]), RULE).tolist() == [True, False]


# What a plan says of its rule.


def planned(*, blocks: int = 12, **design: object) -> Plan:
    plan = Case({"kernel": ["a", "b"], "load": ["1", "2", "3", "4"]}, blocks=blocks).plan()
    usual = {"stop": "sequential", "min_blocks": 3, "spending": "pocock", "futility": True, "equivalence": True}
    return plan.model_copy(update={"design": plan.design.model_copy(update={**usual, **design})})


def test_a_fixed_design_has_no_rule_and_nothing_to_expect() -> None:
    assert rule_of(planned(stop="fixed").design) is None
    assert expected_blocks(planned(stop="fixed")) is None


def test_a_rule_is_the_designs() -> None:
    usual = replace(RULE, alpha=1 - 0.95)
    assert rule_of(planned().design) == usual
    assert rule_of(planned(min_blocks=None).design) == replace(usual, first=12)
    late = rule_of(planned(spending="obrien_fleming", futility=False).design)
    assert late == replace(usual, spending="obrien_fleming", futility=False)
    narrow = rule_of(planned(stop="precision", precision=0.03, min_blocks=8).design)
    assert narrow is not None
    assert (narrow.kind, narrow.half_width, narrow.first) == ("precision", pytest.approx(math.log(1.03)), 8)


def test_the_blocks_to_expect_lie_between_the_first_look_and_the_last_and_fall_with_giving_up() -> None:
    usual, patient, late = (
        expected_blocks(planned(**design))
        for design in ({}, {"futility": False, "equivalence": False}, {"spending": "obrien_fleming"})
    )
    assert usual is not None
    assert patient is not None
    assert late is not None
    assert 3 < usual < late < 12
    assert usual < patient < 12
    assert usual == expected_blocks(planned())  # by the plan's seed


def test_a_rule_is_told_in_words() -> None:
    assert in_words(RULE) == "adjusted for looks from 3 to 12 blocks (Pocock spending)"
    assert in_words(replace(RULE, spending="obrien_fleming")).endswith("(O'Brien–Fleming spending)")
    assert in_words(replace(RULE, kind="anytime")) == "always valid (normal mixture)"
    precise = in_words(replace(RULE, kind="precision"))
    assert precise.startswith("interval widened for stopping by its width, p adjusted for looks")
