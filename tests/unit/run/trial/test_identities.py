"""What a trial's system and loader are is asked once, for every system and data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.machines.places import place_here
from support.progress import Told
from support.records import section, tiny_plan

from fairtrial import record
from fairtrial.run.trial import runner
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import SYSTEMS, Identity
from fairtrial.workloads import WORKLOADS


def trial(**workload: Any) -> ResolvedTrial:
    return ResolvedTrial(
        place={"local": {}}, system=section(SYSTEMS, "sqlite"), workload=section(WORKLOADS, "tpcc", **workload)
    )


def test_each_data_set_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ResolvedTrial] = []

    def identity(_place: object, of: ResolvedTrial, _parts: object) -> Identity:
        asked.append(of)
        return Identity(version=str(len(asked)), sha256="")

    monkeypatch.setattr(runner.hosted, "identity", identity)
    trials = [
        trial(duration="1s", warehouses=1),
        trial(duration="1s", warehouses=2),
        trial(duration="2s", warehouses=1),
    ]
    writer = record.create(tmp_path / "run", plan=tiny_plan(), sources={"study.yaml": ""})
    with place_here(tmp_path) as place:
        own = runner.TrialRunner(place, writer, Told(), runner.ExistingServers(place, "a test"))
        assert [own.identity(each, arm="a").version for each in trials] == ["1", "2", "1"]
    writer.close()
