"""What chance adds to a difference that a weak study claims: the figure, and when it is said."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import optimize
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.models import Analysis, Comparison, Doubt

MARGIN = math.log(1.02)


def critical(df: float) -> float:
    return t_tests.quantile(0.975, df)


def noncentrality(df: float, *, power: float) -> float:
    """At which a two-sided test at 5 % has this power."""
    found = optimize.brentq(
        lambda shift: sensitivity.power(df, critical=critical(df), noncentrality=shift) - power, 0.01, 20
    )
    return float(found)


def exaggeration(df: float, *, power: float) -> float:
    return sensitivity.exaggeration(df, critical=critical(df), noncentrality=noncentrality(df, power=power))


def test_six_blocks_with_a_power_of_two_in_five_exaggerate_by_36_percent() -> None:
    assert exaggeration(5, power=0.4) == pytest.approx(1.36, abs=0.005)


def test_with_the_spread_known_it_is_gelman_and_carlins_figure() -> None:
    """By hand: the mean of a normal distribution beyond its limits, here half of it."""
    shift = noncentrality(1e6, power=0.5)
    assert exaggeration(1e6, power=0.5) == pytest.approx((shift + math.sqrt(2 / math.pi)) / shift, abs=1e-3)


@pytest.mark.parametrize(("n", "power"), [(6, 0.1), (6, 0.4), (10, 0.2), (20, 0.7)])
def test_exaggeration_is_what_simulated_studies_show(n: int, power: float) -> None:
    random, shift = np.random.default_rng(n), noncentrality(n - 1, power=power)
    drawn = random.normal(shift / math.sqrt(n), 1, (400_000, n))
    means, errors = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / math.sqrt(n)
    passing = np.abs(means) > critical(n - 1) * errors
    assert passing.mean() == pytest.approx(power, abs=0.004)
    seen = np.abs(means[passing]).mean() * math.sqrt(n) / shift
    assert seen == pytest.approx(exaggeration(n - 1, power=power), rel=0.01)


@pytest.mark.parametrize("df", [2.0, 5.0, 7.3, 100.0])
def test_exaggeration_falls_with_power_and_ends_at_none(df: float) -> None:
    figures = [exaggeration(df, power=power) for power in (0.1, 0.3, 0.5, 0.8, 0.999)]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] == pytest.approx(1, abs=0.01)


def with_ratios(*, power: float, effect: float, **changes: object) -> Analysis:
    """Six blocks whose log ratios have exactly this mean, in margins, and the spread that gives the power."""
    deviation = MARGIN * math.sqrt(6) / noncentrality(5, power=power)
    shape = np.array([-1.2, -0.8, -0.2, 0.3, 0.7, 1.2])
    logs = effect * MARGIN + deviation * (shape - shape.mean()) / shape.std(ddof=1)
    case = Case({"kernel": ["old", "new"]}, blocks=6, **changes)
    return analyse(
        case.plan(),
        case.trials(
            tpm=lambda levels, block: (1000 + 50 * block) * float(np.exp(logs[block - 1] * (levels["kernel"] == "new")))
        ),
    )


def only(analysis: Analysis) -> tuple[Comparison, list[Doubt]]:
    (comparison,) = analysis.cells[0].comparisons["tpm"]
    return comparison, [doubt for doubt in comparison.doubts if doubt.code == "little_power"]


@pytest.mark.parametrize("direction", [1, -1])
def test_a_claim_of_a_weak_study_is_said_to_be_exaggerated(direction: int) -> None:
    comparison, (doubt,) = only(with_ratios(power=0.4, effect=1.7 * direction))
    assert comparison.verdict == ("faster" if direction > 0 else "slower")
    assert doubt.message == (
        "if the true difference equals the margin, 2 %, such a study finds it with probability 40 %, "
        "and significant estimates are exaggerated by 36 % on average"
    )
    assert (doubt.metric, doubt.arm) == ("tpm", "new")


@pytest.mark.parametrize(
    ("power", "effect"),
    [
        pytest.param(0.81, 1.1, id="power is enough"),
        pytest.param(0.4, 1.0, id="nothing is claimed"),
        pytest.param(0.4, 3.0, id="the interval leaves the margin out"),
    ],
)
def test_it_is_not_said_where_there_is_nothing_to_say(power: float, effect: float) -> None:
    comparison, found = only(with_ratios(power=power, effect=effect))
    assert (comparison.verdict == "undecided") == (effect == 1)
    assert not found


def test_guardrails_claim_no_size() -> None:
    _, found = only(with_ratios(power=0.4, effect=1.7, roles={"guardrails": ["tpm"]}))
    assert not found


def test_a_larger_family_asks_for_more_and_exaggerates_more() -> None:
    """Every comparison at the hardest step of its family, as its smallest effect is."""
    one, other = (
        only(with_ratios(power=0.4, effect=2.0, roles={"secondary": names}))[1][0].message
        for names in (["tpm"], ["tpm", "p99"])
    )
    first, second = (int(re.findall(r"by (\d+) %", message)[0]) for message in (one, other))
    assert second > first == 36
