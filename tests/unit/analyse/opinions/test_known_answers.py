"""Small sets of figures worked out by hand; every step of the working stands in a comment."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from support.inference.analysis_cases import Case
from support.inference.exchanged import raised

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis, Comparison


def analysed(
    base: list[float], new: list[float], *, order: str = "randomised_blocks", margin: float = 0.02
) -> Analysis:
    case = Case({"kernel": ["base", "new"]}, blocks=len(base), order=order, margin=margin)

    def value(levels: Mapping[str, str], block: int) -> float:
        return (base if levels["kernel"] == "base" else new)[block - 1]

    return analyse(case.plan(), case.trials(tpm=value))


def compared(
    base: list[float], new: list[float], *, order: str = "randomised_blocks", margin: float = 0.02
) -> Comparison:
    return analysed(base, new, order=order, margin=margin).cells[0].comparisons["tpm"][0]


def test_three_pairs_of_powers_of_e() -> None:
    """Log ratios 1, 2, 3: mean 2, sd 1, standard error 1/√3, t = 2√3 = 3.4641 on 2 degrees of freedom.

    Student's distribution with 2 degrees of freedom is known in closed form: p = 1 - t/√(2 + t²) = 1 - √(12/14).
    Its 97.5 % quantile is 0.95·√(2/(1 - 0.95²)) = 4.302653, so the interval's exponents are 2 ± 4.302653/√3.
    """
    found = compared([1.0, 10.0, 7.0], [math.e, 10 * math.e**2, 7 * math.e**3])
    assert found.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert found.ratio.estimate == pytest.approx(math.e**2)
    reach = 0.95 * math.sqrt(2 / (1 - 0.95**2)) / math.sqrt(3)
    assert reach == pytest.approx(2.484138, abs=1e-6)
    assert found.ratio.low == pytest.approx(math.exp(2 - reach))
    assert found.ratio.high == pytest.approx(math.exp(2 + reach))
    assert found.verdict == "undecided"  # p = 0.074


def test_two_pairs_have_the_distribution_of_cauchy() -> None:
    """Log ratios log 2 and log 8, that is 1 and 3 times log 2: mean 2, sd √2, error 1 (in log 2), t = 2 on 1 degree.

    p = 1 - (2/π)·arctan 2 = 0.295167; the 97.5 % quantile is tan(0.475·π) = 12.7062, so the ratio is
    4, from 2^(2 - 12.7062) = 1/1671 to 2^14.7062 = 26 729.
    """
    found = compared([5.0, 5.0], [10.0, 40.0])
    assert found.p == pytest.approx(0.2951672, abs=1e-7)
    assert found.ratio.estimate == pytest.approx(4)
    assert found.ratio.low == pytest.approx(2 ** (2 - math.tan(0.475 * math.pi)))
    assert found.ratio.high == pytest.approx(26_729, rel=1e-4)


def test_units_of_four_pairs_beside_welch() -> None:
    """Base 10 20 30 40, new 12 21 33 42: differences 2 1 3 2.

    Paired: mean 2, squares of deviations 0 1 1 0, variance 2/3, error √(2/3/4) = 0.408248; t(0.975; 3) = 3.182446.
    Welch: variances 500/3 (base) and, about the mean 27, 225 + 36 + 36 + 225 = 522 over 3 = 174 (new); squared error
    (500/3 + 174)/4 = 85.1667; t = 2/9.228579 = 0.216718; df = 85.1667²/(41.6667²/3 + 43.5²/3) = 5.9972.
    """
    found = compared([10.0, 20.0, 30.0, 40.0], [12.0, 21.0, 33.0, 42.0])
    assert found.difference.estimate == pytest.approx(2)
    assert found.difference.low == pytest.approx(2 - 3.182446 * 0.408248, abs=1e-5)
    assert found.welch is not None
    assert found.welch.t == pytest.approx(0.216718, abs=1e-6)
    assert found.welch.df == pytest.approx(5.9972, abs=5e-4)
    assert found.welch.difference.estimate == pytest.approx(2)


def test_the_sleep_data_of_student() -> None:
    """Student's own table (1908): hours of sleep gained by ten patients with two drugs; R's `sleep`.

    He prints a mean difference of 1.58; R's manual has t = 4.0621 on 9 degrees and p = 0.002833 paired, and
    t = -1.8608, df = 17.776, p = 0.07939, interval -3.3654832 to 0.2054832 (first minus second) for Welch.
    """
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = compared(first, second)
    assert found.method == "paired t on differences over blocks"
    assert found.ratio.estimate is None
    assert found.p_by_t == pytest.approx(0.002833, abs=5e-7)
    apart = [after - before for before, after in zip(first, second, strict=True)]
    assert found.p == pytest.approx(raised(found.p_by_t, apart, family=1))
    assert found.difference.estimate == pytest.approx(1.58)
    assert found.difference.low == pytest.approx(0.7001142, abs=1e-7)
    assert found.difference.high == pytest.approx(2.4598858, abs=1e-7)
    assert found.welch is not None
    assert (found.welch.t, found.welch.df, found.welch.p) == pytest.approx((1.8608, 17.776, 0.07939), rel=1e-4)
    assert found.welch.difference.low == pytest.approx(-0.2054832, abs=1e-7)
    assert found.welch.difference.high == pytest.approx(3.3654832, abs=1e-7)
    assert found.verdict == "faster"


def test_without_blocks_the_same_drugs_are_undecided() -> None:
    """The classic lesson of these data: without the pairs p is 0.07939."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = compared(first, second, order="sequential")
    assert found.p == pytest.approx(0.07939, rel=1e-4)
    assert found.verdict == "undecided"


