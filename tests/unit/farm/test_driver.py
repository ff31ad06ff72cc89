"""What one node of a cluster sends back costs that node's block at most."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")

from fairtrial.farm import driver  # noqa: E402 - needs Ray
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
