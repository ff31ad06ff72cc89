"""A cluster that answers nobody lets nobody in, and one that is lost has a minute to come back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from support.instant_farm import unstarted
from support.records import tiny_plan

from fairtrial.errors import PlaceError
from fairtrial.farm import cluster
from fairtrial.farm.calls import Nodes
from fairtrial.farm.orders import order


def test_a_cluster_that_does_not_answer_who_has_no_token_asks_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setattr(cluster, "PROBE_S", 0.001)
    cluster.require_token("127.0.0.1:1")


def test_a_cluster_that_is_lost_while_nothing_is_owed_has_a_minute_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers = unstarted(monkeypatch, ended="exit code 1")
    now_s = 1000.0
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: now_s))
    found = cluster.Cluster("head:1", tmp_path)
    drivers[0].send(Nodes(1))
    assert list(found.returned(0)) == []
    assert list(found.idle()) == [""]
    plan = tiny_plan()
    found.submit(order(plan, plan.trials[:2], run="run", started=[]), host="")
    for _ in range(5):  # an hour in which nobody asks for idle hosts
        now_s += 720
        assert list(found.returned(0)) == []
    drivers[0].close()
    found.returned(0)
    (returned,) = found.returned(0)
    assert returned.lost == "the cluster was lost (exit code 1)"
    now_s += cluster.NODES_S
    assert list(found.idle()) == []
    now_s += 1
    with pytest.raises(PlaceError, match="has no node that takes a block"):
        found.idle()
