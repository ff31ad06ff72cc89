"""Processes of hosts: that they get the time to undo what they changed, and who did not is named."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from support.records import tiny_plan

from fairtrial.farm import children, leases
from fairtrial.farm.orders import order
from fairtrial.study.resolved import Section

UNDONE = "default kernel again"
LEAVING_S = 0.3


def slow(_host: str, directory: Path, connection: Connection) -> None:
    """Takes its time to undo what its block changed, as a host that boots does."""
    directory.mkdir(parents=True)
    try:
        connection.send_bytes(b"in its block")
        connection.poll(None)
        time.sleep(60)  # the signal comes once the connection is closed
    except KeyboardInterrupt:
        time.sleep(LEAVING_S)
        (directory / UNDONE).touch()


@pytest.mark.parametrize(
    ("place", "killed"),
    [
        ({"ssh": {"host": "h", "boot": {"by": "kexec"}}}, []),
        ({"ssh": {"host": "h"}}, ["fairtrial alpha"]),
    ],
)
def test_a_host_that_boots_has_the_time_to_and_one_that_takes_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, place: dict[str, dict[str, object]], killed: list[str]
) -> None:
    monkeypatch.setattr(children, "END_S", LEAVING_S / 10)
    hosts = leases.Leases({"alpha": Section(place)}, tmp_path, body=slow)
    plan = tiny_plan()
    hosts.submit(order(plan, plan.trials[:2], run="run", started=[]), host="alpha")
    assert hosts._leases["alpha"].connection.recv_bytes() == b"in its block"
    assert hosts.close() == killed
    assert (tmp_path / "alpha" / UNDONE).exists() == (not killed)
