"""Heaps of zeros: permutations against every order written out, and their rate of false claims."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import permuting, t_tests
from fairtrial.analyse.models import Comparison


def compared(base: list[float], arm: list[float], *, order: str = "randomised_blocks") -> Comparison:
    case = Case({"kernel": ["a", "b"]}, blocks=len(base), order=order)
    given_values = {"a": base, "b": arm}
    trials = case.trials(tpm=lambda levels, block: given_values[levels["kernel"]][block - 1])
    (cell,) = analyse(case.plan(), trials).cells
    (found,) = cell.comparisons["tpm"]
    return found


def test_every_exchange_of_signs_written_out_gives_the_same_p() -> None:
    first = np.array([0.0, 0, 0, 1, 0, 2, 0, 0])
    second = np.array([0.0, 3, 5, 0, 0, 9, 4, 2])
    differences = second - first
    sums = [abs((differences * signs).sum()) for signs in itertools.product([1, -1], repeat=8)]
    slow = np.mean([each >= abs(differences.sum()) - 1e-12 for each in sums])
    assert permuting.paired_p(first, second, rounding=0.0, seed=1) == pytest.approx(slow)


@pytest.mark.parametrize("unit", [2.0**900, 2.0**-900])
def test_p_between_arms_does_not_depend_on_the_unit_however_large(unit: float) -> None:
    """No square of these is a number."""
    first, second = np.array([0.0, 0, 0, 1, 0]), np.array([0.0, 3, 5, 2, 8, 1])
    own, other = (permuting.unpaired_p(by * first, by * second, rounding=0.0, seed=1) for by in (1.0, unit))
    assert other == own < 1


def test_every_exchange_between_arms_written_out_gives_the_same_p() -> None:
    first, second = np.array([0.0, 0, 0, 1, 0]), np.array([0.0, 3, 5, 2, 8, 1])
    both = np.concatenate([first, second])
    found = []
    for chosen in itertools.combinations(range(11), 5):
        inside = np.isin(np.arange(11), chosen)
        found.append(stats.ttest_ind(both[~inside], both[inside], equal_var=False).statistic)
    seen = stats.ttest_ind(second, first, equal_var=False)
    # SciPy's two-sided p is twice the smaller tail.
    tails = [np.mean(np.array(found) >= seen.statistic - 1e-12), np.mean(np.array(found) <= seen.statistic + 1e-12)]
    expected = max(min(1.0, 2 * min(tails)), seen.pvalue)
    assert permuting.unpaired_p(first, second, rounding=0.0, seed=1) == pytest.approx(expected)


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_unequal_spreads_of_unequal_arms_are_no_difference(*, monkeypatch: pytest.MonkeyPatch, zeros: float) -> None:
    monkeypatch.setattr(permuting, "RESAMPLES", 399)
    random = np.random.default_rng(4)

    def draw(n: int, spread: float) -> t_tests.Values:
        return np.where(random.random(n) < zeros, 0.0, spread * random.standard_normal(n))

    found = [permuting.unpaired_p(draw(20, 1.0), draw(5, 3.0), rounding=0.0, seed=run) < 0.05 for run in range(300)]
    assert sum(found) <= 26  # of 300 at 5 %: more once in 1,000 times; exchanging means alone finds 50 to 70


def test_a_stall_in_every_trial_of_one_arm_is_a_claim_and_its_difference_stands_in_seconds() -> None:
    found = compared([0.0] * 10, [3.0, 2, 4, 3, 5, 2, 3, 6, 2, 3])
    assert found.method == "paired permutation of differences over blocks"
    assert found.p == pytest.approx(2 / 2**10)
    assert found.ratio.estimate is None
    assert found.difference.estimate == pytest.approx(3.3)
    assert found.verdict == "faster"  # the metric of this case is better high


@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
def test_stalls_in_few_trials_are_a_claim_about_these_only(order: str) -> None:
    found = compared([0.0] * 24, [3.0 if block % 3 == 0 else 0.0 for block in range(24)], order=order)
    assert found.verdict == "faster"
    assert found.estimand == "some"


def test_ranks_hold_back_a_claim_that_few_large_values_carry() -> None:
    """The exchange is of the mean, which one value moves as far as it likes; ranks take it for one of many."""
    arm = [0.0, -1, 6, -1, 31, -1, 6, 6, -2, 0, 11, 7]
    found = compared([0.0] * 12, arm)
    by_exchange = permuting.paired_p(np.zeros(12), np.array(arm), rounding=0.0, seed=1)
    assert found.rank is not None
    assert by_exchange == pytest.approx(0.03125)
    assert by_exchange < 0.05 < found.p <= found.rank.p
    assert found.verdict == "undecided"


def test_unpaired_trials_are_exchanged_between_arms() -> None:
    found = compared([0.0] * 6, [3.0, 2, 4, 0, 5, 2], order="sequential")
    assert found.method == "permutation of the values"
    assert found.p < 0.05


def test_zeros_everywhere_are_no_test() -> None:
    assert compared([0.0] * 6, [0.0] * 6).p == 1
    assert permuting.unpaired_p(np.zeros(4), np.zeros(4), rounding=0.0, seed=1) == 1


def test_negative_values_without_a_heap_are_compared_by_t() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(0, 1, (2, 10))
    found = compared(list(first), list(second))
    assert found.method == "paired t on differences over blocks"
    assert found.p == pytest.approx(stats.ttest_rel(second, first).pvalue)


def test_more_pairs_than_orders_can_be_written_out_are_drawn_by_the_seed() -> None:
    random = np.random.default_rng(4)
    first = random.poisson(0.3, 40).astype(float)
    second = random.poisson(0.9, 40).astype(float)
    one = permuting.paired_p(first, second, rounding=0.0, seed=7)
    assert one == permuting.paired_p(first, second, rounding=0.0, seed=7)
    assert one == pytest.approx(permuting.paired_p(first, second, rounding=0.0, seed=8), abs=0.01)


@pytest.mark.parametrize("n", [6, 10])
def test_equal_arms_are_rarely_claimed_to_differ(n: int) -> None:
    random = np.random.default_rng(5)
    false = 0
    replicates = 300
    for _ in range(replicates):
        first, second = random.choice([0.0, 0, 0, 1, 2, 30], size=(2, n))
        false += permuting.heaped(first, second) and permuting.paired_p(first, second, rounding=0.0, seed=1) < 0.05
    assert stats.binom.sf(false - 1, replicates, 0.05) > 0.001
