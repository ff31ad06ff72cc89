"""The page on methods names every doubt and tells the rates that the tests measure."""

from pathlib import Path

import numpy as np
import pytest

from fairtrial.analyse.inference import sensitivity, t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import DOUBT_CODES

PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "methodology.md").read_text(encoding="utf-8")
REPLICATES = 4000
BLOCKS = 10


def test_every_doubt_is_on_the_page() -> None:
    assert [code for code in DOUBT_CODES if f"`{code}`" not in PAGE] == []


def test_ten_empty_comparisons_give_a_false_claim_in_40_of_100_studies() -> None:
    assert pytest.approx(0.40, abs=0.005) == 1 - 0.95**10
    assert "Ten comparisons without any effect give at least one p < 0.05 in 40 of 100 studies" in PAGE


def drifting(random: np.random.Generator, *, interleaved: bool) -> tuple[Values, Values]:
    """Logarithms of 20 equal trials with 1 % noise under 3 % drift: in random blocks, or one arm after the other."""
    time = np.linspace(0, np.log(1.03), 2 * BLOCKS) + random.normal(0, 0.01, 2 * BLOCKS)
    if not interleaved:
        return time[:BLOCKS], time[BLOCKS:]
    pairs = random.permuted(time.reshape(BLOCKS, 2), axis=1)
    return pairs[:, 0], pairs[:, 1]


def test_blocks_keep_the_error_rate_that_one_arm_after_the_other_loses() -> None:
    random = np.random.default_rng(4)
    blocked = [t_tests.paired(*drifting(random, interleaved=True), confidence=0.95) for _ in range(REPLICATES)]
    in_turn = [t_tests.welch(*drifting(random, interleaved=False), confidence=0.95) for _ in range(REPLICATES)]
    false = [np.mean([test is not None and test.p < 0.05 for test in tests]) for tests in (blocked, in_turn)]
    assert false[0] == pytest.approx(0.05, abs=0.014)  # four Monte-Carlo standard errors
    assert false[1] > 0.5


def test_the_interval_of_the_ratio_covers_and_the_percentage_of_a_known_baseline_does_not() -> None:
    """A baseline that is noisy and a ratio far from 1: the publications' formula is too narrow."""
    random = np.random.default_rng(6)
    honest = naive = 0
    for _ in range(REPLICATES):
        first, second = random.lognormal(0, 0.05, (2, BLOCKS))
        second = second * 3
        logs = t_tests.welch(np.log(first), np.log(second), confidence=0.95)
        units = t_tests.welch(first, second, confidence=0.95)
        assert logs is not None
        assert units is not None
        honest += logs.low < np.log(3) < logs.high
        naive += units.low / first.mean() < 2 < units.high / first.mean()
    assert honest / REPLICATES == pytest.approx(0.95, abs=0.014)
    assert naive / REPLICATES < 0.9


def test_equivalence_is_rarely_claimed_of_a_difference_as_large_as_the_margin() -> None:
    random = np.random.default_rng(8)
    bound = np.log1p(0.02)
    claims = 0
    for _ in range(REPLICATES):
        first, second = random.normal(0, 0.01, BLOCKS), random.normal(bound, 0.01, BLOCKS)
        test = t_tests.paired(first, second, confidence=0.95)
        claims += test is not None and sensitivity.equivalence(test, bound=bound) < 0.05
    assert claims / REPLICATES == pytest.approx(0.05, abs=0.014)
