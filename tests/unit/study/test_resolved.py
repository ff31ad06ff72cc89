"""Sections of a resolved trial: equal if they say the same, one kind each, written as a study writes them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fairtrial.places import place_of
from fairtrial.study.resolved import ResolvedTrial, Section

FAR = {"ssh": {"host": "far", "port": 22}}


def test_sections_are_equal_if_they_say_the_same() -> None:
    again = Section({"ssh": {"port": 22, "host": "far"}})
    assert {Section(FAR): "known"}[again] == "known"
    assert Section(FAR) != Section({"ssh": {"host": "far", "port": 23}})
    assert Section(FAR) != FAR
    assert str(again) == str(Section(FAR))


@pytest.mark.parametrize("kinds", [{}, {"local": {}, **FAR}])
def test_a_section_is_of_one_kind(kinds: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Section.model_validate(kinds)


def test_a_section_is_validated_once() -> None:
    assert place_of(Section(FAR)) is place_of(Section({"ssh": {"port": 22, "host": "far"}}))


def test_a_trial_is_written_as_it_was_resolved() -> None:
    text = '{"place":{"ssh":{"host":"far","port":22}},"system":{"command":{}},"workload":{"command":{"run":"true"}},'
    text += '"settings":{"swappiness":10},"workload_place":null}'
    assert ResolvedTrial.model_validate_json(text).model_dump_json() == text
