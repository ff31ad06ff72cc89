"""Whether an arm's effect differs between conditions: R's figures, what is claimed, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from support.inference.analysis_cases import Case, invalid

from fairtrial.analyse import analyse
from fairtrial.analyse.designs.interaction_models import Interaction
from fairtrial.analyse.designs.interactions import FEWEST
from fairtrial.analyse.models import Analysis
from fairtrial.audit import load
from fairtrial.audit.interactions import analysed
from fairtrial.record.models import RangeExpectation, TrialRecord

FACTORS = {"kernel": ("a", "b"), "memory": ("under", "over"), "users": ("low", "mid", "high")}
# Each cell's blocks, log ratio and noise; all is a formula, so that R got the same values.
CELLS = {
    ("under", "low"): (5, 0.0, 0.004),
    ("under", "mid"): (7, 0.01, 0.01),
    ("under", "high"): (4, 0.02, 0.01),
    ("over", "low"): (6, 0.01, 0.01),
    ("over", "mid"): (8, 0.06, 0.02),
    ("over", "high"): (5, 0.15, 0.05),
}
ORDER = list(CELLS)


def value(levels: Mapping[str, str], block: int) -> float:
    at = levels["memory"], levels["users"]
    n, effect, loud = CELLS[at]
    if block > n:
        return math.nan
    number = ORDER.index(at)
    base = 1000 * (1 + 0.1 * math.sin(7 * block + number))
    return (
        base * math.exp(effect + loud * math.sin(13 * block * block + 5 * number)) if levels["kernel"] == "b" else base
    )


def unequal() -> Analysis:
    case = Case(FACTORS, blocks=8)
    return analyse(case.plan(), case.trials(tpm=value))


def by_factors(analysis: Analysis) -> dict[str, Interaction]:
    return {" × ".join(each.factors): each for each in analysis.interactions}


def logs(test: Interaction) -> dict[str, float]:
    return {f"{pair.second}/{pair.first}": math.log(pair.ratio or math.nan) for pair in test.pairs}


def test_the_classical_test_is_that_of_r() -> None:
    """`joint_tests(lm(log(value) ~ block:cell + arm * memory * users))`, emmeans 1.8.4, the terms with the arm."""
    found = by_factors(unequal())
    assert [each.p_pooled for each in found.values()] == pytest.approx(
        [2.60378117876e-11, 3.33441017561e-10, 2.65668888609e-08], rel=1e-9
    )
    assert {(each.fewest, each.most, len(each.cells), each.family_size) for each in found.values()} == {(4, 8, 6, 3)}


def test_ratios_of_ratios_are_the_marginal_means_of_r() -> None:
    """`pairs(emmeans(gls(y ~ memory * users, weights = varIdent(~ 1 | cell)), ~ users))`: estimates and errors."""
    found = by_factors(unequal())
    assert logs(found["memory"]) == pytest.approx({"over/under": 0.0634931853194}, rel=1e-9)
    assert logs(found["users"]) == pytest.approx(
        {"mid/low": 0.0298909473512, "high/low": 0.0796177828132, "high/mid": 0.049726835462}, rel=1e-9
    )
    errors = {"over/under": 0.0065819684, "mid/low": 0.0033758653, "high/low": 0.0093855342, "high/mid": 0.0097706533}
    for each in (found["memory"], found["users"]):
        for pair in each.pairs:
            statistic = logs(each)[f"{pair.second}/{pair.first}"] / errors[f"{pair.second}/{pair.first}"]
            half = math.log(pair.high or math.nan) - math.log(pair.ratio or math.nan)
            assert half > 1.96 * errors[f"{pair.second}/{pair.first}"]
            assert pair.p > math.erfc(abs(statistic) / math.sqrt(2))  # t's tails are heavier than the normal ones
    assert found["memory"].f == pytest.approx((0.0634931853194 / 0.0065819684) ** 2, rel=1e-6)


def test_two_cells_are_compared_by_welch_with_r_s_statistic() -> None:
    """`t.test(y[over, high], y[under, high])`: t = 7.34906465773, df = 4.5052268557 with all degrees of freedom."""
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over"), "users": ("high",)}, blocks=8)
    (test,) = analyse(case.plan(), case.trials(tpm=value)).interactions
    assert test.factors == ("memory",)
    assert test.f == pytest.approx(7.34906465773**2, rel=1e-9)
    assert test.df_between == 1
    assert test.df_within is not None
    assert 3.5 < test.df_within < 4.5052268557  # half a degree of freedom less of each cell
    (pair,) = test.pairs
    assert (pair.p, pair.p_adjusted) == pytest.approx((test.p, test.p_adjusted))
    assert pair.claimed == (test.verdict == "differs")


def johansen(test: Interaction, analysis: Analysis) -> tuple[float, float]:
    """F and its denominator's degrees of freedom, term by term, with traces as Johansen (1980) writes them."""
    cells = [cell for cell in analysis.cells if cell.cell in test.cells]
    ratios = []
    for cell in cells:
        a, b = cell.summaries["tpm"]
        at = dict(zip(a.blocks, a.values, strict=True))
        ratios.append(np.array([math.log(x / at[block]) for block, x in zip(b.blocks, b.values, strict=True)]))
    rows = []
    for factor in test.factors:
        levels = FACTORS[factor]
        of = {level: np.array([cell.levels[factor] == level for cell in cells]) for level in levels}
        rows += [of[level] / of[level].sum() - of[levels[0]] / of[levels[0]].sum() for level in levels[1:]]
    weights = np.array(rows)
    v = np.diag([each.var(ddof=1) / len(each) for each in ratios])
    inverse = np.linalg.inv(weights @ v @ weights.T)
    estimates = weights @ [each.mean() for each in ratios]
    a = 0.0
    for number, each in enumerate(ratios):
        chosen = np.zeros_like(v)
        chosen[number, number] = 1
        part = v @ weights.T @ inverse @ weights @ chosen
        a += (np.trace(part @ part) + np.trace(part) ** 2) / (2 * (len(each) - 1.5))
    q = len(weights)
    return float(estimates @ inverse @ estimates) / (q + 2 * a - 6 * a / (q + 2)), q * (q + 2) / (3 * a)


