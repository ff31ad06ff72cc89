"""What one node of a cluster sends back costs that node's block at most."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from fairtrial.farm import driver  # noqa: E402 - needs Ray
from fairtrial.farm.calls import RESOURCE, Done, Nodes, Submit  # noqa: E402
from fairtrial.farm.orders import Outcome  # noqa: E402

OUTCOME = Outcome(host="x").model_dump_json().encode()


@pytest.mark.parametrize("sent", [("node", OUTCOME, b"no archive"), ("node", b"{}", b""), ("node", OUTCOME)])
def test_what_cannot_be_read_loses_the_block_and_not_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: tuple[object, ...]
) -> None:
    monkeypatch.setattr(ray, "get", lambda _reference: sent)
    ours, _theirs = multiprocessing.Pipe()
    served = driver._Driver(tmp_path, ours)
    block = iter(["reference"])
    served._out = {block: 7}
    done = served._fetched(block)
    assert done is not None
    assert done.number == 7
    assert done.lost
    assert not served._out


def test_a_block_whose_worker_died_is_lost_by_the_host_that_its_node_is_known_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def died(_reference: object) -> None:
        raise ray.exceptions.WorkerCrashedError

    monkeypatch.setattr(ray, "get", died)
    served = driver._Driver(tmp_path, multiprocessing.Pipe()[0])
    block = iter(["reference"])
    served._out, served._at, served._nodes = {block: 7}, {block: "node"}, {"node": "x"}
    done = served._fetched(block)
    assert done is not None
    assert (done.number, done.host) == (7, "x")
    assert not served._at


class Stage:
    """A driver with one block out that no node has begun, on a clock and a cluster of the test's."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.alive, self.offers = 1000.0, ["alpha", "beta"], {"alpha": 1.0, "beta": 1.0}
        self.nodes: list[Nodes] = []
        self.cancelled: list[object] = []
        monkeypatch.setattr(driver, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(driver, "_nodes", self._nodes)
        monkeypatch.setattr(ray, "cancel", self.cancelled.append)
        ours, self._theirs = multiprocessing.Pipe()
        self.driver = driver._Driver(directory, ours)
        self.driver._out = {"waits": 7}

    def _nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": name, "Alive": True, "Resources": {RESOURCE: self.offers[name]}} for name in self.alive]

    def looks(self, seconds: int) -> list[int]:
        """One look a second; numbers of the blocks that were lost."""
        for _ in range(seconds):
            self.now_s += 1.1
            self.driver._look()
        lost = []
        while self._theirs.poll():
            said = self._theirs.recv()
            if isinstance(said, Done):
                lost.append(said.number)
            else:
                self.nodes.append(said)
        return lost


def test_a_block_whose_node_froze_before_it_said_so_is_lost_once_another_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    assert not stage.looks(80), "a node may take a while to begin"
    stage.alive.remove("beta")
    assert stage.looks(80) == [7]
    assert stage.cancelled == ["waits"], "nor is it begun later"
    assert not stage.looks(400)


def test_each_block_has_its_own_time_where_others_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch)
    for number in range(8):
        stage.driver._out = {f"block {number}": number}  # the one before has come back between two looks
        assert not stage.looks(80)
    assert not stage.cancelled


def test_a_block_waits_for_as_long_as_no_node_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch)
    stage.driver._out["runs"] = 6
    stage.driver._at["runs"] = "alpha"
    stage.alive.remove("beta")
    assert not stage.looks(400), "nodes are fewer than blocks were handed out for"
    stage.driver._forgotten("runs")
    assert not stage.looks(80), "it has only now a node that could begin it"


def test_a_node_that_would_run_two_blocks_at_a_time_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch)
    stage.offers["beta"] = 2.0
    stage.looks(1)
    assert stage.nodes == [Nodes(1, "node beta offers 2 `fairtrial`, expected 1")]
    asked: list[dict[str, Any]] = []

    class Task:
        def options(self, **given: Any) -> Task:
            asked.append(given)
            return self

        def remote(self, _order: bytes) -> str:
            return "block"

    monkeypatch.setattr(stage.driver, "_serve", Task())
    stage.driver._obey(Submit(8, b""))
    assert asked == [{"label_selector": {driver.NODE_ID: "!in(beta)"}}]
