"""What a run of many blocks must not do: pile up what came back, or hand a lost trial out for ever."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from support.instant_farm import InstantFarm, executed
from support.records import planned, tiny_plan

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.record.models import Plan

MOST: Final = 20


def conducted(directory: Path, farm: InstantFarm, made: Plan) -> record.Record:
    executed(record.create(directory / "run", plan=made, sources={"study.yaml": ""}), farm)
    return record.read(directory / "run")


def test_what_came_back_is_gone_once_it_is_taken_in_or_lost(tmp_path: Path) -> None:
    def fate(host: str, order: Order, outcome: Outcome) -> Outcome | str:
        assert {each.name for each in (farm.directory / host).iterdir()} == {trial.id for trial in order.trials}
        failed = Failure(message="its disk is full", hint="") if order.block == 1 else None
        return outcome.model_copy(update={"failure": failed})

    farm = InstantFarm("x", fate=fate)
    assert conducted(tmp_path, farm, tiny_plan()).finished


class NamelessFarm(InstantFarm):
    """A cluster that loses a block does not know which host had it."""

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        assert len(self.ran) < MOST, "handed out again and again"
        return [
            each if each.outcome is not None else Returned(each.order, "", lost=each.lost)
            for each in super().returned(timeout_s)
        ]


def test_a_diagnostic_trial_that_is_always_lost_ends_the_run(tmp_path: Path) -> None:
    probed = planned(1, "a").model_copy(update={"id": "all.d01.a", "diagnostic": True, "position": 4})

    def fate(host: str, order: Order, outcome: Outcome) -> Outcome | str:
        if not order.trials[0].diagnostic:
            return outcome
        shutil.rmtree(farm.directory / host)
        return "out of memory"

    farm = NamelessFarm("x", fate=fate)
    with pytest.raises(PlaceError, match=r"all\.d01\.a is lost again and again: a host lost it: out of memory"):
        conducted(tmp_path, farm, tiny_plan().model_copy(update={"diagnostics": [probed]}))


@pytest.mark.parametrize("hosts", ["factor", "alike"])
def test_builds_may_differ_between_hosts_only_where_hosts_are_a_factor(tmp_path: Path, hosts: str) -> None:
    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        own = {"system_facts": {"sha256": f"of {host}"}, "subject": {"kernel": f"of {host}"}}
        return outcome.model_copy(update={"trials": [trial.model_copy(update=own) for trial in outcome.trials]})

    made = tiny_plan()
    design = made.design.model_copy(update={"hosts": hosts})
    found = conducted(tmp_path, InstantFarm("x", "y", fate=fate), made.model_copy(update={"design": design}))
    assert {trial.host for trial in found.trials} == ({"x", "y"} if hosts == "factor" else {"y"})
