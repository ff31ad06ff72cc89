"""What a server that was there already keeps from a study."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import RESOLVED, tiny_plan

from fairtrial.analyse.doubts.existing import doubts
from fairtrial.record.models import Plan
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
