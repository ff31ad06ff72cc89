"""Power far from where SciPy knows a noncentral t: against integration over the spread, and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import power, sensitivity

ARMS = {"old": 1.0, "new": 1.02}


def by_integration(df: float, *, critical: float, noncentrality: float) -> float:
    """Over what a study takes its spread for, in parts around the steepest place."""

    def found(spread: float) -> float:
        within = critical * spread
        chance = special.ndtr(noncentrality - within) + special.ndtr(-noncentrality - within)
        return float(stats.chi.pdf(spread * math.sqrt(df), df) * math.sqrt(df) * chance)

    ends = sorted({0.0, *((noncentrality + at) / critical for at in (-9, 0, 9)), 0.5, 1.0, 2.0, 12.0})
    parts = [end for end in ends if 0 <= end <= 12]
    pieces = itertools.pairwise(parts)
    return sum(float(integrate.quad(found, *each, epsabs=1e-11)[0]) for each in pieces)


@pytest.mark.parametrize(
    ("df", "critical", "noncentrality"),
    [(11, 2.2, 48), (11, 2.2, 500), (16, 5.5, 47), (1, 60, 70), (2, 30, 31), (7, 90, 60), (4, 1e4, 1.2e4)],
)
def test_power_is_that_of_an_integral_where_scipys_may_be_nan(df: float, critical: float, noncentrality: float) -> None:
    ours = sensitivity.power(df, critical=critical, noncentrality=noncentrality)
    assert ours == pytest.approx(by_integration(df, critical=critical, noncentrality=noncentrality), abs=1e-6)


@pytest.mark.parametrize(("df", "alpha"), [(1, 1e-9), (2, 1e-13), (2, 1e-19), (3, 1e-17), (2, 1e-40)])
def test_at_tiny_levels_the_spread_alone_decides(df: float, alpha: float) -> None:
    """The mean's own error is nothing beside a t of thousands: the spread must be below its 80 % quantile."""
    expected = stats.t.isf(alpha / 2, df) * math.sqrt(stats.chi2.ppf(0.8, df) / df)
    assert sensitivity.shift(df, alpha=alpha) == pytest.approx(expected, rel=1e-5)


def test_a_level_that_no_number_is_the_t_of_has_no_shift() -> None:
    assert sensitivity.shift(3, alpha=0.0) == math.inf


def test_an_effect_of_many_spreads_needs_the_fewest_blocks() -> None:
    needed = [
        power.blocks_needed(math.log1p(0.02) / ratio, effect=0.02, alpha=alpha, fewest=fewest)
        for ratio in np.geomspace(50, 3000, 30)
        for alpha in (0.05, 0.05 / 24)
        for fewest in (3, 6)
    ]
    assert needed == [3, 6, 3, 6] * 30


def test_a_claim_that_is_found_for_certain_is_not_doubted_for_its_power() -> None:
    """The difference is the margin, and the noise a fiftieth of it: SciPy gave a power of NaN."""
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(0, 0.001, (2, 13)).tolist()
        case = Case({"kernel": ["old", "new"]}, blocks=12)
        values = {
            arm: [1e6 * by * math.exp(each) for each in of] for (arm, by), of in zip(ARMS.items(), noise, strict=True)
        }
        trials = case.trials(tpm=lambda levels, block, of=values: of[levels["kernel"]][block])
        (found,) = analyse(case.plan(), trials).cells[0].comparisons["tpm"]
        assert found.verdict == "faster"
        assert "little_power" not in [doubt.code for doubt in found.doubts]


def test_first_looks_that_spend_next_to_nothing_end_no_report() -> None:
    """O'Brien and Fleming leave 1e-13 to three of twenty blocks: no effect that a number holds would be found."""
    case = Case({"kernel": ["old", "new"], "users": [f"u{number}" for number in range(6)]}, blocks=20)
    plan = case.plan()
    early = {"stop": "sequential", "spending": "obrien_fleming", "futility": True, "equivalence": True, "min_blocks": 3}
    plan = plan.model_copy(update={"design": plan.design.model_copy(update=early)})
    noise = np.random.default_rng(1)
    trials = case.trials(tpm=lambda _levels, _block: 1000 * math.exp(noise.normal(0, 0.02)))
    analysis = analyse(plan, [each for each in trials if each.trial.block <= 3], finished=False)
    assert [cell.comparisons["tpm"][0].smallest_effect for cell in analysis.cells] == [None] * 6
