"""What a script's drives drew against its weights."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fairtrial.metrics.fidelity import Fidelity, assess
from fairtrial.metrics.fidelity.script import ScriptSpecification
from fairtrial.workloads.engine.script import ScriptParameters

ASKED = ScriptParameters.model_validate(
    {
        "duration": "1s",
        "content": {
            "transactions": {
                "look_around": {"weight": 3, "statements": ["SELECT 1"]},
                "order": {"weight": 1, "rollback": "2 %", "statements": ["SELECT 1"]},
            }
        },
    }
)
SPECIFICATION = ScriptSpecification.model_validate(ASKED.model_dump(mode="json"))
FAITHFUL = {"look_around": 7500, "order": 2500, "order.rollback": 50, "rows.read": 10_000}


def assessed(*drives: tuple[int, dict[str, int]]) -> Fidelity:
    return assess("script", {str(number): drive for number, drive in enumerate(drives)}, SPECIFICATION)


def test_faithful_counts_keep_every_point() -> None:
    found = assessed((1, FAITHFUL))
    assert [(point.name, point.asked, point.value, point.verdict) for point in found.points] == [
        ("look around", "75 %", 0.75, "kept"),
        ("order", "25 %", 0.25, "kept"),
        ("order, rolled back", "2 %", 0.02, "kept"),
    ]
    assert (found.workload, found.broken, found.deviations) == ("script", (), ())


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        ({"look_around": 7200, "order": 2800, "order.rollback": 56}, ["look around", "order"]),
        ({"order.rollback": 0}, ["order, rolled back"]),
        ({"order.rollback": 2501}, ["order, rolled back"]),
    ],
)
def test_counts_that_chance_does_not_give_break_their_points(wrong: dict[str, int], broken: list[str]) -> None:
    found = assessed((1, FAITHFUL | wrong))
    assert [point.name for point in found.broken] == broken
    assert all(point.trials_broken == 1 for point in found.broken)


def test_a_type_that_was_never_drawn_counts_against_its_weight_and_none_at_all_against_nothing() -> None:
    assert [point.name for point in assessed((1, {"look_around": 500})).broken] == ["look around", "order"]
    assert {point.verdict for point in assessed((1, {})).points} == {"untested"}


def test_trials_of_different_seeds_are_added_up_and_of_equal_seeds_the_longest_stands() -> None:
    shorter = {name: count // 10 for name, count in FAITHFUL.items()}
    found = assessed((1, FAITHFUL), (1, shorter), (2, shorter))
    assert (found.seeds, len(found.trials)) == (2, 3)
    assert found.points[0].of == 11_000


def test_weights_that_no_study_may_have_are_no_specification() -> None:
    for wrong in ({"weight": 0}, {"rollback": 2}):
        content = {"transactions": {"order": {"weight": 1, "rollback": 0, **wrong}}}
        with pytest.raises(ValidationError):
            ScriptSpecification.model_validate({"content": content})
