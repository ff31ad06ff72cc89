"""Fixed slots and blocks that are alike: found where they are, and seldom where they are not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.inference.analysis_cases import Case
from support.inference.tables import judged

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Doubt


def cell(differences: np.ndarray, *, orders: np.ndarray | None = None) -> list[ArmValues]:
    """Blocks of two arms, one behind the other; `orders`: whether the baseline is first."""
    n = differences.size
    first = np.ones(n, dtype=bool) if orders is None else orders
    slots = [tuple(int(2 * block + (ahead != arm)) for block, ahead in enumerate(first)) for arm in (True, False)]
    values = [np.full(n, 100.0), 100.0 * np.exp(differences)]
    blocks = tuple(range(1, n + 1))
    return [
        ArmValues(arm=arm, values=each, blocks=blocks, positions=at, absent=0)
        for arm, each, at in zip("ab", values, slots, strict=True)
    ]


def correlated(random: np.random.Generator, n: int, share: float) -> np.ndarray:
    values = [random.normal()]
    for _ in range(n - 1):
        values.append(share * values[-1] + np.sqrt(1 - share**2) * random.normal())
    return 0.01 * np.array(values)


def rate(share: float, *, cells: int, n: int, replicates: int) -> float:
    """How often neighbouring blocks are said to be alike."""
    random = np.random.default_rng(17)
    said = 0
    for _ in range(replicates):
        drawn = [cell(correlated(random, n, share)) for _ in range(cells)]
        said += any(order_doubts.dependent_blocks("tpm", drawn))
    return said / replicates


@pytest.mark.parametrize(("cells", "n"), [(1, 8), (6, 6)])
def test_independent_blocks_are_seldom_said_to_be_alike(cells: int, n: int) -> None:
    assert rate(0.0, cells=cells, n=n, replicates=200) < 0.1


def test_blocks_that_are_alike_are_found_the_more_there_are() -> None:
    few, more = rate(0.5, cells=1, n=10, replicates=100), rate(0.5, cells=6, n=10, replicates=100)
    assert 0.05 < few < more
    assert more > 0.8


def test_cells_that_share_their_boots_say_the_same_once() -> None:
    once, often = 0, 0
    for seed in range(20):
        values = correlated(np.random.default_rng(seed), 12, 0.7)
        alone = [*order_doubts.dependent_blocks("tpm", [cell(values)])]
        assert [*order_doubts.dependent_blocks("tpm", [cell(values)] * 4, in_step=True)] == alone
        once += len(alone)
        often += len([*order_doubts.dependent_blocks("tpm", [cell(values)] * 4)])
    assert 0 < once < often, "cells of their own would say more"


def test_boots_that_differ_at_random_are_seldom_said_to_be_alike_whatever_cells_share_them() -> None:
    random, said = np.random.default_rng(5), 0
    for _ in range(200):
        boots = random.normal(0, 0.03, 10)
        drawn = [cell(boots + random.normal(0, 0.01, 10)) for _ in range(6)]
        said += any(order_doubts.dependent_blocks("tpm", drawn, in_step=True))
    assert said <= 20, "of 200, 10 expected; as cells of their own 50"


def test_boots_that_are_alike_are_found_though_a_cell_stopped_early() -> None:
    random = np.random.default_rng(6)
    boots = correlated(random, 20, 0.8)
    cells = [cell(boots[:n] + random.normal(0, 0.002, n)) for n in (20, 3, 20, 6)]
    (doubt,) = order_doubts.dependent_blocks("tpm", cells, in_step=True)
    assert [doubt] == [*order_doubts.dependent_blocks("tpm", cells[::2], in_step=True)]
    assert not [*order_doubts.dependent_blocks("tpm", [cell(boots[:4])] * 2, in_step=True)]


def test_an_analysis_of_boots_counts_cells_that_share_them_once() -> None:
    case = Case({"kernel": ["base", "patched"], "load": ["few", "some", "many"]}, blocks=8)
    rising = np.array([0.0, 2, 1, 3, 4, 5, 7, 6]) / 1000
    trials = case.trials(
        tpm=lambda levels, block: float(100 * np.exp(rising[block - 1] * (levels["kernel"] == "patched")))
    )
    design = case.plan().design.model_copy(update={"reboot": "between_blocks"})
    found = analyse(case.plan().model_copy(update={"design": design}), trials).doubts
    (alone,) = order_doubts.dependent_blocks("tpm", [cell(rising)])
    assert [doubt for doubt in found if doubt.code == "dependent_blocks"] == [alone]


def test_what_cannot_be_judged_is_not_doubted() -> None:
    assert not [*order_doubts.dependent_blocks("tpm", [cell(np.array([0.01, 0.02, 0.03, 0.04]))])]
    assert not [*order_doubts.dependent_blocks("tpm", [cell(np.full(10, 0.01))])]


def test_blocks_are_taken_in_the_order_of_their_trials_not_of_their_numbers() -> None:
    rising = cell(np.linspace(0, 0.1, 12))
    mixed = np.random.default_rng(1).permutation(12)
    renamed = [
        ArmValues(
            arm=each.arm,
            values=each.values[mixed],
            blocks=tuple(int(number) for number in mixed),
            positions=tuple(each.positions[number] for number in mixed),
            absent=0,
        )
        for each in rising
    ]
    (one,), (other,) = ([*order_doubts.dependent_blocks("tpm", [each])] for each in (rising, renamed))
    assert one == other


@pytest.mark.parametrize(("blocks", "said"), [(7, False), (8, True)])
def test_one_order_in_all_blocks_is_a_doubt_once_chance_hardly_does_it(*, blocks: int, said: bool) -> None:
    fixed = cell(np.linspace(0, 0.01, blocks))
    assert bool([*order_doubts.fixed_slots("tpm", [fixed])]) == said
    one_turned = np.arange(blocks) != 3
    assert not [*order_doubts.fixed_slots("tpm", [cell(np.linspace(0, 0.01, blocks), orders=one_turned)])]


def drifting(*, fixed: bool) -> tuple[Doubt, ...]:
    """Doubts about a table of a machine that slows down."""
    rows, random = [], np.random.default_rng(2)
    for block in range(1, 11):
        for arm in ("a", "b") if fixed or block % 2 else ("b", "a"):
            rows.append(f"{arm},{block},{100 - len(rows) + random.normal(0, 0.1):.6f}")
    text = "arm,block,tpm\n" + "\n".join(rows)
    return judged(text, values=("tpm",), arm="arm", baseline="a", block="block").doubts


def test_a_drift_is_in_the_difference_where_arms_had_one_order() -> None:
    said = {fixed: {doubt.code: doubt for doubt in drifting(fixed=fixed)} for fixed in (True, False)}
    assert "protected" in said[False]["drift"].advice
    assert "fixed_slots" not in said[False]
    assert "protected" not in said[True]["drift"].advice
    assert said[True]["fixed_slots"].message == "b runs after a in all 10 blocks"


def slots(orders: Sequence[str]) -> list[ArmValues]:
    """A cell whose block number i had the arms, named by a letter, in the i-th order; the baseline is `a`."""
    names = sorted(orders[0])
    return [
        ArmValues(
            arm=name,
            values=np.ones(len(orders)),
            blocks=tuple(range(len(orders))),
            positions=tuple(len(names) * block + order.index(name) for block, order in enumerate(orders)),
            absent=0,
        )
        for name in names
    ]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([["ab"] * 10, ["ba"] * 10], "b runs after a in all 10 blocks in 2 of 2 cells"),
        (
            [["abc", "acb"] * 5],
            "b runs after a in all 10 blocks; c runs after a in all 10 blocks",
        ),
        ([["bac", "cba", "bca"] * 4], "b runs before a in all 12 blocks"),
        ([["ab", "ba"] * 3, ["ab"] * 6], ""),  # six of one cell may be chance
    ],
)
def test_an_arm_that_is_never_on_the_other_side_of_its_baseline_is_named(cells: list[list[str]], said: str) -> None:
    found = [slots(orders) for orders in cells]
    assert [doubt.message for doubt in order_doubts.fixed_slots("tpm", found)] == ([said] if said else [])
    assert not order_doubts.interleaved(found), "what drifts within a block does not cancel, whatever chance says"


def test_arms_on_both_sides_of_their_baseline_are_interleaved() -> None:
    assert order_doubts.interleaved([slots(["abc", "bca", "cab"]), slots(["bca", "acb"])])


def test_a_randomised_run_is_not_doubted_for_its_order() -> None:
    case = Case({"kernel": ["base", "patched"], "memory": ["low", "high"]}, blocks=8)
    random = np.random.default_rng(4)
    found = analyse(case.plan(), case.trials(tpm=lambda _levels, _block: float(100 + random.normal())))
    assert not {"fixed_slots", "dependent_blocks"} & {doubt.code for doubt in found.doubts}
