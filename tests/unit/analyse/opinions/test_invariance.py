"""What must not matter: names of arms, cells and blocks, the unit, the direction of the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis, Comparison

ARMS, CELLS, BLOCKS = 3, 2, 4
EXAMPLES = 60
OPPOSITE = {"faster": "slower", "slower": "faster"}


@pytest.fixture(autouse=True, scope="module")
def _no_collecting() -> Iterator[None]:
    """Statsmodels collects garbage in every adjustment, 40 ms each and more while Hypothesis remembers examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gc.collect", lambda: 0)
        yield


numbers = st.one_of(
    st.floats(min_value=1, max_value=1e6), st.floats(min_value=999, max_value=1001), st.integers(1, 4).map(float)
)
tables = st.lists(numbers, min_size=ARMS * CELLS * BLOCKS, max_size=ARMS * CELLS * BLOCKS)
orders = st.sampled_from(["randomised_blocks", "abba", "sequential"])


def analysed(
    table: Sequence[float],
    *,
    arms: Sequence[str] = ("a0", "a1", "a2"),
    cells: Sequence[str] = ("c0", "c1"),
    blocks: Sequence[int] = (1, 2, 3, 4),
    order: str = "randomised_blocks",
) -> Analysis:
    """One value for each (arm, cell, block), by index; names and numbers of blocks are the caller's."""
    case = Case({"kernel": arms, "memory": cells}, blocks=BLOCKS, order=order)
    values = dict(zip(product(arms, cells, range(1, BLOCKS + 1)), table, strict=True))

    def value(levels: Mapping[str, str], block: int) -> float:
        return values[levels["kernel"], levels["memory"], block]

    trials = [
        each.model_copy(update={"trial": each.trial.model_copy(update={"block": blocks[each.trial.block - 1]})})
        for each in case.trials(tpm=value)
    ]
    return analyse(case.plan(), trials)


def compared(analysis: Analysis) -> dict[tuple[str, str], Comparison]:
    return {(each.cell, each.arm): each for cell in analysis.cells for each in cell.comparisons["tpm"]}


def figures(found: Comparison) -> dict[str, Any]:
    """All that is no name; doubts name arms, so their codes stand for them."""
    codes = [doubt.code for doubt in found.doubts]
    return found.model_dump(exclude={"cell", "arm", "baseline", "doubts"}) | {"doubts": codes}


def like(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-9)


def on_the_edge(found: Comparison) -> bool:
    """A p so near the level that rounding may decide."""
    values = (found.p_adjusted, found.p_equivalence_adjusted)
    return any(value is not None and math.isclose(value, 0.05, rel_tol=1e-6) for value in values)


@settings(max_examples=EXAMPLES)
@given(table=tables, order=orders)
def test_names_of_arms_and_cells_and_numbers_of_blocks_mean_nothing(table: list[float], order: str) -> None:
    plain = compared(analysed(table, order=order))
    renamed = compared(
        analysed(table, arms=("zulu", "all", "9"), cells=("x.y", "-1"), blocks=(40, 7, 1000, 2), order=order)
    )
    arms, cells = {"a1": "all", "a2": "9"}, {"c0": "x.y", "c1": "-1"}
    for (cell, arm), found in plain.items():
        assert figures(renamed[cells[cell], arms[arm]]) == figures(found)


@settings(max_examples=EXAMPLES)
@given(table=tables)
def test_the_order_of_cells_and_of_further_arms_permutes_results(table: list[float]) -> None:
    base, one, two = (table[index : index + CELLS * BLOCKS] for index in range(0, len(table), CELLS * BLOCKS))

    def turned(values: list[float]) -> list[float]:
        return values[BLOCKS:] + values[:BLOCKS]

    found = compared(analysed([*base, *one, *two]))
    moved = compared(analysed([*turned(base), *turned(two), *turned(one)], arms=("a0", "a2", "a1"), cells=("c1", "c0")))
    assert {key: figures(each) for key, each in moved.items()} == {key: figures(each) for key, each in found.items()}


@settings(max_examples=EXAMPLES)
@given(table=tables, factor=st.sampled_from([1e-9, 0.001, 3.7, 1000, 1e9]), order=orders)
def test_a_constant_factor_changes_units_and_no_ratio_p_or_verdict(
    table: list[float], factor: float, order: str
) -> None:
    plain, scaled = (compared(analysed(each, order=order)) for each in (table, [factor * value for value in table]))
    for key, found in plain.items():
        other = scaled[key]
        for name in ("p", "p_adjusted", "p_equivalence", "p_equivalence_adjusted", "smallest_effect"):
            assert like(getattr(other, name), getattr(found, name)), name
        assert (other.rank and other.rank.tied) == (found.rank and found.rank.tied)
        assert like(other.rank and other.rank.p, found.rank and found.rank.p)
        assert all(
            map(
                like,
                (other.ratio.estimate, other.ratio.low, other.ratio.high),
                (found.ratio.estimate, found.ratio.low, found.ratio.high),
            )
        )
        assert other.difference.estimate == pytest.approx(
            factor * (found.difference.estimate or 0), rel=1e-6, abs=factor * 1e-6
        )
        assert on_the_edge(found) or other.verdict == found.verdict


@settings(max_examples=EXAMPLES)
@given(table=tables, order=orders)
def test_swapping_two_arms_inverts_the_ratio_and_keeps_p(table: list[float], order: str) -> None:
    half = CELLS * BLOCKS
    base, one, two = table[:half], table[half : 2 * half], table[2 * half :]
    ahead = compared(analysed([*base, *one, *two], order=order))
    back = compared(analysed([*one, *base, *two], arms=("a1", "a0", "a2"), order=order))
    for cell in ("c0", "c1"):
        there, here = ahead[cell, "a1"], back[cell, "a0"]
        assert like(here.p, there.p)
        assert like(here.rank and here.rank.p, there.rank and there.rank.p)
        assert like(here.p_equivalence, there.p_equivalence)
        assert (there.ratio.low is None) == (here.ratio.low is None)
        assert like((here.ratio.estimate or 0) * (there.ratio.estimate or 0), 1)
        if there.ratio.low is not None and there.ratio.high is not None:
            assert like(1 / there.ratio.low, here.ratio.high)
            assert like(1 / there.ratio.high, here.ratio.low)
        own = (there.p_adjusted, here.p_adjusted)  # the third arm's comparisons differ, and with them the family
        if like(*own) and like(there.p_equivalence_adjusted, here.p_equivalence_adjusted) and not on_the_edge(there):
            assert here.verdict == OPPOSITE.get(there.verdict, there.verdict)


@settings(max_examples=EXAMPLES)
@given(table=tables)
def test_a_constant_factor_on_both_arms_of_one_block_changes_no_ratio(table: list[float]) -> None:
    """What a block does to all of its trials is not the arm's: that is what pairing is."""
    slow = [value * (7 if index % BLOCKS == 2 else 1) for index, value in enumerate(table)]
    plain, shifted = compared(analysed(table)), compared(analysed(slow))
    for key, found in plain.items():
        assert like(shifted[key].p, found.p)
        assert like(shifted[key].ratio.estimate, found.ratio.estimate)
        assert like(shifted[key].ratio.high, found.ratio.high)
