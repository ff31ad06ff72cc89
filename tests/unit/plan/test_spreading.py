"""How long blocks take on several hosts: a list schedule with a controller that takes one trial in at a time."""

from __future__ import annotations

import pytest
from support.records import planned, tiny_plan

from fairtrial.catalogue import catalogue
from fairtrial.plan.costs import TRIAL_OVERHEAD_S
from fairtrial.plan.spreading import FarmCosts, duration_s, makespan
from fairtrial.study.resolved import ResolvedTrial

FREE = FarmCosts(trial_s=0.0, megabytes=0.0)


@pytest.mark.parametrize(("hosts", "took"), [(1, 60.0), (2, 30.0), (4, 20.0), (6, 10.0), (60, 10.0)])
def test_a_block_is_the_smallest_piece(hosts: int, took: float) -> None:
    assert makespan([10.0] * 6, FREE, hosts=hosts, trials=2) == (took, 0.0)


def test_the_controller_takes_one_trial_in_at_a_time() -> None:
    costs = FarmCosts(trial_s=1.0, megabytes=2.0, megabyte_s=0.5)
    assert costs.taking_s == 2.0
    assert makespan([10.0] * 3, costs, hosts=3, trials=2) == (22.0, 12.0)


def test_a_host_prepares_its_data_before_its_first_block() -> None:
    assert makespan([10.0] * 4, FarmCosts(prepare_s=7.0, trial_s=0.0, megabytes=0.0), hosts=2, trials=1)[0] >= 27.0


def test_hosts_that_boot_take_longer_for_each_trial() -> None:
    assert makespan([10.0] * 4, FREE, hosts=2, trials=2, boots_s=[5.0, 5.0])[0] == 40.0
    assert makespan([10.0] * 4, FREE, hosts=2, trials=2, boots_s=[0.0, 15.0])[0] == 40.0


def test_a_plan_on_as_many_hosts_as_blocks_takes_as_long_as_one() -> None:
    trial = ResolvedTrial.model_validate(
        {"place": {"local": {}}, "system": {"command": {}}, "workload": {"command": {"run": "true"}}}
    )
    trials = [planned(block, arm) for block in range(1, 5) for arm in ("a", "b")]
    plan = tiny_plan().model_copy(update={"trials": trials, "resolved": {"all": {"a": trial, "b": trial}}})
    alone, side_by_side = (duration_s(plan, catalogue(), hosts=hosts) for hosts in (1, 4))
    assert alone > 8 * TRIAL_OVERHEAD_S
    assert side_by_side == pytest.approx(alone / 4, rel=0.05)
    looking = plan.model_copy(update={"design": plan.design.model_copy(update={"stop": "sequential"})})
    assert duration_s(looking, catalogue(), hosts=4) == side_by_side, "a look takes no time that counts"
