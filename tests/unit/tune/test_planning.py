from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fairtrial.analyse.inference import power
from fairtrial.errors import InputError
from fairtrial.study.tuning import Tuning
from fairtrial.tune import planning
from fairtrial.tune.events import ConfirmationPlanned, Proposed, Stages, Told

CLAIM = planning.Claim(margin=0.02, alpha=0.05)
AT_99 = replace(CLAIM, alpha=0.01)


def tuning(**more: object) -> Tuning:
    return Tuning.model_validate({"options": {"x": {"of": "system.s.x", "from": 1, "to": 9}}, **more})


@pytest.mark.parametrize("budget", [12, 13, 14, 20, 50, 60, 100, 1000])
def test_stages_spend_the_budget_and_leave_most_of_it_to_the_search(budget: int) -> None:
    found = planning.stages(tuning(), budget=budget)
    assert budget - 1 <= found.trials <= budget
    assert found.proposals >= found.best


def test_a_budget_that_leaves_no_search_is_refused() -> None:
    with pytest.raises(InputError, match="leaves 1 proposals beside measuring 3"):
        planning.stages(tuning(again={"best": 3, "blocks": 4}), budget=18)


def test_the_short_list_has_the_largest_gains_of_different_values_that_kept_the_guardrails() -> None:
    values = {1: 5, 2: 6, 3: 6, 4: 7, 5: 8}
    gains = {1: 0.1, 2: 0.5, 3: 0.1, 4: 0.4, 5: None}
    states = {4: "infeasible", 5: "failed"}
    proposed = {number: Proposed(number=number, values={"x": value}) for number, value in values.items()}
    told = [
        Told.model_validate({"number": number, "state": states.get(number, "measured"), "gain": gain})
        for number, gain in gains.items()
    ]
    found = planning.shortlist(proposed, told, Stages(proposals=5, best=3, blocks=2))
    assert found.numbers == [2, 1]


def test_the_confirmation_is_planned_for_the_gain_less_its_error_at_the_upper_bound_of_the_noise() -> None:
    gains = {1: [0.04, 0.06], 2: [0.01, 0.03], 3: [0.2, 0.3]}
    found = planning.confirmation(gains, [3], tuning=tuning(), claim=CLAIM)
    assert (found.number, found.gain) == (1, pytest.approx(0.05))
    sd = math.sqrt((2 * 0.01**2 + 2 * 0.01**2 + 2 * 0.05**2) / 3)
    assert found.sd == pytest.approx(sd)
    assert found.sd_upper is not None
    needed = power.blocks_needed(found.sd_upper, effect=math.expm1(0.05 - sd / math.sqrt(2)), alpha=0.05)
    assert needed is not None
    assert needed > found.blocks == 30
    assert f"needs {needed} blocks" in found.reason
    assert planning.confirmation(gains, (), tuning=tuning(), claim=CLAIM).number == 3
    few = planning.confirmation({1: [0.1, 0.1001]}, (), tuning=tuning(), claim=CLAIM)
    assert (few.blocks, few.reason) == (6, "")


def test_a_confirmation_has_as_many_blocks_as_can_claim_at_the_studys_confidence() -> None:
    gains = {1: [0.1, 0.1001]}
    for confidence, fewest in ((0.5, 6), (0.95, 6), (0.99, 8), (0.999, 11)):
        found = planning.confirmation(
            gains, (), tuning=tuning(), claim=planning.Claim(margin=0.02, alpha=1 - confidence)
        )
        assert (found.blocks, found.fewest, found.reason) == (fewest, fewest, "")
    same = planning.confirmation({1: [0.1, 0.1]}, (), tuning=tuning(), claim=AT_99)
    assert same.blocks == 8
    for confirm in ({"blocks": 7}, {"most": 7}):
        few = planning.confirmation(gains, (), tuning=tuning(confirm=confirm), claim=AT_99)
        assert (few.blocks, few.reason) == (
            7,
            "7 blocks can claim nothing at this confidence, whatever they show: 8 can",
        )


def test_a_journal_of_before_is_recomputed_as_it_was_planned() -> None:
    stored = ConfirmationPlanned.model_validate_json('{"event": "confirmation_planned", "number": 1, "blocks": 6}')
    claim = replace(AT_99, fewest=planning.fewest_of(stored))
    again = planning.confirmation({1: [0.1, 0.1001]}, (), tuning=tuning(), claim=claim)
    assert (again.blocks, again.fewest) == (stored.blocks, stored.fewest)
    assert planning.fewest_of(stored.model_copy(update={"fewest": 9})) is None


def test_nothing_is_confirmed_where_fresh_blocks_show_no_gain_or_every_guardrail_is_breached() -> None:
    worse = planning.confirmation({1: [-0.1, 0.05]}, (), tuning=tuning(), claim=CLAIM)
    assert (worse.number, worse.blocks) == (None, 0)
    assert "no proposal is better than the default" in worse.reason
    assert "guardrails" in planning.confirmation({1: [0.1, 0.1]}, [1], tuning=tuning(), claim=CLAIM).reason


def test_more_trials_are_never_refused_where_fewer_are_enough() -> None:
    found = [planning.stages(tuning(), budget=budget) for budget in range(12, 400)]
    assert [each.best for each in found[:4]] == [2, 2, 3, 3]
    assert all(each.proposals >= each.best for each in found)
