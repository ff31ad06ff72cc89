"""What a resumed run of a farm knows of its hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.instant_farm import InstantFarm, executed
from support.records import planned, tiny_plan

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.orders import Order, Outcome
from fairtrial.record.events import HostLeft
from fairtrial.record.models import BlockVoided, PlaceOpened
from fairtrial.study.resolved import Section

GUEST: Final = "debian-6.12"


def begun(directory: Path, farm: InstantFarm, *, blocks: int) -> FarmRun:
    """A run of so many blocks, to its end."""
    tiny = tiny_plan()
    trials = [planned(block, arm) for block in range(1, blocks + 1) for arm in ("a", "b")]
    design = tiny.design.model_copy(update={"blocks": blocks, "voided_limit": 4, "hosts": "factor"})
    plan = tiny.model_copy(update={"trials": trials, "design": design})
    return executed(record.create(directory / "run", plan=plan, sources={"study.yaml": ""}), farm)


def voided(directory: Path) -> int:
    return sum(isinstance(event, BlockVoided) for event in record.read(directory / "run").events)


def test_it_knows_the_character_of_every_kind_of_place(tmp_path: Path) -> None:
    def fate(_host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        (place,) = outcome.places
        guest = {"place": Section({"vm": {"kernel": GUEST}}), "facts": {**place.facts, "kernel": GUEST}}
        return outcome.model_copy(update={"places": [place, place.model_copy(update=guest)]})

    begun(tmp_path, InstantFarm("x", fate=fate), blocks=1)
    run = executed(record.resume(tmp_path / "run"), InstantFarm("x"))
    assert sorted(str(character["kernel"]) for character in run.character.values()) == ["6.1", GUEST]


def test_a_host_that_was_booted_otherwise_since_is_refused_and_its_block_goes_to_another(tmp_path: Path) -> None:
    """Of one that counts as a factor, too: half of its blocks would be of another machine."""

    def fate(_host: str, order: Order, outcome: Outcome) -> Outcome | str:
        return outcome if order.block == 1 else "its stream ended"

    before = {"x": {"kernel_command_line": "quiet"}}
    with pytest.raises(PlaceError, match="its stream ended"):
        begun(tmp_path, InstantFarm("x", facts=before, fate=fate), blocks=2)
    before_it = voided(tmp_path)
    since = {"x": {"kernel_command_line": "quiet mitigations=off"}, "y": {"kernel_command_line": "quiet"}}
    executed(record.resume(tmp_path / "run"), InstantFarm("x", "y", facts=since))
    found = record.read(tmp_path / "run")
    *_, gone = [event for event in found.events if isinstance(event, HostLeft)]
    assert gone.host == "x"
    assert "kernel_command_line was quiet, is quiet mitigations=off" in gone.reason
    assert voided(tmp_path) == before_it, "what it ran is in no record"
    assert {trial.trial.block: trial.host for trial in found.trials}.pop(1) == "x"
    assert {trial.host for trial in found.trials if trial.trial.block != 1} == {"y"}
    assert [event.host for event in found.events if isinstance(event, PlaceOpened)] == ["x", "y"]
