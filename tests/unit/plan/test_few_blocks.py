"""A number of blocks that can claim nothing is warned of, by the same rule as the analysis judges."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from fairtrial.analyse.sequential import last_look
from fairtrial.record.models import Plan

Make = Callable[..., Plan]


def warned(plan: Plan) -> list[str]:
    return [warning for warning in plan.warnings if "use at least" in warning]


@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
@pytest.mark.parametrize("confidence", ["50%", "93.75%", "95%", "99%", "99.9%"])
def test_too_few_to_claim_anything_are_warned_of(make: Make, order: str, confidence: str) -> None:
    trials = [f"trials.order={order}", f"trials.confidence={confidence}"]
    fewest = last_look.fewest_blocks(make(overrides=trials))
    few = make(overrides=[*trials, f"trials.blocks={fewest - 1}"])
    advice = f"use at least {fewest}" + (", better 10" if fewest < 10 else "")
    assert warned(few) == [f"{fewest - 1} blocks per cell can claim nothing, whatever they show; {advice}"]
    assert warned(make(overrides=[*trials, f"trials.blocks={fewest}"])) == []


@pytest.mark.parametrize("cells", [1, 4])
@pytest.mark.parametrize("confidence", ["50%", "95%", "99%", "99.99%"])
def test_too_few_for_an_analysis_that_may_look_whenever_are_warned_of(
    make: Make, small: ModuleType, *, cells: int, confidence: str
) -> None:
    lines = small.MGLRU.splitlines()
    others = ("  memory", "    under", "    over", "  users", "    low", "    high", "also_compare", "expect")
    text = "\n".join(line for line in lines if cells > 1 or not line.startswith(others))
    trials = f"stop: anytime, confidence: {confidence}"
    fewest = last_look.fewest_blocks(whole := make(text, overrides=[f"trials={{{trials}, blocks: 30}}"]))
    assert (len(whole.cells), warned(whole)) == (cells, [])
    (said,) = warned(make(text, overrides=[f"trials={{{trials}, blocks: {fewest - 1}}}"]))
    assert said.startswith(f"{fewest - 1} blocks per cell can claim nothing, whatever they show; use at least {fewest}")
    assert warned(make(text, overrides=[f"trials={{{trials}, blocks: {fewest}}}"])) == []


def test_one_block_is_advised_as_many_as_can_claim(make: Make) -> None:
    said = "one block per cell gives no interval and no verdict; use at least 6, better 10"
    assert warned(make(overrides=["trials.blocks=1"])) == [said]


def test_a_rule_that_stops_early_may_claim_from_its_first_look_on(make: Make) -> None:
    assert warned(make(overrides=["trials={stop: sequential, blocks: 4}"])) == []
