"""Which block runs which order of linking."""

from __future__ import annotations

from collections import Counter

import pytest
from support.records import planned, tiny_plan

from fairtrial.analyse.hosts.comparing import FEWEST_HOSTS
from fairtrial.catalogue import catalogue
from fairtrial.plan import layouts
from fairtrial.plan.against_itself import against_itself
from fairtrial.record.models import Plan
from fairtrial.study.builds import Builds


def plan(orders: int, seed: int = 1) -> Plan:
    builds = Builds(program="/p", objects={"a": ["/a/*.o"], "b": ["/b/*.o"]}, link="cc -o {output} {objects}")
    bare = tiny_plan()
    design = bare.design.model_copy(update={"seed": seed})
    return bare.model_copy(update={"builds": builds.model_copy(update={"link_orders": orders}), "design": design})


def test_all_orders_are_run_equally_often_and_both_arms_of_a_block_share_one() -> None:
    orders = [layouts.order_of(plan(5), planned(block, "a")) for block in range(1, 21)]
    assert Counter(orders) == dict.fromkeys(range(1, 6), 4)
    for start in range(0, 20, 5):
        assert sorted(orders[start : start + 5]) == [1, 2, 3, 4, 5]
    assert orders == [layouts.order_of(plan(5), planned(block, "b")) for block in range(1, 21)]


def test_cells_and_seeds_have_sequences_of_their_own() -> None:
    def sequence(cell: str, seed: int) -> list[int]:
        return [layouts.order_of(plan(5, seed), planned(block, "a", cell=cell)) for block in range(1, 21)]

    assert len({tuple(sequence(cell, seed)) for cell in ("low", "high") for seed in (1, 2)}) == 4


def test_arms_differ_in_their_objects() -> None:
    (difference,) = layouts.differences(plan(5).builds)
    assert difference.values == {"a": ["/a/*.o"], "b": ["/b/*.o"]}
    assert layouts.differences(None) == []


def test_few_orders_or_blocks_are_warned_of() -> None:
    assert layouts.FEWEST == FEWEST_HOSTS
    assert layouts.warnings(plan(5).builds, blocks=10) == layouts.warnings(None, blocks=1) == []
    (few,) = layouts.warnings(plan(4).builds, blocks=8)
    assert few.startswith("builds.link_orders: 4 say nothing of other orders")
    (thin,) = layouts.warnings(plan(5).builds, blocks=9)
    assert thin.endswith("use at least 10 blocks, a multiple of 5")


def test_both_arms_of_an_a_a_run_have_the_baselines_objects() -> None:
    own = against_itself(plan(5), catalogue=catalogue())
    assert own.builds is not None
    assert own.builds.objects == {"a": ["/a/*.o"], "a-again": ["/a/*.o"]}
    assert against_itself(tiny_plan(), catalogue=catalogue()).builds is None


def test_a_plan_without_builds_has_no_layout() -> None:
    with pytest.raises(AssertionError):
        layouts.order_of(tiny_plan(), planned(1, "a"))
    assert "builds" not in tiny_plan().model_dump()
