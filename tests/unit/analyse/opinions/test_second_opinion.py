"""Every field of every comparison against `support.textbook`, over a grid of designs and of awkward data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from support.inference import textbook
from support.inference.analysis_cases import Case, invalid
from support.inference.exchanged import by_t, raised_inside, raised_unpaired

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis, Comparison, Interval
from fairtrial.record.models import Plan, TrialRecord

CELLS = {1: {}, 2: {"memory": ["under", "over"]}, 4: {"memory": ["under", "over"], "users": ["low", "high"]}}
MARGIN = 0.02
SHAPES = [(2, 1, 2), (2, 1, 12), (2, 2, 3), (2, 4, 5), (3, 1, 4), (3, 2, 12), (3, 4, 2)]  # arms, cells, blocks


@pytest.fixture(autouse=True)
def _no_collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statsmodels collects garbage in every adjustment, 40 ms each."""
    monkeypatch.setattr("gc.collect", lambda: 0)


@dataclass(frozen=True)
class Data:
    """How one grid of values is made and then spoilt."""

    draw: Callable[[np.random.Generator], float]
    spoil: Callable[[list[TrialRecord]], list[TrialRecord]] = lambda trials: trials


def void_one_block(trials: list[TrialRecord]) -> list[TrialRecord]:
    return [invalid(each) if index == 1 else each for index, each in enumerate(trials)]


def lose_values(trials: list[TrialRecord]) -> list[TrialRecord]:
    """Every fifth trial lost its metrics, one way or another: arms end with unequal n."""
    lost: list[dict[str, float]] = [{}, {"tpm": math.nan, "p99": math.inf}]
    return [
        each.model_copy(update={"scalars": lost[index % 2]}) if index % 5 == 4 else each
        for index, each in enumerate(trials)
    ]


DATA = {
    "effects": Data(lambda random: float(1000 * np.exp(random.normal(0.01, 0.02)))),
    "tight": Data(lambda random: float(1000 * np.exp(random.normal(0, 0.001)))),
    "wide": Data(lambda random: float(np.exp(random.normal(0, 2)))),
    "ties": Data(lambda random: float(random.integers(3, 6))),
    "zeros": Data(lambda random: float(random.integers(0, 4))),
    "negative": Data(lambda random: float(random.normal(0, 3))),
    "voided": Data(lambda random: float(random.uniform(50, 60)), void_one_block),
    "lost": Data(lambda random: float(random.uniform(50, 60)), lose_values),
}


def made(arms: int, cells: int, blocks: int, *, data: Data, order: str) -> tuple[Plan, list[TrialRecord]]:
    case = Case(
        {"kernel": ["base", "one", "two"][:arms], **CELLS[cells]},
        blocks=blocks,
        order=order,
        roles={"primary": ["tpm"], "guardrails": ["p99"]},
    )
    random = np.random.default_rng([arms, cells, blocks, len(order)])

    def value(_levels: Mapping[str, str], _block: int) -> float:
        return data.draw(random)

    return case.plan(), data.spoil(case.trials(tpm=value, p99=value))


def judged(analysis: Analysis) -> dict[tuple[str, str, str], Comparison]:
    return {
        (each.cell, each.metric, each.arm): each
        for cell in analysis.cells
        for found in cell.comparisons.values()
        for each in found
    }


def close(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-8, abs_tol=1e-9)


def same_interval(found: Interval, expected: textbook.Interval) -> bool:
    return all(map(close, (found.estimate, found.low, found.high), expected))


def agrees(found: Comparison, expected: textbook.Expected) -> None:
    """Asserts every number that does not need the family."""
    assert found.n == expected.n
    assert same_interval(found.ratio, expected.ratio), (found.ratio, expected.ratio)
    assert same_interval(found.difference, expected.difference), (found.difference, expected.difference)
    assert expected.p is None or close(by_t(found), expected.p)
    assert close(found.p_equivalence, held(found, expected))
    assert (found.welch is None) == (expected.welch is None)
    if found.welch is not None and expected.welch is not None:
        t, df, p, difference = expected.welch
        assert all(map(close, (found.welch.t, found.welch.df, found.welch.p), (t, df, p)))
        assert same_interval(found.welch.difference, difference)


def held(found: Comparison, expected: textbook.Expected) -> float | None:
    """The textbook's p of equivalence, and what exact tests make of one that claims something."""
    if expected.p_equivalence is None or expected.scaled is None:
        return expected.p_equivalence
    bound = math.log(1 + MARGIN)
    before, after = expected.scaled
    if found.method.startswith("paired"):
        apart = [late - early for early, late in zip(before, after, strict=True)]
        return raised_inside(expected.p_equivalence, apart, bound=bound, family=found.family_size)
    higher, lower = (after, before) if statistics.fmean(after) >= statistics.fmean(before) else (before, after)
    arms = higher, [each + bound for each in lower]
    return raised_unpaired(expected.p_equivalence, arms, sides=1, family=found.family_size)


