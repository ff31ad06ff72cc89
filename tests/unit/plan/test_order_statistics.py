"""The orders as statistics: over 400 seeds, nothing in a plan prefers an arm, a cell or a place in time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from scipy import stats

from fairtrial.plan import ordering, replacement
from fairtrial.record.models import Design, Plan

SEEDS = range(400)
CELLS = ["under+low", "under+high", "over+low", "over+high"]
ALARM = 1e-3  # chance that a fair order fails one of these tests; seeds are fixed, so none will tomorrow
PRINT_PLAN = """
import sys; from pathlib import Path
from fairtrial import plan, study
from fairtrial.catalogue import catalogue
known = catalogue()
print(plan.make(study.load(Path(sys.argv[1]), catalogue=known), catalogue=known).model_dump_json())
"""
STUDY = Path(__file__).parents[3] / "studies" / "sqlite-wal.yaml"


def design(seed: int, *, order: str = "randomised_blocks", blocks: int = 2) -> Design:
    return Design.model_validate(
        {"blocks": blocks, "order": order, "seed": seed, "stop": "fixed", "margin": 0.02, "voided_limit": 2}
    )


def ordered(seed: int, arms: list[str], **options: object) -> list[ordering.Slot]:
    return list(ordering.slots(design(seed, **options), cells=CELLS, arms=arms))  # type: ignore[arg-type]


def test_each_of_two_arms_is_first_in_half_of_the_blocks_of_every_cell() -> None:
    first: Counter[tuple[str, int]] = Counter()
    for seed in SEEDS:
        slots = ordered(seed, ["base", "new"])
        for slot in slots[::2]:
            first[slot.cell, slot.block] += slot.arm == "base"
    low, high = stats.binom.interval(1 - ALARM / len(first), len(SEEDS), 0.5)
    assert len(first) == len(CELLS) * 2
    assert all(low <= count <= high for count in first.values()), first


def test_every_order_of_three_arms_is_as_frequent_as_any_other() -> None:
    found: Counter[tuple[str, ...]] = Counter()
    for seed in SEEDS:
        slots = ordered(seed, ["a", "b", "c"])
        found.update(tuple(slot.arm for slot in slots[start : start + 3]) for start in range(0, len(slots), 3))
    assert set(found) == set(permutations("abc"))
    assert stats.chisquare(list(found.values())).pvalue > ALARM


def test_every_cell_is_at_every_place_of_a_round_equally_often() -> None:
    found: Counter[tuple[str, int]] = Counter()
    for seed in SEEDS:
        found.update((slot.cell, place) for place, slot in enumerate(ordered(seed, ["a", "b"])[: 2 * len(CELLS) : 2]))
    assert len(found) == len(CELLS) ** 2
    for cell in CELLS:
        assert stats.chisquare([found[cell, place] for place in range(len(CELLS))]).pvalue > ALARM


def test_the_order_of_one_block_says_nothing_about_the_next() -> None:
    same = sum(slots[0].arm == slots[8].arm for slots in (ordered(seed, ["a", "b"]) for seed in SEEDS))
    low, high = stats.binom.interval(1 - ALARM, len(SEEDS), 0.5)
    assert low <= same <= high


def test_no_two_blocks_of_400_studies_share_a_load_seed_and_all_arms_of_a_block_do() -> None:
    seeds: dict[int, tuple[int, str, int]] = {}
    for seed in SEEDS:
        for position, slot in enumerate(ordered(seed, ["a", "b", "c"])):
            trial = ordering.planned(slot, seed=seed, position=position)
            assert seeds.setdefault(trial.seed, (seed, slot.cell, slot.block)) == (seed, slot.cell, slot.block)
    assert len(seeds) == len(SEEDS) * len(CELLS) * 2


def test_abba_with_three_arms_in_full() -> None:
    slots = ordering.slots(design(1, order="abba", blocks=3), cells=["x", "y"], arms=["a", "b", "c"])
    assert " ".join(f"{slot.cell}{slot.block}{slot.arm}" for slot in slots) == (
        "x1a x1b x1c y1a y1b y1c x2c x2b x2a y2c y2b y2a x3a x3b x3c y3a y3b y3c"
    )


def test_sequential_with_three_arms_in_full() -> None:
    slots = ordering.slots(design(1, order="sequential"), cells=["x", "y"], arms=["a", "b", "c"])
    assert " ".join(f"{slot.cell}{slot.block}{slot.arm}" for slot in slots) == (
        "x1a y1a x2a y2a x1b y1b x2b y2b x1c y1c x2c y2c"
    )


@pytest.mark.parametrize("order", ["abba", "sequential"])
def test_orders_that_are_not_random_do_not_depend_on_the_seed(order: str) -> None:
    assert len({tuple(ordered(seed, ["a", "b"], order=order)) for seed in range(20)}) == 1


def test_replacements_never_reuse_a_name_or_another_blocks_load(make: Callable[..., Plan]) -> None:
    plan = make()
    names, loads = {trial.id for trial in plan.trials}, {trial.seed for trial in plan.trials}
    position = len(plan.trials)
    for cell in plan.cells:
        for block in range(plan.design.blocks + 1, plan.design.blocks + 6):
            new = replacement(plan, cell=cell.name, block=block, round_=block, position=position)
            assert sorted(trial.arm for trial in new) == sorted(plan.factors[plan.arm])
            assert [trial.position for trial in new] == [position, position + 1]
            assert names.isdisjoint({trial.id for trial in new})
            (load,) = {trial.seed for trial in new}
            assert load not in loads
            names |= {trial.id for trial in new}
            loads.add(load)
            position += len(new)


def test_replacements_of_a_random_design_are_in_random_order(make: Callable[..., Plan]) -> None:
    plan = make()
    first = Counter(
        replacement(plan, cell=plan.cells[0].name, block=block, round_=block, position=0)[0].arm
        for block in range(11, 411)
    )
    low, high = stats.binom.interval(1 - ALARM, 400, 0.5)
    assert low <= first["baseline"] <= high


def test_processes_that_hash_differently_make_the_same_plan() -> None:
    plans = {
        subprocess.run(
            [sys.executable, "-c", PRINT_PLAN, STUDY],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(plans) == 1
    assert Plan.model_validate_json(plans.pop()).trials