@pytest.mark.parametrize("factor", ["memory", "users"])
def test_the_deciding_test_is_johansen_s(factor: str) -> None:
    analysis = unequal()
    test = by_factors(analysis)[factor]
    assert (test.f, test.df_within) == pytest.approx(johansen(test, analysis), rel=1e-9)


def noisy(
    case: Case, effects: Mapping[tuple[str, ...], float], *, seed: int = 1, spread: float = 0.01
) -> list[TrialRecord]:
    random = np.random.default_rng(seed)

    def measured(levels: Mapping[str, str], block: int) -> float:
        _, *at = levels.values()
        moved = effects.get(tuple(at), 0.0) if levels["kernel"] == "b" else 0.0
        return math.exp(7 + 0.1 * math.sin(block) + moved + random.normal(0, spread))

    return case.trials(tpm=measured)


def test_equal_effects_are_not_told_apart_and_unequal_ones_are() -> None:
    case = Case(FACTORS, blocks=8)
    same = analyse(case.plan(), noisy(case, dict.fromkeys(CELLS, 0.2)))
    assert [each.verdict for each in same.interactions] == ["not_shown"] * 3
    assert all(cell.comparisons["tpm"][0].verdict == "faster" for cell in same.cells)
    over = {("over", users): 0.1 for users in FACTORS["users"]}
    found = by_factors(analyse(case.plan(), noisy(case, over)))
    assert {name: each.verdict for name, each in found.items()} == {
        "memory": "differs",
        "users": "not_shown",
        "memory × users": "not_shown",
    }
    (pair,) = found["memory"].pairs
    assert pair.low is not None
    assert pair.high is not None
    assert pair.low < math.exp(0.1) < pair.high
    assert [each.level for each in found["memory"].levels] == ["under", "over"]


def test_an_effect_of_one_combination_alone_is_an_interaction_of_both() -> None:
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over"), "users": ("low", "high")}, blocks=8)
    crossed = {("under", "low"): 0.1, ("over", "high"): 0.1}
    found = by_factors(analyse(case.plan(), noisy(case, crossed)))
    assert [each.verdict for each in found.values()] == ["not_shown", "not_shown", "differs"]
    assert found["memory × users"].pairs == ()


