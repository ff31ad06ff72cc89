from __future__ import annotations

from types import ModuleType

import pytest

from fairtrial.plan import costs
from fairtrial.record.models import Design
from fairtrial.study import ResolvedTrial


def trial(*, warehouses: int = 1, system: str = "mariadb", **ending: float | None) -> ResolvedTrial:
    tpcc = {"warehouses": warehouses, "ramp_up": 2.0, "duration": None, "transactions": None} | ending
    return ResolvedTrial(place={"vm": {}}, system={system: {}}, workload={"tpcc": tpcc})


def design(blocks: int) -> Design:
    values = {"blocks": blocks, "order": "abba", "seed": 1, "stop": "fixed", "margin": 0.02, "voided_limit": 0}
    return Design.model_validate(values)


def test_a_trial_takes_what_its_kinds_say_and_a_constant(small: ModuleType) -> None:
    vm_s, mariadb_s, ramp_up_s = 4, 3, 2
    by_time = costs.trial_duration_s(trial(duration=60.0), small.SMALL)
    assert by_time == pytest.approx(costs.TRIAL_OVERHEAD_S + vm_s + mariadb_s + ramp_up_s + 60)
    by_count = costs.trial_duration_s(trial(transactions=500), small.SMALL)
    assert by_count == pytest.approx(costs.TRIAL_OVERHEAD_S + vm_s + mariadb_s + ramp_up_s + 5)


def test_equal_data_are_prepared_once_and_one_copy_is_worked_on(small: ModuleType) -> None:
    one = small.BYTES_PER_WAREHOUSE
    record = 2 * costs.RECORD_BYTES_PER_TRIAL
    same = {"all": {"a": trial(warehouses=5, duration=1.0), "b": trial(warehouses=5, duration=2.0)}}
    assert costs.disk_bytes(same, design(1), small.SMALL) == 2 * 5 * one + record
    scales = {"all": {"a": trial(warehouses=5, duration=1.0), "b": trial(warehouses=7, duration=1.0)}}
    assert costs.disk_bytes(scales, design(1), small.SMALL) == (5 + 7 + 7) * one + record
    systems = {"all": {"a": trial(system="sqlite", duration=1.0), "b": trial(duration=1.0)}}
    assert costs.disk_bytes(systems, design(1), small.SMALL) == (1 + 1 + 1) * one + record


def test_the_record_grows_with_every_trial(small: ModuleType) -> None:
    cells = {name: {"a": trial(duration=1.0), "b": trial(duration=1.0)} for name in ("low", "high")}
    two, three = (costs.disk_bytes(cells, design(blocks), small.SMALL) for blocks in (2, 3))
    assert three - two == 2 * 2 * costs.RECORD_BYTES_PER_TRIAL
