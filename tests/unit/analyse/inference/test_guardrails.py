"""Non-inferiority against R's one-sided tests, and what a guardrail says of arms that are known."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference.comparing import ComparisonOptions
from fairtrial.analyse.inference.guardrails import GuardrailRule, guarded
from fairtrial.analyse.inference.t_tests import array
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Guardrail

FACTORS = {"kernel": ["base", "patched"]}
ROLES = {"primary": ["tpm"], "guardrails": ["p99"]}
PAIRED = ComparisonOptions(paired=True, confidence=0.95, margin=0.02, family_size=1)
UNPAIRED = ComparisonOptions(paired=False, confidence=0.95, margin=0.02, family_size=1)


def arm(name: str, values: list[float]) -> ArmValues:
    numbers = tuple(range(1, len(values) + 1))
    return ArmValues(arm=name, values=array(values), blocks=numbers, positions=numbers, absent=0)


def judged(change: float, *, margin: float | None = None, blocks: int = 10, noise: float = 0.002) -> Guardrail:
    """A latency that changes by so much, in a whole analysis."""
    case = Case(FACTORS, blocks=blocks, roles=ROLES)
    random = np.random.default_rng(1)

    def latency(levels: Mapping[str, str], _block: int) -> float:
        patched = levels["kernel"] == "patched"
        return float(100 * math.exp(random.normal(0, noise)) * ((1 + change) if patched else 1))

    plan = case.plan()
    if margin is not None:
        metrics = plan.metrics.model_copy(update={"guardrail_margins": {"p99": margin}})
        plan = plan.model_copy(update={"metrics": metrics})
    found = analyse(plan, case.trials(tpm=lambda _levels, block: 100.0 + block, p99=latency))
    (comparison,) = found.cells[0].comparisons["p99"]
    assert comparison.guardrail is not None
    return comparison.guardrail


def test_a_guardrail_is_kept_breached_or_unclear() -> None:
    assert judged(0.0).outcome == "kept"
    assert judged(0.01).outcome == "kept"  # worse, surely, and by less than matters
    assert judged(0.05).outcome == "breached"
    assert judged(0.02).outcome == "unclear"
    assert judged(0.0, noise=0.1).outcome == "unclear"  # no significant difference is no proof
    assert judged(-0.3).outcome == "kept"  # better


def test_its_own_margin_replaces_the_studys() -> None:
    assert judged(0.05, margin=0.1).outcome == "kept"
    assert judged(0.01, margin=0.005).outcome == "breached"
    assert judged(0.01, margin=0.005).margin == 0.005


def test_too_few_blocks_keep_nothing() -> None:
    assert [judged(0.0, blocks=n).outcome for n in (3, 5, 6)] == ["unclear", "unclear", "kept"]


def test_the_bound_is_where_the_one_sided_test_would_just_not_reject() -> None:
    first, second = [100.0, 101, 99, 100, 102, 98, 100], [101.0, 101, 100, 102, 103, 98, 101]
    for better in ("lower", "higher"):
        start = guarded(
            arm("a", first), arm("b", second), rail=GuardrailRule(better=better, margin=0.02), setting=PAIRED
        )
        assert start.bound is not None
        margin = start.bound - 1 if better == "lower" else 1 / start.bound - 1
        if margin <= 0:
            continue
        at = guarded(
            arm("a", first), arm("b", second), rail=GuardrailRule(better=better, margin=margin), setting=PAIRED
        )
        assert at.p_kept == pytest.approx(0.05)


@given(st.lists(st.floats(90, 110), min_size=4, max_size=8), st.floats(0.8, 1.2), st.booleans())
def test_turning_the_metric_around_turns_nothing_else(values: list[float], factor: float, paired: bool) -> None:  # noqa: FBT001 - Hypothesis gives it
    """Latency of 1 / x is throughput of x."""
    wobbling = [value * factor * (1 + 0.001 * index) for index, value in enumerate(values)]
    setting = PAIRED if paired else UNPAIRED
    found = guarded(
        arm("a", values), arm("b", wobbling), rail=GuardrailRule(better="lower", margin=0.02), setting=setting
    )
    inverse = [[1 / value for value in each] for each in (values, wobbling)]
    other = guarded(
        arm("a", inverse[0]), arm("b", inverse[1]), rail=GuardrailRule(better="higher", margin=0.02), setting=setting
    )
    assert (found.outcome, found.p_kept) == (other.outcome, pytest.approx(other.p_kept, rel=1e-6, abs=1e-12))
    if found.bound is not None and other.bound is not None:
        assert found.bound == pytest.approx(1 / other.bound)


def test_values_with_zeros_are_judged_as_a_share_of_the_baselines_mean() -> None:
    base = [0.0, 2, 1, 3, 2, 1, 0, 3, 2, 1]
    rail = GuardrailRule(better="lower", margin=0.5)
    worse = guarded(arm("a", base), arm("b", [value * 3 + 1 for value in base]), rail=rail, setting=PAIRED)
    same = guarded(arm("a", base), arm("b", [*base[1:], 0.0]), rail=rail, setting=PAIRED)
    none = guarded(arm("a", [0.0] * 10), arm("b", base), rail=rail, setting=PAIRED)
    assert (worse.outcome, worse.bound) == ("breached", None)
    assert same.outcome == "unclear"
    assert same.difference_bound is not None
    assert none.p_kept == 1.0  # of nothing there is no share: whatever rises is worse by more


@pytest.mark.parametrize("setting", [PAIRED, UNPAIRED])
@pytest.mark.parametrize(
    ("base", "changed", "outcome"),
    [
        ([100.0] * 10, [100.0] * 10, "kept"),
        ([100.0] * 10, [101.0] * 10, "kept"),
        ([100.0] * 10, [102.0] * 10, "unclear"),  # by the margin, neither more nor less
        ([100.0] * 10, [150.0] * 10, "breached"),
        ([0.0] * 10, [0.0] * 10, "kept"),
        ([0.0] * 10, [5.0, 6, 7, 8, 9, 5, 6, 7, 8, 9], "breached"),
        ([0.0] * 10, [0.0] * 9 + [1.0], "unclear"),
        ([0.0] * 2, [0.0] * 2, "unclear"),
    ],
)
def test_exact_counts_are_kept_and_breached_too(
    *, setting: ComparisonOptions, base: list[float], changed: list[float], outcome: str
) -> None:
    rail = GuardrailRule(better="lower", margin=0.02)
    assert guarded(arm("a", base), arm("b", changed), rail=rail, setting=setting).outcome == outcome


CLASS = 0.018  # of a histogram, as a share


@pytest.mark.parametrize("setting", [PAIRED, UNPAIRED])
@pytest.mark.parametrize("better", ["lower", "higher"])
@pytest.mark.parametrize(
    ("classes", "margin", "outcome"),
    [
        ([0] * 10, 0.01, "unclear"),  # true values of one class differ by up to 1.8 %
        ([1] * 10, 0.01, "unclear"),  # of two beside each other by nothing
        ([0] * 8 + [1] * 2, 0.01, "unclear"),
        ([0] * 10, 0.05, "kept"),
        ([9] * 10, 0.05, "breached"),
    ],
)
def test_values_known_by_class_are_judged_as_their_classes_allow(
    *, setting: ComparisonOptions, better: Literal["lower", "higher"], classes: list[int], margin: float, outcome: str
) -> None:
    sign = 1 if better == "lower" else -1
    base = arm("a", [10.0] * 10)
    found = guarded(
        base,
        arm("b", [10 * (1 + CLASS) ** (sign * each) for each in classes]),
        rail=GuardrailRule(better=better, margin=margin, resolution=CLASS),
        setting=setting,
    )
    assert found.outcome == outcome
    assert found.bound is not None
    assert (sign * math.log(found.bound) < math.log1p(margin)) == (outcome == "kept")


def test_values_known_by_class_that_have_no_logarithms_are_not_judged() -> None:
    rail = GuardrailRule(better="lower", margin=0.02, resolution=CLASS)
    found = guarded(arm("a", [0.0, 5.0] * 5), arm("b", [0.0, 50.0] * 5), rail=rail, setting=PAIRED)
    assert (found.outcome, found.p_kept, found.p_breached) == ("unclear", 1.0, 1.0)


@pytest.mark.servers
def test_r_gives_the_same_one_sided_p_values_and_bounds() -> None:
    rscript = shutil.which("Rscript")
    assert rscript, "install r-base-core"
    random = np.random.default_rng(7)
    first, second = random.lognormal(3, 0.02, 9), random.lognormal(3.01, 0.03, 9)
    script = f"""
a <- log(c({",".join(map(repr, first.tolist()))})); b <- log(c({",".join(map(repr, second.tolist()))}))
for (paired in c(TRUE, FALSE)) cat(t.test(b, a, paired = paired, mu = log(1.02), alternative = "less")$p.value,
  t.test(b, a, paired = paired, mu = log(1.02), alternative = "greater")$p.value,
  exp(t.test(b, a, paired = paired, alternative = "less")$conf.int[2]), "")
"""
    done = subprocess.run(
        [rscript, "--vanilla", "-e", "options(digits = 15)", "-e", script], capture_output=True, text=True, check=True
    )
    rail = GuardrailRule(better="lower", margin=0.02)
    ours: list[float | None] = []
    for setting in (PAIRED, UNPAIRED):
        found = guarded(arm("a", first.tolist()), arm("b", second.tolist()), rail=rail, setting=setting)
        ours += [found.p_kept, found.p_breached, found.bound]
    assert ours == pytest.approx([float(each) for each in done.stdout.split()], rel=1e-6)