@pytest.mark.parametrize(("margin", "p", "verdict"), [(1.0, 0.25, "undecided"), (63.0, 0.05256, "undecided")])
def test_equivalence_of_two_pairs_by_the_arctangent(margin: float, p: float, verdict: str) -> None:
    """Log ratios -1 and 1 (in log 2): mean 0, error 1 on 1 degree; the bound is log2(1 + margin).

    One-sided p of t = -bound with Cauchy's distribution: 1/2 - arctan(bound)/π. A margin of 100 % gives bound 1 and
    p = 1/4; a bound of 6 still gives 0.0526.
    """
    bound = math.log2(1 + margin)
    found = compared([2.0, 1.0], [1.0, 2.0], margin=margin)
    assert found.p_equivalence == pytest.approx(0.5 - math.atan(bound) / math.pi)
    assert found.p_equivalence == pytest.approx(p, abs=5e-5)
    assert found.verdict == verdict
    assert found.p == pytest.approx(1)


def test_holm_by_hand() -> None:
    """Three cells with p = 0.0741799, 0.2951672 and 1 (a ratio of exactly 1): times 3, 2 and 1, never falling.

    The first is the test of three pairs above, the second of two pairs with half of their t: they are built in one
    study by leaving values out.
    """
    case = Case({"kernel": ["base", "new"], "cell": ["one", "two", "three"]}, blocks=3)
    logs = {"one": (1, 2, 3), "two": (math.log(2), 3 * math.log(2), math.nan), "three": (-1, 0, 1)}

    def value(levels: Mapping[str, str], block: int) -> float:
        return math.exp(logs[levels["cell"]][block - 1]) if levels["kernel"] == "new" else 1.0

    found = [cell.comparisons["tpm"][0] for cell in analyse(case.plan(), case.trials(tpm=value)).cells]
    assert [each.p for each in found] == pytest.approx([0.0741799, 0.2951672, 1], abs=1e-7)
    assert [each.p_adjusted for each in found] == pytest.approx([0.2225397, 0.5903345, 1], abs=1e-7)
    assert [each.n for each in found] == [3, 2, 3]


def test_two_wild_blocks_have_an_analysis_without_a_bound_instead_of_an_overflow() -> None:
    """Ratios 10^20 and 10^-20: with t(1) at 12.7 the bound is 10^(12.7 · 20) = 10^254, which a number holds.

    The effect that such a test finds in four of five (16 · 20), and the bounds for 10^±30, are beyond 10^308.
    """
    mild = compared([1e-10, 1e10], [1e10, 1e-10])
    assert mild.ratio.high is not None
    assert math.log10(mild.ratio.high) == pytest.approx(20 * math.tan(0.475 * math.pi))
    assert mild.smallest_effect is None
    analysis = analysed([1e-15, 1e15], [1e15, 1e-15])
    wild = analysis.cells[0].comparisons["tpm"][0]
    assert (wild.ratio.estimate, wild.ratio.low, wild.ratio.high) == (pytest.approx(1), None, None)
    assert wild.p == pytest.approx(1)
    assert [doubt.code for doubt in wild.doubts] == ["not_computable"]
    assert "wider than any number" in wild.doubts[0].message
    assert "Infinity" not in analysis.model_dump_json()
