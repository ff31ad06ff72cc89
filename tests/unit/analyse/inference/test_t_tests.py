"""Student and Welch against SciPy, R and closed forms."""

import dataclasses
import json
import math
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from support.skips import require

from fairtrial.analyse.inference import t_tests

SAMPLE = arrays(np.float64, st.integers(3, 12), elements=st.floats(1, 1e4), unique=True)


def fields(test: t_tests.TTest | None) -> list[float]:
    assert test is not None
    return [test.t, test.df, test.p, test.low, test.high]


def scipy_fields(result: object, confidence: float) -> list[float]:
    interval = result.confidence_interval(confidence)  # type: ignore[attr-defined]
    return [result.statistic, result.df, result.pvalue, interval.low, interval.high]  # type: ignore[attr-defined]


@given(SAMPLE, SAMPLE, st.sampled_from([0.9, 0.95, 0.99]))
def test_welch_is_scipys(first: t_tests.Values, second: t_tests.Values, confidence: float) -> None:
    theirs = stats.ttest_ind(second, first, equal_var=False)
    ours = fields(t_tests.welch(first, second, confidence=confidence))
    assert ours == pytest.approx(scipy_fields(theirs, confidence), rel=1e-6, abs=1e-9)


@given(SAMPLE, st.sampled_from([0.9, 0.95, 0.99]))
def test_paired_is_scipys(first: t_tests.Values, confidence: float) -> None:
    second = first * np.linspace(0.7, 1.9, len(first)) + np.sin(first)
    ours = fields(t_tests.paired(first, second, confidence=confidence))
    theirs = scipy_fields(stats.ttest_rel(second, first), confidence)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)


@given(SAMPLE)
def test_one_sample_is_paired_with_zeros(values: t_tests.Values) -> None:
    ours = t_tests.mean(values, confidence=0.95)
    paired = t_tests.paired(np.zeros_like(values), values, confidence=0.95)
    assert fields(ours) == pytest.approx(fields(paired))


@given(SAMPLE, SAMPLE)
def test_swapping_samples_turns_the_sign_and_nothing_else(first: t_tests.Values, second: t_tests.Values) -> None:
    one, other = (t_tests.welch(*pair, confidence=0.95) for pair in ((first, second), (second, first)))
    assert one is not None
    assert other is not None
    assert (one.t, one.df, one.p) == pytest.approx((-other.t, other.df, other.p))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_two_pairs_have_the_tails_of_cauchy() -> None:
    """One degree of freedom: p has a closed form."""
    test = t_tests.paired(np.array([0.0, 0.0]), np.array([1.0, 3.0]), confidence=0.95)
    assert test is not None
    assert test.t == 2.0
    assert test.p == pytest.approx(1 - 2 * math.atan(2.0) / math.pi)


def test_one_value_or_no_spread_gives_no_test() -> None:
    one, three, constant = (np.array(values) for values in ([5.0], [5.0, 6.0, 7.0], [5.0, 5.0, 5.0]))
    assert t_tests.mean(one, confidence=0.95) is None
    assert t_tests.mean(constant, confidence=0.95) is None
    assert t_tests.paired(one, one + 1, confidence=0.95) is None
    assert t_tests.paired(three, three + 1, confidence=0.95) is None
    assert t_tests.welch(one, three, confidence=0.95) is None
    assert t_tests.welch(constant, constant + 1, confidence=0.95) is None
    assert t_tests.welch(constant, three, confidence=0.95) is not None


def test_rounding_is_no_spread() -> None:
    """Equal ratios whose logarithms differ in the last bit must not give p = 1e-60."""
    first = np.array([0.1, 0.7, 3.3, 12.9, 77.7])
    assert t_tests.paired(np.log(first), np.log(first * 1.1), confidence=0.95) is None


@pytest.mark.servers
def test_r_gives_the_same() -> None:
    require("Rscript")
    random = np.random.default_rng(5)
    first, second = random.lognormal(3, 0.2, 9), random.lognormal(3.1, 0.5, 9)
    listed = [",".join(map(repr, values.tolist())) for values in (first, second)]
    script = f"""x <- c({listed[0]}); y <- c({listed[1]})
    for (r in list(t.test(y, x, conf.level = 0.9), t.test(y, x, paired = TRUE, conf.level = 0.9)))
      cat(sprintf("[%.17g, %.17g, %.17g, %.17g, %.17g]\\n",
                  r$statistic, r$parameter, r$p.value, r$conf.int[1], r$conf.int[2]))"""
    printed = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True).stdout
    welch, paired = (json.loads(line) for line in printed.splitlines())
    assert fields(t_tests.welch(first, second, confidence=0.9)) == pytest.approx(welch, rel=1e-10)
    assert fields(t_tests.paired(first, second, confidence=0.9)) == pytest.approx(paired, rel=1e-10)


def test_what_classes_allow_moves_the_statistic_to_zero_and_never_past_it() -> None:
    plain = t_tests.TTest(estimate=0.3, standard_error=0.1, df=9, confidence=0.95)
    for below, t in ((0.1, 2.0), (0.3, 0.0), (0.5, 0.0)):
        moved = dataclasses.replace(plain, below=below)
        assert moved.t == pytest.approx(t)
        assert moved.p >= plain.p
    falling = dataclasses.replace(plain, estimate=-0.3, above=0.1, below=0.2)
    assert falling.t == pytest.approx(-2.0)