def test_the_family_is_that_of_interactions_alone_and_of_primary_metrics() -> None:
    roles = {"primary": ["tpm"], "secondary": ["p99"]}
    case = Case({"kernel": ("a", "b", "c"), "memory": ("under", "over")}, blocks=6, roles=roles)
    random = np.random.default_rng(3)
    analysis = analyse(
        case.plan(),
        case.trials(
            **dict.fromkeys(roles, None)
            and {name: lambda _levels, _block: float(np.exp(random.normal(5, 0.01))) for name in ("tpm", "p99")}
        ),
    )
    assert [(each.metric, each.arm, each.family_size) for each in analysis.interactions] == [
        ("tpm", "b", 2),
        ("tpm", "c", 2),
    ]
    smaller, larger = sorted(each.p for each in analysis.interactions)
    assert sorted(each.p_adjusted for each in analysis.interactions) == pytest.approx(
        sorted([min(1, 2 * smaller), max(min(1, 2 * smaller), larger)])
    )
    assert {one.family_size for cell in analysis.cells for one in cell.comparisons["tpm"]} == {4}


def test_a_study_without_conditions_has_none() -> None:
    case = Case({"kernel": ("a", "b")}, blocks=6)
    analysis = analyse(case.plan(), noisy(case, {}))
    assert analysis.interactions == ()
    assert "interactions" not in analysis.model_dump()  # records of before stay as they are


def test_a_cell_that_is_missing_takes_its_whole_row_out() -> None:
    case = Case(FACTORS, blocks=6)
    trials = noisy(case, {("over", "low"): 0.1, ("over", "mid"): 0.1})
    kept = [each for each in trials if each.trial.cell != "over+high"]
    found = by_factors(analyse(case.plan(), kept))
    assert found["memory"].cells == ("under+low", "under+mid", "over+low", "over+mid")
    assert found["memory"].verdict == "differs"
    assert found["users"].cells == ("under+low", "under+mid", "under+high")
    both = found["memory × users"]
    assert (both.f, both.p, both.verdict, both.reason) == (None, 1.0, "none", "few_blocks")


def test_a_cell_that_is_not_what_its_name_says_is_left_out() -> None:
    fails = RangeExpectation(factor="users", level="high", metric="tpm", text="", low=0.0, high=1.0)
    case = Case(FACTORS, blocks=6, expectations=[fails])
    found = by_factors(analyse(case.plan(), noisy(case, {})))
    assert found["memory"].cells == ("under+low", "under+mid", "over+low", "over+mid")
    assert (found["users"].cells, found["users"].reason) == ((), "no_verdict")


def test_few_blocks_claim_nothing() -> None:
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=FEWEST)
    (enough,) = analyse(case.plan(), noisy(case, {("over",): 0.5})).interactions
    assert (enough.verdict, enough.reason) == ("differs", "")
    trials = noisy(case, {("over",): 0.5})
    lost = [invalid(each) if (each.trial.cell, each.trial.block) == ("over", 2) else each for each in trials]
    (few,) = analyse(case.plan(), lost).interactions
    assert few.p < 0.05
    assert (few.fewest, few.verdict, few.reason) == (FEWEST - 1, "not_shown", "few_blocks")
    assert not few.pairs[0].claimed


def test_an_unfinished_run_has_no_verdict() -> None:
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=6)
    (test,) = analyse(case.plan(), noisy(case, {("over",): 0.5}), finished=False).interactions
    assert (test.verdict, test.reason, test.pairs[0].claimed) == ("none", "unfinished", False)


def test_values_without_spread_or_logarithm_are_not_tested() -> None:
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=6)
    (zero,) = analyse(case.plan(), case.trials(tpm=lambda _levels, block: float(block % 2))).interactions
    assert (zero.f, zero.reason, zero.verdict) == (None, "no_ratio", "none")
    alike = {"a": 4.0, "b": 2.0}
    (constant,) = analyse(case.plan(), case.trials(tpm=lambda levels, _block: alike[levels["kernel"]])).interactions
    assert (constant.f, constant.verdict) == (None, "none")


def test_a_few_blocks_that_agree_by_chance_are_not_taken_for_certain() -> None:
    """One cell's log ratios are equal: what others vary by counts for it as well."""
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=6)

    def measured(levels: Mapping[str, str], block: int) -> float:
        noise = {"under": 1.0, "over": 1 + 0.02 * math.sin(9 * block)}[levels["memory"]]
        return 1000.0 * (noise if levels["kernel"] == "b" else 1.0)

    (test,) = analyse(case.plan(), case.trials(tpm=measured)).interactions
    assert test.f is not None
    assert test.p > 0.05


