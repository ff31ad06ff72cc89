"""Adjusted p values against closed testing, published critical values, statsmodels and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from support.inference import textbook

from fairtrial.analyse.inference import families, sharing, t_tests
from fairtrial.analyse.measured import ArmValues

P = st.floats(1e-9, 1.0)


@pytest.fixture(autouse=True)
def _no_collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statsmodels collects garbage in every adjustment, 40 ms each."""
    monkeypatch.setattr("gc.collect", lambda: 0)


@pytest.mark.parametrize(("arms", "critical"), [(1, 1.96), (2, 2.21), (3, 2.35), (5, 2.51)])
def test_dunnetts_published_two_sided_critical_values(arms: int, critical: float) -> None:
    """Of infinite degrees of freedom at 5 %: Dunnett (1964), table II. Equal arms share half their variance."""
    p = np.full(arms, 2 * stats.norm.sf(critical))
    assert families.dunnett(p, np.full(arms, 0.5)) == pytest.approx(0.05, abs=6e-4)  # of two decimals


@given(st.lists(st.tuples(P, st.floats(0, families.LARGEST_SHARE)), min_size=1, max_size=5))
def test_dunnett_is_the_quadratures_between_no_adjustment_and_independence(rows: list[tuple[float, float]]) -> None:
    p, shares = (np.array(column) for column in zip(*rows, strict=True))
    for one, found in zip(p.tolist(), families.dunnett(p, shares).tolist(), strict=True):
        assert one <= found <= 1 - (1 - one) ** len(p) + 1e-12
        assert found == pytest.approx(textbook.any_below(one, shares.tolist()), rel=1e-5, abs=1e-9)


@given(st.lists(st.lists(st.tuples(P, st.floats(0, 0.8)), min_size=1, max_size=3), min_size=1, max_size=3))
def test_stepping_down_is_closed_testing(groups: list[list[tuple[float, float]]]) -> None:
    width = max(map(len, groups))
    p, shares = np.full((2, len(groups), width), np.nan)
    flat = [(*pair, str(row)) for row, group in enumerate(groups) for pair in group]
    for row, group in enumerate(groups):
        for column, pair in enumerate(group):
            p[row, column], shares[row, column] = pair
    found = families.step_down(p, shares)
    expected = textbook.closed([each[0] for each in flat], [each[1] for each in flat], [each[2] for each in flat])
    assert found[~np.isnan(p)] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert (np.isnan(found) == np.isnan(p)).all()


@given(st.lists(P, min_size=1, max_size=12))
def test_without_shared_baselines_it_is_holms_and_screening_is_benjamini_and_hochbergs(p: list[float]) -> None:
    assert families.holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist())
    both = [p, p[::-1]]
    assert families.holm(both).tolist() == [families.holm(each).tolist() for each in both]
    found = families.benjamini_hochberg(np.array(p)).tolist()
    assert found == pytest.approx(multipletests(p, method="fdr_bh")[1].tolist())


def test_many_families_at_once_are_each_by_itself() -> None:
    random = np.random.default_rng(2)
    p, shares = random.uniform(0, 0.2, (7, 4, 3)), random.uniform(0, 0.8, (7, 4, 3))
    together = families.step_down(p, shares)
    for row in range(7):
        assert together[row] == pytest.approx(families.step_down(p[row], shares[row]))


@pytest.mark.parametrize("paired", [True, False])
def test_the_baselines_share_is_found_from_many_trials(*, paired: bool) -> None:
    """A baseline twice as noisy as the arms: 4 / (4 + 1) of the variance, were it not held down to less."""
    random = np.random.default_rng(4)
    n = 4000
    noise = random.normal(0, 1, (4, n)) * np.array([[1.0], [1.0], [2.0], [3.0]])
    if paired:
        noise += random.normal(0, 5, n)  # blocks
        found = families.shares_of_blocks(noise)
    else:
        found = families.shares_of_arms(np.var(noise, ddof=1, axis=-1) / n, df=n - 1)
    assert found == pytest.approx([1 / 2, 1 / 5, 1 / 10], abs=0.03)


def test_few_trials_are_taken_as_independent_because_their_t_values_nearly_are() -> None:
    noise = np.random.default_rng(5).normal(0, 1, (3, 4))
    assert families.shares_of_blocks(noise).tolist() == [0.0, 0.0]
    assert families.shares_of_blocks(np.ones((3, 9))).tolist() == [0.0, 0.0]  # nothing varies, nothing is shared
    assert families.shares_of_blocks(np.random.default_rng(6).normal(0, 1, (2, 9))).tolist() == [0.0]  # one arm


@pytest.mark.parametrize("spreads", [(1, 1, 1, 1), (1, 1, 1, 4), (0.3, 1, 1, 1)])
@pytest.mark.parametrize("n", [6, 10])
def test_equal_arms_of_unequal_noise_are_claimed_apart_in_at_most_5_percent_of_studies(
    n: int, spreads: tuple[float, ...]
) -> None:
    """Baseline first. The bound is 5 % and four Monte-Carlo standard errors."""
    runs = 10_000
    noise = np.random.default_rng([n, len(spreads)]).normal(0, 1, (runs, len(spreads), n)) * np.array(spreads)[:, None]
    p = t_tests.paired_many(noise[:, :1], noise[:, 1:]).p[:, None]
    adjusted = families.step_down(p, families.shares_of_blocks(noise)[:, None])
    assert (adjusted.min(axis=(1, 2)) < 0.05).mean() < 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.parametrize("paired", [True, False])
def test_shares_do_not_depend_on_the_unit_however_large(*, paired: bool) -> None:
    """No square of the large ones is a number; one value is not positive, so that there are no logarithms."""
    noise = np.random.default_rng(6).normal(0, 1, (3, 8))
    own, other = (
        sharing.shares(
            {
                arm: ArmValues(arm, by * values, blocks=tuple(range(8)), positions=tuple(range(8)), absent=0)
                for arm, values in zip("abc", noise, strict=True)
            },
            ["b", "c"],
            paired=paired,
        )
        for by in (1.0, 2.0**900)
    )
    assert other == own
    assert min(own.values()) > 0