def could_claim(found: Comparison) -> bool:
    """From six blocks on, or where the ranks of both arms can be told apart at 5 %; `n` is the smaller arm's."""
    assert found.rank is not None
    if found.method.startswith("paired"):
        assert found.rank.smallest_p == min(1, 2 ** (1 - found.n))
        return found.n >= 6
    assert found.rank.smallest_p <= 2 / math.comb(2 * found.n, found.n)
    return found.rank.smallest_p < 0.05


def verdict(found: Comparison, *, adjusted: tuple[float, float | None], better: str) -> str:
    """The rule of the methodology page, by value, not by the product's own direction."""
    differs, same = adjusted
    if not could_claim(found):
        return "undecided"
    if same is not None and same < 0.05:
        return "equivalent"
    if differs >= 0.05:
        return "undecided"
    up = found.ratio.estimate > 1 if found.ratio.estimate is not None else (found.difference.estimate or 0) > 0
    return "faster" if up == (better == "higher") else "slower"


def check_family(found: Sequence[Comparison], expected: Sequence[textbook.Expected]) -> None:
    """Exactly these, claims of difference and of equivalence apart; arms of a cell by Dunnett, in closed testing."""
    groups = [each.cell for each in found]
    unadjusted = [mine.p for mine in found]
    differs = textbook.closed(unadjusted, [each.baseline_share for each in found], groups)
    same = textbook.holm([1.0 if each.p_equivalence is None else each.p_equivalence for each in found])
    for mine, theirs, p, equal in zip(found, expected, differs, same, strict=True):
        known = equal if theirs.p_equivalence is not None else None
        assert mine.family_size == len(expected)
        assert close(mine.p_adjusted, p)
        assert close(mine.p_equivalence_adjusted, known)
        assert mine.verdict == verdict(mine, adjusted=(p, known), better="higher")


@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_every_number_of_every_comparison_is_the_textbooks(data: Data, order: str) -> None:
    compared = 0
    for arms, cells, blocks in SHAPES:
        plan, trials = made(arms, cells, blocks, data=data, order=order)
        found = judged(analyse(plan, trials))
        expected = textbook.comparisons(plan, trials, ["tpm", "p99"], contrast="kernel")
        assert list(found) == list(expected)
        for key, each in found.items():
            agrees(each, expected[key])
        family = [key for key in found if key[1] == "tpm"]
        check_family([found[key] for key in family], [expected[key] for key in family])
        for each in found.values():
            if each.metric == "p99":  # a guardrail: no family, its own p decides, lower is better
                own = (each.p, each.p_equivalence)
                assert (each.family_size, each.p_adjusted, each.p_equivalence_adjusted) == (0, None, None)
                assert each.verdict == verdict(each, adjusted=own, better="lower")
        compared += len(found)
    assert compared > 40


@pytest.mark.parametrize("contrast", ["memory", "users"])
@pytest.mark.parametrize("data", ["effects", "voided", "lost", "zeros"])
def test_another_contrast_pairs_by_block_across_the_plans_cells(data: str, contrast: str) -> None:
    plan, trials = made(3, 4, 7, data=DATA[data], order="randomised_blocks")
    found = judged(analyse(plan, trials, contrast=contrast))
    expected = textbook.comparisons(plan, trials, ["tpm", "p99"], contrast=contrast)
    assert len(expected) == 12
    assert list(found) == list(expected)
    for key, each in found.items():
        agrees(each, expected[key])


@pytest.mark.parametrize("order", ["abba", "sequential"])
@pytest.mark.parametrize("data", ["effects", "wide", "lost"])
def test_the_smallest_effect_would_be_found_four_times_in_five_at_holms_hardest_step(data: str, order: str) -> None:
    for arms, cells, blocks in ((2, 1, 3), (2, 1, 12), (3, 2, 5), (3, 4, 12)):
        plan, trials = made(arms, cells, blocks, data=DATA[data], order=order)
        expected = textbook.comparisons(plan, trials, ["tpm", "p99"], contrast="kernel")
        for key, each in judged(analyse(plan, trials)).items():
            logs = expected[key].logs
            if logs is None or each.smallest_effect is None:
                assert logs is None
                assert each.smallest_effect is None
                continue
            alpha = 0.05 / (each.family_size or 1)
            assert logs.power(math.log1p(each.smallest_effect), alpha) == pytest.approx(0.8, abs=2e-4)


def test_summaries_are_of_every_used_value_paired_or_not() -> None:
    plan, trials = made(3, 4, 7, data=DATA["lost"], order="randomised_blocks")
    for cell in analyse(plan, trials).cells:
        for each in cell.summaries["tpm"]:
            values = textbook.by_block(trials, {**cell.levels, "kernel": each.arm}, "tpm")
            expected = textbook.one_sample(list(values.values()))
            assert expected is not None
            mean, low, high = expected.interval(0.95)
            assert (each.values, each.blocks) == (tuple(values.values()), tuple(values))
            assert (each.mean, each.low, each.high) == pytest.approx((mean, low, high), rel=1e-12)
