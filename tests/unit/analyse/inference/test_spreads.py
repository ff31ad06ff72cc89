"""Spreads that belong to one arm: found where they are, seldom where arms share their noise; and stalls unseen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts.comparisons import SPREADS_LEVEL
from fairtrial.analyse.inference import spreads
from fairtrial.analyse.inference.comparing import ArmPair
from fairtrial.analyse.models import Spreads

REPLICATES = 400
Noise = Callable[[np.random.Generator, int], np.ndarray]


def quiet(random: np.random.Generator, n: int) -> np.ndarray:
    return random.normal(0, 0.01, n)


def stalling(random: np.random.Generator, n: int) -> np.ndarray:
    return quiet(random, n) - 0.15 * (random.random(n) < 0.1)


def two_modes(random: np.random.Generator, n: int) -> np.ndarray:
    return quiet(random, n) / 3 + 0.03 * random.integers(0, 2, n)


def compared(of: ArmPair, *, paired: bool) -> Spreads | None:
    return spreads.compared(of.baseline, of.arm, paired=paired, rounding=of.rounding)


def rate(baseline: Noise, arm: Noise, *, n: int, paired: bool, between: float = 0.05) -> float:
    """How often spreads are said to differ, of blocks that differ so much among themselves."""
    random = np.random.default_rng(8)
    said = 0
    for _ in range(REPLICATES):
        level = random.normal(0, between, n) if paired else 0.0
        values = ArmPair(np.exp(level + baseline(random, n)), np.exp(level + arm(random, n)))
        found = compared(values.logarithms, paired=paired)
        said += found is not None and found.p < SPREADS_LEVEL
    return said / REPLICATES


@pytest.mark.parametrize("noise", [quiet, stalling, two_modes])
@pytest.mark.parametrize("paired", [True, False])
def test_noise_that_arms_share_is_seldom_called_an_arms_own(*, noise: Noise, paired: bool) -> None:
    assert rate(noise, noise, n=10, paired=paired) < 0.03


@pytest.mark.parametrize(("paired", "between", "least"), [(False, 0.0, 0.6), (True, 0.0, 0.6), (True, 0.01, 0.4)])
def test_a_spread_three_times_as_large_is_found(*, paired: bool, between: float, least: float) -> None:
    def wide(random: np.random.Generator, n: int) -> np.ndarray:
        return 3 * quiet(random, n)

    assert rate(quiet, wide, n=20, paired=paired, between=between) > least


def test_the_ratio_is_the_arms_over_the_baselines() -> None:
    baseline = np.array([1.0, 2, 3, 4, 5, 6])
    found = compared(ArmPair(baseline, 2 * baseline), paired=True)
    assert found is not None
    assert found.ratio == pytest.approx(2)
    assert compared(ArmPair(baseline[:5], baseline[:5]), paired=True) is None, "too few"
    assert compared(ArmPair(baseline, np.full(6, 3.0)), paired=False) is None, "no spread"


@pytest.mark.parametrize("paired", [True, False])
def test_squares_that_no_number_holds_change_neither(*, paired: bool) -> None:
    baseline, arm = np.random.default_rng(6).normal(0, 1, (2, 9))
    found = [compared(ArmPair(np.ldexp(baseline, by), np.ldexp(arm, by)), paired=paired) for by in (0, 1000, -1000)]
    assert found[0] is not None
    assert found == [found[0]] * 3


@pytest.mark.parametrize("paired", [True, False])
def test_another_unit_changes_neither_ratio_nor_p(*, paired: bool) -> None:
    """Two values are as far from a median between them, in any unit; and equal values have no spread in any."""
    random = np.random.default_rng(5)
    baseline, arm = (100 + random.normal(0, each, 8) for each in (1, 2))
    found = [compared(ArmPair(2.0**by * baseline, 2.0**by * arm).logarithms, paired=paired) for by in range(-20, 20)]
    assert {round(each.p, 9) for each in found if each} == {round(found[0].p, 9)}  # type: ignore[union-attr]
    equal = (ArmPair(np.full(9, 3.0**by), arm).logarithms for by in range(-20, 20))
    assert not any(compared(each, paired=False) for each in equal)


@pytest.mark.parametrize(("n", "share", "worth"), [(6, 0.393, 0.062), (10, 0.259, 0.041), (59, 0.0495, 0.008)])
def test_what_stalls_may_be_worth_that_nobody_has_seen(n: int, share: float, worth: float) -> None:
    found = spreads.stalls(n, level=0.05)
    assert (1 - found.share) ** n == pytest.approx(0.05)
    assert [found.share, found.worth] == pytest.approx([share, worth], abs=5e-4)


def test_the_mean_is_left_open_by_unseen_stalls_at_both_ends() -> None:
    seen = math.log(1.05), math.log(1.03), math.log(1.07)
    found = spreads.mean_interval(seen, n=10, level=0.05, size=None)
    assert found is not None
    assert found.low == pytest.approx(1.03 * (1 - spreads.stalls(10, level=0.05).worth))
    assert found.high == pytest.approx(1.07 / (1 - spreads.stalls(10, level=0.05).worth))
    in_units = spreads.mean_interval((5.0, 3.0, 7.0), n=10, level=0.05, size=200.0)
    assert in_units is not None
    worth = 200 * spreads.stalls(10, level=0.05).worth
    assert (in_units.low, in_units.high) == pytest.approx((3 - worth, 7 + worth))
    assert spreads.mean_interval((0.0, -800.0, 800.0), n=10, level=0.05, size=None) is None, "no number is so large"


def test_the_mean_of_a_family_is_left_open_at_its_hardest_step() -> None:
    """One cell and three of the same trials: the more comparisons, the less is known of each."""
    wide = Case({"kernel": ["base", "patched"], "load": ["1", "2", "3"]}, blocks=10)
    alone = Case({"kernel": ["base", "patched"]}, blocks=10)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 100.0 + block + (8 + block % 3) * (levels["kernel"] == "patched")

    found = [analyse(case.plan(), case.trials(tpm=value)).cells[0].comparisons["tpm"][0] for case in (alone, wide)]
    ratios = [math.log((108 + block + block % 3) / (100 + block)) for block in range(1, 11)]
    for each, size in zip(found, (1, 3), strict=True):
        low, high = stats.ttest_1samp(ratios, 0).confidence_interval(1 - 0.05 / size)
        share = 1 - (0.05 / size) ** 0.1
        assert each.mean is not None
        assert (each.mean.low, each.mean.high) == pytest.approx(
            (math.exp(low) * 0.85**share, math.exp(high) / 0.85**share)
        )
    assert (found[0].verdict, found[0].estimand) == ("faster", "mean")


def test_an_arm_of_its_own_noise_is_a_doubt_of_its_comparison() -> None:
    case = Case({"kernel": ["base", "patched"]}, blocks=20)
    random = np.random.default_rng(3)
    wide = {"base": 0.002, "patched": 0.02}
    trials = case.trials(tpm=lambda levels, _block: float(np.exp(random.normal(0, wide[levels["kernel"]]))))
    (compared,) = analyse(case.plan(), trials).cells[0].comparisons["tpm"]
    (doubt,) = [doubt for doubt in compared.doubts if doubt.code == "spreads_differ"]
    assert "the noise depends on the arm" in doubt.message