def test_order_of_levels_and_exchanged_arms_change_no_test() -> None:
    case = Case(FACTORS, blocks=6)
    trials = noisy(case, {("over", "high"): 0.03})
    turned = replace(case, factors={**FACTORS, "users": ("high", "mid", "low"), "memory": ("over", "under")})
    exchanged = replace(case, factors={**FACTORS, "kernel": ("b", "a")})
    here, there, other = (by_factors(analyse(each.plan(), trials)) for each in (case, turned, exchanged))
    for name, test in here.items():
        for same in (there[name], other[name]):
            assert (same.f, same.p, same.p_pooled) == pytest.approx((test.f, test.p, test.p_pooled), rel=1e-9)
    assert logs(there["memory"])["under/over"] == pytest.approx(-logs(here["memory"])["over/under"])


def test_another_factor_than_the_arm_takes_rounds_as_samples() -> None:
    """Blocks of a cell of the arm hold both levels of it: what two blocks differ by is in both log ratios."""
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=8)
    random = np.random.default_rng(5)
    own = {(memory, block): random.normal(0, 0.2) for memory in ("under", "over") for block in range(1, 9)}

    def measured(levels: Mapping[str, str], block: int) -> float:
        gain = 0.05 if levels == {"kernel": "b", "memory": "over"} else 0.0
        return math.exp(7 + own[levels["memory"], block] + gain + random.normal(0, 0.01))

    trials = case.trials(tpm=measured)
    (by_arm,) = analyse(case.plan(), trials).interactions
    (by_memory,) = analyse(case.plan(), trials, contrast="memory").interactions
    assert (by_arm.in_step, by_memory.in_step, by_memory.df_within) == (False, True, 7)
    assert by_memory.p_pooled is None
    assert by_arm.pairs[0].ratio == pytest.approx(by_memory.pairs[0].ratio)  # one interaction, seen from both sides
    assert by_arm.verdict == by_memory.verdict == "differs"


def test_as_many_rounds_as_contrasts_are_too_few() -> None:
    case = Case(FACTORS, blocks=2)
    found = by_factors(analyse(case.plan(), noisy(case, {}), contrast="memory"))
    assert (found["users"].f, found["users"].p, found["users"].reason) == (None, 1.0, "few_blocks")
    assert found["kernel"].f is not None


def test_a_run_that_could_stop_early_asks_for_its_boundary() -> None:
    case = Case({"kernel": ("a", "b"), "memory": ("under", "over")}, blocks=8)
    plan = case.plan()
    design = plan.design.model_copy(update={"stop": "sequential", "min_blocks": 4})
    trials = noisy(case, {("over",): 0.03})
    (once,) = analyse(plan, trials).interactions
    (looked,) = analyse(plan.model_copy(update={"design": design}), trials).interactions
    assert once.p_once is None
    assert looked.p_once is not None
    assert looked.p > looked.p_once
    for wide, narrow in [*zip(looked.pairs, once.pairs, strict=True), *zip(looked.levels, once.levels, strict=True)]:
        assert (wide.high or 0) > (narrow.high or math.inf) * 1.0001 or looked.fewest < once.fewest


def test_the_published_designs_are_tested_as_r_does() -> None:
    """`drop1(lm(log(tpm) ~ kernel * memory * virtual_users), ~ ., test = "F")` with sum contrasts, R 4.2."""
    tpcc = by_factors(analysed(load("mglru-mariadb-tpcc")))
    assert [each.p_pooled for each in tpcc.values()] == pytest.approx(
        [2.442125835e-16, 4.342796347e-14, 5.908623772e-15], rel=1e-6
    )
    assert logs(tpcc["memory"]) == pytest.approx({"overcommitting/underutilizing": 0.0902776437}, rel=1e-8)
    assert logs(tpcc["virtual_users"]) == pytest.approx(
        {"400/100": 0.04351324045, "600/100": 0.10353672118, "600/400": 0.06002348073}, rel=1e-8
    )
    fio = analysed(load("mglru-fio-pmem")).interactions
    assert [each.p_pooled for each in fio] == pytest.approx(
        [2.525762424e-79, 1.772152999e-26, 4.085495814e-09, 6.655865182e-47, 1.579988328e-85, 2.295642224e-69],
        rel=1e-6,
    )
    assert all(each.verdict == "differs" for each in (*tpcc.values(), *fio))
    assert {each.verdict for each in analysed(load("mariadb-fast-mutex")).interactions} == {"not_shown"}
