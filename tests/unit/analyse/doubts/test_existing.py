"""What a server that was there already keeps from a study."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial.analyse.doubts.existing import doubts, moved
from fairtrial.analyse.models import DOUBT_CODES
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.study.resolved import Section


def plan(at: dict[str, Any] | None) -> Plan:
    server = RESOLVED.model_copy(update={"system": Section({"postgres": {} if at is None else {"at": at}})})
    return tiny_plan().model_copy(update={"resolved": {"all": {"a": server, "b": RESOLVED}}})


@pytest.mark.parametrize(
    ("at", "codes"),
    [
        (None, []),
        ({"socket_directory": "/run"}, []),
        ({"host": "localhost"}, []),
        ({"host": "::1", "restore": "reload"}, []),
        ({"host": "db1", "restore": {"command": "none"}}, ["host_unseen"]),
        ({"host": "10.0.0.7", "restore": "none"}, ["host_unseen", "state_carried"]),
        ({"host": "127.0.0.1", "restore": "none"}, ["state_carried"]),
    ],
)
def test_a_host_without_an_agent_and_state_that_is_carried_are_doubts(
    at: dict[str, Any] | None, codes: list[str]
) -> None:
    found = list(doubts(plan(at)))
    assert [doubt.code for doubt in found] == codes
    if "host_unseen" in codes:
        assert str((at or {})["host"]) in found[0].message


@pytest.mark.parametrize("restore", ["reload", "none", {"command": "sh restore.sh"}])
@pytest.mark.parametrize("yours", ["bench", None])
@pytest.mark.parametrize(
    ("workload", "loads"),
    [
        ({"command": {"run": "psql"}}, False),
        ({"script": {"content": {"setup": None}}}, False),
        ({"script": {"content": {"setup": {"create": ["CREATE TABLE a (b int)"]}}}}, True),
        ({"oltp": {}}, True),
    ],
)
def test_what_a_workload_changes_in_a_database_that_it_does_not_load_is_carried(
    workload: dict[str, Any], restore: Any, yours: str | None, *, loads: bool
) -> None:
    at = {"socket": "/run/my.sock", "restore": restore, "may_overwrite": yours}
    server = {"system": Section({"mariadb": {"at": at}}), "workload": Section(workload)}
    found = doubts(tiny_plan().model_copy(update={"resolved": {"all": {"a": RESOLVED.model_copy(update=server)}}}))
    carried = restore == "none" or (not loads and yours is not None and restore == "reload")
    assert [doubt.code for doubt in found] == ["state_carried"] * carried


def existing(arm: str, *values: str, at: dict[str, Any] | None) -> list[TrialRecord]:
    """Trials of an arm, the second of which sets an option, and what that option was in each."""
    parameters = {"at": at, "options": {"datestyle": "ISO"} if arm == "b" else {}}
    resolved = RESOLVED.model_copy(update={"system": Section({"postgres": parameters})})
    return [
        trial_record(planned(block, arm)).model_copy(
            update={"resolved": resolved, "options": {"DateStyle": value, "clock": str(block)}}
        )
        for block, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize(
    ("at", "values", "seen"),
    [
        ({"host": "::1"}, ("SQL", "SQL", "ISO"), True),
        ({"host": "::1"}, ("SQL", "SQL", "SQL"), False),
        (None, ("SQL", "SQL", "ISO"), False),
    ],
)
def test_an_option_that_somebody_else_changed_between_trials_is_a_doubt(
    at: dict[str, Any] | None, values: tuple[str, ...], *, seen: bool
) -> None:
    used = [*existing("a", *values, at=at), *existing("b", "ISO", "ISO", "ISO", at=at)]
    plan = tiny_plan().model_copy(update={"resolved": {"all": {each.trial.arm: each.resolved for each in used}}})
    found = list(moved(plan, used))
    assert [doubt.code for doubt in found] == ["option_moved"] * seen
    if seen:
        assert found[0].code in DOUBT_CODES
        assert found[0].message.endswith("between trials of one arm (DateStyle: ISO, SQL in a of all)")
