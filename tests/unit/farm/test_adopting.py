"""What a host brings back is believed only if it is the block that it was given, whole, and nothing but files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.instant_farm import InstantFarm
from support.records import planned, tiny_plan

from fairtrial.errors import PlaceError, RecordError
from fairtrial.farm import adopting
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.record.models import TrialRecord


def order(block: int) -> Order:
    trials = [planned(block, "a"), planned(block, "b")]
    return Order(run="run", plan=tiny_plan().model_copy(update={"trials": trials}), started=[])


def brought(directory: Path, asked: Order, **farm: list[str]) -> tuple[Outcome, Path]:
    """A block as a host brings it back."""
    host = InstantFarm("x", invalid=farm.get("invalid", []))(directory)
    host.submit(asked, host="x")
    (returned,) = host.returned(0)
    assert returned.outcome is not None
    assert returned.directory is not None
    return returned.outcome, returned.directory


def only(outcome: Outcome, *numbers: int) -> Outcome:
    """With some of its trials."""
    return outcome.model_copy(update={"trials": [outcome.trials[number] for number in numbers]})


def accepted(outcome: Outcome, directory: Path, asked: Order) -> list[TrialRecord]:
    return adopting.arrived(outcome, directory, order=asked)


def test_a_block_that_ended_with_an_invalid_trial_or_an_error_is_one(tmp_path: Path) -> None:
    outcome, directory = brought(tmp_path, order(1), invalid=["all.b01.a"])
    assert [trial.host for trial in accepted(only(outcome, 0), directory, order(1))] == ["x"]
    failed = only(outcome).model_copy(update={"failure": Failure(message="full", hint="")})
    assert accepted(failed, directory, order(1)) == []


@pytest.mark.parametrize("numbers", [(), (0,), (1, 0), (0, 1, 1), (1,)])
def test_a_block_with_more_or_fewer_trials_is_another(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    outcome, directory = brought(tmp_path, order(1))
    with pytest.raises(PlaceError, match="what x brought back is not block 1 of all"):
        accepted(only(outcome, *numbers), directory, order(1))


def test_another_block_than_the_one_given_out_is_not_believed(tmp_path: Path) -> None:
    outcome, directory = brought(tmp_path, order(2))
    with pytest.raises(PlaceError, match="is not block 1 of all"):
        accepted(outcome, directory, order(1))


def test_a_trial_whose_files_the_host_does_not_name_is_not_believed(tmp_path: Path) -> None:
    outcome, directory = brought(tmp_path, order(1))
    with pytest.raises(PlaceError, match=r"the files of all\.b01\.b are not those that x wrote"):
        accepted(outcome.model_copy(update={"finished": outcome.finished[:1]}), directory, order(1))


def test_a_link_among_the_files_is_refused_before_it_is_in_the_record(tmp_path: Path) -> None:
    outcome, directory = brought(tmp_path, order(1))
    (directory / "all.b01.a" / "shadow").symlink_to(directory / "all.b01.b")
    with pytest.raises(RecordError, match="is a symbolic link"):
        accepted(outcome, directory, order(1))
