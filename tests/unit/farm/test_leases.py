"""Processes of hosts: that they get the time to undo what they changed, and who did not is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.instant_farm import LEAVING_S, UNDONE, leaving
from support.records import tiny_plan

from fairtrial.farm import children, leases
from fairtrial.farm.orders import order
from fairtrial.study.resolved import Section


@pytest.mark.parametrize(
    ("host", "ssh", "killed"),
    [
        ("alpha", {"host": "h", "boot": {"by": "kexec"}}, []),
        ("slow", {"host": "h"}, ["fairtrial slow"]),
    ],
)
def test_a_host_that_boots_has_the_time_to_and_one_that_takes_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, host: str, ssh: dict[str, object], killed: list[str]
) -> None:
    monkeypatch.setattr(children, "END_S", LEAVING_S["alpha"] / 10)
    hosts = leases.Leases({host: Section({"ssh": ssh})}, tmp_path, body=leaving)
    plan = tiny_plan()
    hosts.submit(order(plan, plan.trials[:2], run="run", started=[]), host=host)
    assert hosts._leases[host].connection.recv_bytes() == b"in its block"
    assert hosts.close() == killed
    assert (tmp_path / host / UNDONE).exists() == (not killed)
